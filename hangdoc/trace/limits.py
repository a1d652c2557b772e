"""How large a trace may be: a reader has no other protection against a file made to eat its memory."""

from __future__ import annotations

MAX_LINE_BYTES = 32 << 20
"""Longest line, unpacked. Arbitrary: a thorough round of 10 processes x 200 threads takes about 1 MB."""

MAX_TRACE_BYTES = 256 << 20
"""Largest trace, unpacked. Arbitrary: 10 processes x 200 threads at 1 Hz for about an hour. As records in memory it
takes up to 8 times that (an empty frame is 10 bytes of JSON and 80 of Struct)."""

MAX_WINDOW_BYTES = 8 << 20
"""Largest zstd window a reader allocates: what level 19 asks for when it does not know the size."""

INPUT_SLICE_BYTES = 256
"""Packed bytes unpacked at a time. The densest block is 4 bytes for 128 KiB (RFC 8878, RLE block), so one slice is
8 MiB at most, however evil the file."""
