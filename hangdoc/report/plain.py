"""Text that came from the target, made harmless for a terminal: no escape sequences, no control characters."""

from __future__ import annotations

import re
from typing import Any

_SEQUENCES = re.compile(
    "(?:\x1b[\\[]|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, clearing
    "|(?:\x1b[\\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c|$)"  # OSC, DCS and their like
    "|\x1b[ -/]*[0-~]"  # two-character escapes and character sets
)
_BREAKS = re.compile("[\t\n\v\f\r\x85\u2028\u2029]+")
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]")
_SURROGATES = re.compile("[\ud800-\udfff]")
UNREADABLE = "\ufffd"


def plain(text: str) -> str:
    """Return the text on one line, without anything that a terminal would act on.

    C0, C1 and escape sequences go, and so do characters that are invisible or turn the reading direction round: a
    process title must not be able to redraw the report that accuses it.
    """
    text = _SEQUENCES.sub("", text)
    text = _BREAKS.sub(" ", text)
    text = _CONTROLS.sub("", text)
    return unsurrogated(text)


def unsurrogated(text: str) -> str:
    """Return the text with bytes that were no UTF-8 shown as one sign each, so that it can be encoded."""
    return _SURROGATES.sub(UNREADABLE, text)


def encodable(value: Any) -> Any:
    """Return plain data for JSON with every text in it unsurrogated."""
    if isinstance(value, str):
        return unsurrogated(value)
    if isinstance(value, dict):
        return {key: encodable(item) for key, item in value.items()}
    return [encodable(item) for item in value] if isinstance(value, list) else value
