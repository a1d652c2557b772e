"""Stand-ins for what must not leave the machine: equal text, equal token, within one trace."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Literal, TypeAlias, get_args

Kind: TypeAlias = Literal["arg", "function", "gpu", "host", "name", "option", "path", "text", "user"]

KEPT_SUFFIXES = (".err", ".lock", ".log", ".out", ".py", ".pyx", ".safetensors", ".so", ".txt")
"""File endings that say what a file is for and nothing about whose it is."""

_TOKEN = re.compile(rf"<(?:{'|'.join(get_args(Kind))})-\d{{1,9}}>(?:{'|'.join(map(re.escape, KEPT_SUFFIXES))})?")


class Tokens:
    """The table of one trace. A text keeps the token that it got first, whichever field it turns up in."""

    def __init__(self) -> None:
        self._tokens: dict[str, str] = {}
        self._counts: dict[Kind, int] = {}

    @property
    def count(self) -> int:
        """How many different texts became tokens."""
        return len(self._tokens)

    def of(self, text: str, kind: Kind) -> str:
        """Return the token of a text ("<host-1>"); an empty text and one that is a token already stay."""
        if not text or is_token(text):
            return text
        if text not in self._tokens:
            number = self._counts[kind] = self._counts.get(kind, 0) + 1
            self._tokens[text] = f"<{kind}-{number}>"
        return self._tokens[text]

    def of_path(self, path: str) -> str:
        """Return the token of a path, with its ending where that is a harmless one ("<path-1>.log")."""
        token = self.of(path, "path")
        suffix = PurePosixPath(path).suffix
        return token + suffix if token != path and suffix in KEPT_SUFFIXES else token


def is_token(text: str) -> bool:
    """Say whether redaction made this text."""
    return _TOKEN.fullmatch(text) is not None


def tokens_in(text: str) -> tuple[str, ...]:
    """Return the tokens in a text, in order.

    >>> tokens_in("tcp://<host-1>:5000"), tokens_in("--model-path")
    (('<host-1>',), ())
    """
    return tuple(_TOKEN.findall(text))
