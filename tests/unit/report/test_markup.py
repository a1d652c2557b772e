"""Markup: whatever a text holds, it stays text."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from hangdoc.report.page.markup import Html, element, sentence, text, together
from hangdoc.report.plain import plain

HOSTILE = st.text(st.sampled_from("<>&\"'`=/ -!scriptmgonerxl\x00\x1b\u202e\n:(1)"), max_size=60)


class Seen(HTMLParser):
    """What a browser would make of it: elements with their attributes, and the text."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.comments = 0
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data

    def handle_comment(self, data: str) -> None:
        self.comments += bool(data) or 1


@given(HOSTILE, HOSTILE)
def test_text_stays_text(words: str, title: str) -> None:
    """One element goes in, one comes out, with the text and the attribute that were given."""
    seen = Seen(element("p", words, title=title))
    assert seen.elements == [("p", {"title": plain(title)})]
    assert seen.words == plain(words)
    assert seen.comments == 0


@given(HOSTILE)
def test_a_sentence_stays_text(words: str) -> None:
    """Places of the code are set apart; not a letter of the sentence is lost, and nothing becomes an element."""
    seen = Seen(sentence(words))
    assert seen.words == plain(words)
    assert {tag for tag, _ in seen.elements} <= {"span"}


def test_what_a_string_operation_made_is_text() -> None:
    """Markup that was put together outside the module is escaped: a mistake is seen, and opens no hole."""
    assert element("b", Html("<i>") + "<u>") == "<b>&lt;i&gt;&lt;u&gt;</b>"
    assert together(Html("<i>"), "<u>", None) == "<i>&lt;u&gt;"
    assert text("a\x1b[31mb\u202ec\nd") == "abc d"
