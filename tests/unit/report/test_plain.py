"""Text of the target on a terminal: nothing of it is acted on."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hangdoc.report.plain import plain


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[2J\x1b[31mred", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jcsi", "csi"),
        ("\x9d0;title\x9cosc", "osc"),
        ("\x1bP1;2qsixel\x1b\\dcs", "dcs"),
        ("\x1bc\x1b7\x1b(0reset", "reset"),
        ("a\rb\nc\td", "a b c d"),
        ("back\x08space\x7f", "backspace"),
        ("rm \u202eevil\u202c", "rm evil"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("\udcff", "\ufffd"),
        ("[red]markup[/red]", "[red]markup[/red]"),
        ("äöü 漢字", "äöü 漢字"),
        ("cut \x1b[31", "cut 31"),
    ],
)
def test_hostile(hostile: str, shown: str) -> None:
    """Escape sequences, controls and direction marks go; words in any script stay."""
    assert plain(hostile) == shown


@given(st.text(st.characters(), max_size=80))
def test_never_a_control(text: str) -> None:
    """No character of the result is a control, a surrogate or a line break, and doing it twice changes nothing."""
    result = plain(text)
    assert not [char for char in result if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")]
    assert plain(result) == result
