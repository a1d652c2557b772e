"""Parse /proc/PID/cmdline and the executable behind a process."""

from __future__ import annotations

from hangdoc.procfs.numbers import text


def parse_cmdline(data: bytes) -> tuple[str, ...]:
    r"""Split a command line; a process that renamed itself (setproctitle) leaves one string padded with zeros.

    >>> parse_cmdline(b"python3\0-m\0server\0\0")
    ('python3', '-m', 'server', '')
    >>> parse_cmdline(b"sglang::scheduler_TP0\0\0\0\0\0")
    ('sglang::scheduler_TP0',)
    >>> parse_cmdline(b"")
    ()
    """
    if not data:
        return ()
    parts = data.removesuffix(b"\0").split(b"\0")
    if not any(parts[1:]):
        parts = parts[:1]
    return tuple(text(part) for part in parts)


def is_python(executable: str, maps: bytes) -> bool:
    """Say whether a process runs a Python interpreter: by its executable or a libpython mapped into it.

    >>> is_python("/usr/bin/python3.12", b""), is_python("/bin/bash", b"")
    (True, False)
    >>> is_python("/opt/app/server", b"7f00-7f01 r-xp 0 08:01 5 /usr/lib/libpython3.11.so.1.0")
    True
    """
    name = executable.removesuffix(" (deleted)").rpartition("/")[2]
    return name.startswith(("python", "pypy")) or b"/libpython" in maps
