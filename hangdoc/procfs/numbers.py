"""Numbers as /proc prints them: plain decimal digits that fit into 64 bits."""

from __future__ import annotations

LARGEST = 2**64 - 1
"""The kernel's widest counter, and the widest integer that a trace can hold."""


def counter(field: bytes) -> int:
    """Read an unsigned decimal counter; ValueError for anything else.

    Python's own int() also takes "1_0", "+1" and numbers of any length.

    >>> counter(b"42")
    42
    >>> counter(b"1_0")
    Traceback (most recent call last):
    ValueError: not a counter: b'1_0'
    """
    if not field.isdigit() or len(field) > 20 or (value := int(field)) > LARGEST:
        raise ValueError(f"not a counter: {field[:20]!r}")
    return value


def signed(field: bytes) -> int:
    """Read a decimal number that may be negative; a negative one becomes 0, because it stands for "none" there.

    >>> signed(b"-1"), signed(b"7")
    (0, 7)
    """
    return counter(field[1:]) * 0 if field.startswith(b"-") else counter(field)


def text(data: bytes) -> str:
    r"""Decode a name that a process chose itself: any bytes, cut anywhere by the kernel.

    >>> text(b"worker \xc3")
    'worker \ufffd'
    """
    return data.decode("utf-8", "replace")
