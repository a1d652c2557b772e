"""Whether a process that sends an HTTP request to a host sends it to a proxy: by its environment, as requests does."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # typeshed leaves it out

HTTP_PROXIES = ("http_proxy", "all_proxy")
EXCEPTIONS = "no_proxy"


def goes_through_proxy(environment: bytes, host: str) -> bool:
    r"""Tell it of a process's environment (/proc/PID/environ): that it was started with, later changes do not show.

    >>> goes_through_proxy(b"HTTP_PROXY=http://p:3128\0", "127.0.0.1")
    True
    >>> goes_through_proxy(b"HTTP_PROXY=http://p:3128\0no_proxy=localhost,127.0.0.0/8\0", "127.0.0.1")
    False
    >>> goes_through_proxy(b"HTTPS_PROXY=http://p:3128\0", "127.0.0.1")
    False
    """
    named = _proxies(environment)
    if not any(named.get(name) for name in HTTP_PROXIES):
        return False
    exceptions = named.get(EXCEPTIONS, "")
    return not (proxy_bypass_environment(host, {"no": exceptions}) or _in_network(host, exceptions))


def _proxies(environment: bytes) -> Mapping[str, str]:
    """Return the variables that speak of proxies, by their lower-case name; the lower-case spelling wins."""
    found: dict[str, str] = {}
    pairs = (item.partition(b"=") for item in environment.split(b"\0"))
    for raw, _, value in sorted(pairs, key=lambda pair: pair[0]):  # capitals sort first, so that they are overwritten
        name = raw.decode("utf-8", "replace")
        if name.lower() in {*HTTP_PROXIES, EXCEPTIONS}:
            found[name.lower()] = value.decode("utf-8", "replace")
    return found


def _in_network(host: str, exceptions: str) -> bool:
    for exception in exceptions.split(","):
        try:
            if ip_address(host) in ip_network(exception.strip(), strict=False):
                return True
        except ValueError:
            continue
    return False
