"""The whole page: one file that loads nothing, reads without JavaScript, and says first what to do."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files

from hangdoc import __version__
from hangdoc.report.material import Material
from hangdoc.report.page.graph import waits
from hangdoc.report.page.head import head, tone
from hangdoc.report.page.markup import Html, each, element, verbatim
from hangdoc.report.page.playbook import playbook
from hangdoc.report.page.reasons import evidence, hypotheses
from hangdoc.report.page.rest import environment, gpus, log, missing
from hangdoc.report.page.stacks import stacks
from hangdoc.report.page.threads import threads
from hangdoc.report.page.timeline import timeline
from hangdoc.report.short import shortened

_SECTIONS = (
    ("why", "Why"),
    ("playbook", "Playbook"),
    ("timeline", "Timeline"),
    ("waits", "Waits"),
    ("threads", "Threads"),
    ("stacks", "Stacks"),
    ("gpus", "GPUs"),
    ("log", "Log"),
    ("hypotheses", "Explanations"),
    ("missing", "Not read"),
    ("environment", "Environment"),
)


def page(material: Material) -> str:
    """Return the page as text; equal material gives equal bytes."""
    style, script = _shipped("page.css"), _shipped("page.js")
    body = element(
        "body",
        element("a", "Skip to the reasons", href="#why", class_="skip"),
        head(material),
        element("nav", each(_link(*one) for one in _SECTIONS), aria_label="Sections"),
        element("main", each(part(material) for part in _PARTS)),
        _foot(material),
        element("script", verbatim(script)),
        class_=tone(material),
    )
    return "<!DOCTYPE html>\n" + element("html", _meta(material, style, script), body, lang="en") + "\n"


_PARTS = (evidence, playbook, timeline, waits, threads, stacks, gpus, log, hypotheses, missing, environment)


def _meta(material: Material, style: str, script: str) -> Html:
    diagnosis = material.diagnosis
    # Nothing may be loaded, and only this style sheet and this script count, whatever a name from a log contains.
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="generator", content=f"hangdoc {__version__}"),
        element("link", rel="icon", href="data:,"),
        element("title", f"{diagnosis.verdict}: {shortened(diagnosis.headline)}"),
        element("style", verbatim(style)),
    )


def _digest(shipped: str) -> str:
    return f"sha256-{b64encode(sha256(shipped.encode()).digest()).decode()}"


def _shipped(name: str) -> str:
    return files("hangdoc.report.page").joinpath(name).read_text(encoding="utf-8")


def _link(name: str, title: str) -> Html:
    return element("a", title, href=f"#{name}")


def _foot(material: Material) -> Html:
    redacted = (
        "Names, paths and free text are tokens such as <path-1>: equal tokens stand for equal names. "
        if material.is_redacted
        else "Not redacted. "
    )
    return element(
        "footer", element("p", f"{redacted}Made by hangdoc {__version__} from a recording; nothing is loaded.")
    )
