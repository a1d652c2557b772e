"""The page: one file that loads nothing, that nobody can write into, with an answer in every section."""

from __future__ import annotations

import re
from functools import cache

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from hangdoc.report.material import UNREDACTED, Material, material
from hangdoc.report.page.page import page
from tests.properties.test_secrets import SECRETS, core_of
from tests.properties.test_secrets import planted as with_secret
from tests.unit.report.recordings import golden, many_ranks_page, planted, with_gpus
from tests.unit.report.test_markup import Seen
from tests.unit.trace import sample

MOST_BYTES = 5_000_000

KEY = "-sk-abcdefghijkmnopqrstuvwx12"

SECTIONS = ("why", "playbook", "timeline", "waits", "threads", "stacks", "gpus", "log")
SECTIONS += ("hypotheses", "missing", "environment")

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"' onmouseover=alert(1) x='",
    "<!--",
    "]]></style></title><svg onload=alert(1)>",
    "&lt;b&gt;",
    "\u202egnp.exe\u202c\x1b]0;owned\x07\x00\x9b31m",
)


@cache
def made(name: str) -> tuple[Material, str]:
    found = material(golden(name), "trace")
    return found, page(found)


ALL = ("busy-init", "absent-allreduce", "blocked-fifo", "healthy-tp1@0.5.8-killed-scheduler", "missing-node",
       "healthy-tp1-children-import", "healthy-tp2-serving", "patients/asyncio-that-polls")  # fmt: skip


@pytest.mark.parametrize("name", ALL)
def test_every_section_is_there(name: str) -> None:
    """Verdict and headline come first; every section has its heading, and a link leads to it."""
    found, text = made(name)
    seen = Seen(text)
    ids = [attributes["id"] for tag, attributes in seen.elements if tag == "section"]
    assert ids == list(SECTIONS)
    assert {f"#{one}" for one in SECTIONS} <= {a.get("href") for tag, a in seen.elements if tag == "a"}
    assert text.index(f">{found.diagnosis.verdict}<") < text.index("<h1>") < text.index('id="why"')
    assert sum(tag == "h1" for tag, _ in seen.elements) == 1


@pytest.mark.parametrize("name", ALL)
def test_the_page_is_well_formed(name: str) -> None:
    """Elements close in the order in which they opened, ids are unique, and each reference has its target."""
    text = made(name)[1]
    opened: list[str] = []
    for close, tag in re.findall(r"<(/?)([a-z][a-z0-9]*)[^>]*>", re.sub(r"(?s)<(style|script)>.*?</\1>", "", text)):
        if not close and tag not in ("meta", "link", "br", "hr"):
            opened.append(tag)
        elif close:
            assert opened.pop() == tag
    assert opened == []
    ids = [a["id"] for _, a in Seen(text).elements if "id" in a]
    assert len(ids) == len(set(ids))
    assert {a["aria-labelledby"] for _, a in Seen(text).elements if "aria-labelledby" in a} <= set(ids)


@pytest.mark.parametrize("name", ALL)
def test_nothing_is_loaded(name: str) -> None:
    """No element fetches anything, and the policy forbids it: only links that somebody clicks lead out."""
    seen = Seen(made(name)[1])
    for tag, attributes in seen.elements:
        assert tag not in ("img", "iframe", "object", "embed", "form", "base", "audio", "video", "image", "use")
        assert "src" not in attributes
        assert "style" not in attributes
        if tag != "a":
            assert attributes.get("href") in (None, "data:,")
    policy = next(a["content"] for t, a in seen.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


def test_equal_recordings_give_equal_pages() -> None:
    """The page of a trace is the same byte for byte."""
    assert page(material(golden("busy-init"), "trace")) == made("busy-init")[1]


@pytest.mark.parametrize("name", ["absent-allreduce", "busy-init"])
def test_nobody_writes_into_the_page(name: str) -> None:
    """Hostile texts behind every text of the recording, left as they are: no element, attribute or control comes."""
    text = page(material(planted(golden(name), " ".join(HOSTILE)), "trace", keep_names=True))
    assert "&lt;img src=x onerror=alert(1)&gt;" in text
    seen = Seen(text)
    assert [tag for tag, _ in seen.elements].count("script") == 1
    assert not any(tag == "img" or "onload" in a or "onerror" in a for tag, a in seen.elements)
    assert not any(key.startswith("on") for _, attributes in seen.elements for key in attributes)
    assert seen.comments == 0
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e]", text)
    assert UNREDACTED in text


@settings(max_examples=3, phases=[Phase.generate])
@given(st.tuples(*SECRETS.values()))
def test_no_secret_survives(secrets: tuple[str, ...]) -> None:
    """A launch whose every text has a secret of each shape in it: the page has nothing of any."""
    text = page(material(with_secret(sample.trace(), "_" + " ".join(secrets)), "trace"))
    assert [secret for secret in secrets if core_of(secret) in text] == []


def test_an_unredacted_report_says_so() -> None:
    """--no-redact stands in the first screen; without it the page of the same trace has tokens, and says that."""
    trace = planted(golden("busy-init"), KEY)
    kept, redacted = page(material(trace, "trace", keep_names=True)), page(material(trace, "trace"))
    assert kept.index(UNREDACTED) < kept.index("Who has to move")
    assert KEY in kept
    assert UNREDACTED not in redacted
    assert KEY not in redacted
    assert "Names, paths and free text are tokens" in redacted


def test_many_ranks_stay_small() -> None:
    """64 ranks of 200 threads: under 5 MB, equal ranks are one, and the culprit is named before the evidence."""
    found, text = many_ranks_page()
    assert len(found.processes) == 67
    assert len(text.encode()) < MOST_BYTES
    assert "63 alike" in text
    assert text.index("scheduler TP1") < text.index('id="why"')


def test_the_gpu_strip() -> None:
    """Each GPU has its utilisation over the rounds, power and memory; a round that was not read is no zero."""
    trace = with_gpus(golden("busy-init"), [1.0, 1.0, None, 1.0, 0.5, 1.0], pid=25118)
    text = page(material(trace, "trace"))
    section = text[text.index('<section id="gpus"') : text.index('<section id="log"')]
    assert "120 W of 700 W" in section
    assert "scheduler TP0 25118 60.0 GiB" in section
    assert section.count('class="ran"') == 5
    assert section.count('class="unread"') == 1


def test_without_a_gpu_there_is_a_sentence() -> None:
    """No GPU is a reading; a probe that failed is not."""
    assert "There is no GPU here" in made("busy-init")[1]
