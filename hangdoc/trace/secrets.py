"""What gives a secret away whatever field it stands in: the shapes of keys, tokens, addresses and homes."""

from __future__ import annotations

import re
from functools import lru_cache

KEY_SHAPES = (
    r"(?:sk|pk|rk)-[A-Za-z0-9_-]{8,}",  # OpenAI and its like, Stripe with a hyphen
    r"(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{8,}",
    r"(?:hf|api_org)_[A-Za-z0-9]{16,}",  # Hugging Face
    r"(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA)[A-Z0-9]{12,}",  # AWS
    r"(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{20,}",
    r"glpat-[A-Za-z0-9_-]{16,}|xox[abprs]-[A-Za-z0-9-]{8,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{16,}",
    r"AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{16,}",  # Google
    r"nvapi-[A-Za-z0-9_-]{16,}|wandb_[A-Za-z0-9]{16,}|dop_v1_[a-f0-9]{32,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{6,2000}\.[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*)?",  # JSON Web Token
    r"-----BEGIN [A-Z ]{3,40}-----(?:.*?-----END [A-Z ]{3,40}-----|.*)",
)
"""Keys that announce themselves by how they begin, as their issuers document."""

EMAIL = r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+"

IPV4 = r"(?<![A-Za-z0-9.])(?!(?:127\.0\.0\.1|0\.0\.0\.0)(?![\w.]))(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\w)"
IPV6 = (
    r"(?<![A-Za-z0-9:.])(?!::1?(?![\w:]))(?:(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}"
    r"|(?:[0-9a-fA-F]{1,4}:){1,7}:(?:[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4}){0,6})?"
    r"|::(?:[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4}){0,6}))(?:%\w{1,15})?(?![\w:])"
)
"""Addresses other than this machine's own."""

MAC = r"(?<![\w:-])(?:[0-9A-Fa-f]{2}[:-]){5}(?:(?:[0-9A-Fa-f]{2}[:-]){14})?[0-9A-Fa-f]{2}(?![\w:-])"
"""Addresses of network cards: Ethernet's six bytes, InfiniBand's twenty."""

_ENDS = "com|org|net|edu|gov|mil|internal|local|localdomain|lan|corp|intra|private|cluster|cloud|io|ai"
HOST = (
    rf"(?<![A-Za-z0-9./-])(?=[A-Za-z0-9.-]*[0-9-])[A-Za-z0-9-]{{1,63}}(?:\.[A-Za-z0-9-]{{1,63}})*\.(?:{_ENDS})(?![\w-])"
)
"""Full names of machines: several labels, the last one a domain's, a digit or a hyphen somewhere."""

HOME = r"/(?:home|Users)/[^\s/'\"<>:,)\]}]+|/root(?![\w-])"

_SHAPE = re.compile("|".join(f"(?:{shape})" for shape in (*KEY_SHAPES, EMAIL, MAC, IPV4, IPV6, HOST, HOME)), re.DOTALL)


@lru_cache(maxsize=16384)  # the names of functions and files come again in every record
def holds(text: str) -> bool:
    """Say whether a text holds anything of these shapes.

    >>> holds("hf_AbCdEfGhIjKlMnOpQrSt"), holds("worker@10.1.2.3"), holds("forward_decode"), holds("127.0.0.1")
    (True, True, False, False)
    """
    return _SHAPE.search(text) is not None


def name_of_machine(host: str) -> re.Pattern[str] | None:
    """Return what finds a machine's name in other texts; None for one that could be a word of anybody's code.

    >>> name_of_machine("gpu-7.example.com").search("on GPU-7: full") is not None, name_of_machine("server")
    (True, None)
    """
    short = host.split(".", 1)[0]
    if len(short) < _SHORTEST_NAME or not re.search(r"[\d-]", short) or short == "localhost":
        return None
    return re.compile(rf"(?<![A-Za-z0-9-]){re.escape(short)}(?![A-Za-z0-9])", re.IGNORECASE)


_SHORTEST_NAME = 4
"""Letters from which a machine's name is looked for in other texts. Arbitrary: "a1" is in any code."""
