"""The Markdown for an issue: the form's fields, nothing that breaks out of its block, never too long."""

from __future__ import annotations

import re
from dataclasses import replace

import msgspec
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from hangdoc.report.markdown import CHECKLIST, MOST_CHARACTERS, fenced, inline, markdown
from hangdoc.report.material import UNREDACTED, material
from hangdoc.report.plain import plain
from tests.properties.test_secrets import SECRETS, core_of
from tests.properties.test_secrets import planted as with_secret
from tests.unit.report.recordings import golden, planted
from tests.unit.trace import sample

LIMIT = 65_536
"""Characters of an issue that GitHub takes."""

HOSTILE = st.text(st.sampled_from("`~*_[](){}<>#@!|\\&:/.-+=$ \nabw1GHh"), max_size=60)


def parsed(text: str) -> list[tuple[str, str]]:
    """(kind, content) of every token, those of inline text too; what is HTML goes through."""
    found = []
    for token in MarkdownIt("gfm-like", {"linkify": False}).parse(text):
        found.append((token.type, token.content))
        found += [(child.type, child.content) for child in token.children or ()]
    return found


@given(HOSTILE)
@example("`" * 5)
@example("@team see #12 and https://evil.example www.evil.example GH-1")
@example("1. one")
@example("<!-- -->")
def test_inline_text_stays_text(words: str) -> None:
    """Nothing but text comes of it: no emphasis, code, link, image, list, heading, mention or reference."""
    kinds = parsed(f"before {inline(words)} after")
    assert {kind for kind, _ in kinds} <= {"paragraph_open", "inline", "text", "html_inline", "paragraph_close"}
    assert all(content == "<!-- -->" for kind, content in kinds if kind == "html_inline")
    shown = "".join(content for kind, content in kinds if kind == "text")
    assert shown.split() == f"before {plain(words)} after".split()
    source = inline(words)
    assert not re.search(r"[@#]\w|://|(?i:www\.)\w|(?i:gh-)\d", source)


@given(HOSTILE)
def test_inline_text_begins_no_block(words: str) -> None:
    """At the beginning of a list's item, too, it is a paragraph."""
    blocks = [
        token.type for token in MarkdownIt("gfm-like", {"linkify": False}).parse(f"- {inline(words).strip() or 'x'}\n")
    ]
    assert [one for one in blocks if one.endswith("_open")] == ["bullet_list_open", "list_item_open", "paragraph_open"]


@given(st.lists(HOSTILE, min_size=1, max_size=5))
@example(["```", "````", "~~~~~~"])
def test_nothing_ends_a_fence(lines: list[str]) -> None:
    """A block of code is one token with all of the lines in it, whatever fences they hold."""
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(f"{fenced(lines)}\n\nafter")
    assert [token.type for token in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]
    assert tokens[0].content == "".join(plain(line) + "\n" for line in lines)


def test_the_fields_of_the_form() -> None:
    """SGLang's form: checklist, which nobody but the reporter ticks, bug, reproduction, environment, in its order."""
    text = markdown(material(golden("absent-allreduce"), "trace"))
    headings = [line for line in text.splitlines() if line.startswith("### ")]
    assert headings == ["### Checklist", "### Describe the bug", "### Reproduction", "### Environment"]
    assert text.count("- [ ] ") == len(CHECKLIST)
    assert "[x]" not in text
    assert "python -m sglang.launch_server --model-path" in text
    assert "python3 -m sglang.check_env" in text
    assert "**BLOCKED** (confirmed) in phase weight-load" in text
    assert "**scheduler TP1**, pid 29101: never came to the collective" in text
    assert "What to do next:\n\n- Look at the frames of the rank that stays out" in text
    assert "all_reduce (distributed/distributed_c10d.py:3252)" in text


def test_another_engine_has_no_form_of_sglang() -> None:
    """What is SGLang's own is left out for others."""
    text = markdown(material(golden("patients/asyncio-that-polls"), "trace"))
    assert "Checklist" not in text
    assert "sglang" not in text
    assert "Not ruled out, with what could not be read" in text


def test_nobody_writes_into_the_issue() -> None:
    """A hostile text behind every text of the recording leaves the blocks as they are."""
    hostile = "</details><img src=x> ```\n# owned\n@everyone [x](http://evil) `` \u202e\x1b[2J"
    text = markdown(material(planted(golden("absent-allreduce"), hostile), "trace", keep_names=True))
    tokens = parsed(text)
    assert {content.strip().split("\n")[0] for kind, content in tokens if kind == "html_block"} <= {
        "<details>",
        "</details>",
        "<!-- Model, and what was done until it came to this: please fill in. -->",
        "<!-- please paste it here -->",
    }
    assert all(content == "<!-- -->" for kind, content in tokens if kind == "html_inline")
    assert not any(kind in ("link_open", "image") for kind, _ in tokens)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
    assert UNREDACTED in text


@settings(max_examples=3, phases=[Phase.generate])
@given(st.tuples(*SECRETS.values()))
def test_no_secret_survives(secrets: tuple[str, ...]) -> None:
    """Redacted by default: of a launch whose every text has a secret of each shape in it, nothing of any is left."""
    text = markdown(material(with_secret(sample.trace(), "_" + " ".join(secrets)), "trace"))
    bare = re.sub(r"\\|<!-- -->", "", text)
    assert [secret for secret in secrets if core_of(secret) in text or core_of(secret) in bare] == []


def test_it_fits_into_an_issue() -> None:
    """More evidence than an issue takes: whole blocks are left out, and what follows them is there."""
    found = material(golden("absent-allreduce"), "trace")
    leading = found.diagnosis.hypotheses[0]
    long = msgspec.structs.replace(leading, for_=tuple(f"{n} {'long ' * 70}" for n in range(50)))
    diagnosis = msgspec.structs.replace(found.diagnosis, hypotheses=(long,) * 9)
    text = markdown(replace(found, diagnosis=diagnosis))
    assert 0.8 * MOST_CHARACTERS < len(text) <= MOST_CHARACTERS < LIMIT
    assert text.count("Evidence for") < 9
    assert text.count("<details>") == text.count("</details>")
    assert [line for line in text.splitlines() if line.startswith("### ")][-1] == "### Environment"
    assert "check_env" in text
