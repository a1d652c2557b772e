"""The page in a real browser: nothing complains, nothing is loaded, the answer is on the first screen."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hangdoc.report.material import material
from hangdoc.report.page.page import page
from tests.unit.report.chromium import Chromium
from tests.unit.report.recordings import golden, many_ranks_page

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.slow]

NAMES = (
    "busy-init",
    "absent-allreduce",
    "blocked-fifo",
    "missing-node",
    "healthy-tp1@0.5.8-killed-scheduler",
    "healthy-tp1-children-import",
    "healthy-tp2-serving",
    "patients/asyncio-that-polls",
)

FOLD = (1280, 800)
"""A small laptop's screen."""


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    started = Chromium.start(tmp_path_factory.mktemp("chromium"))
    yield started
    started.end()


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    for name in NAMES:
        file_of(folder, name).write_text(page(material(golden(name), "trace")))
    file_of(folder, "many").write_text(many_ranks_page()[1])
    return folder


def file_of(folder: Path, name: str) -> Path:
    return folder / f"{Path(name).name}.html"


def complaints(browser: Chromium) -> list[Any]:
    """What the browser had to say against the page: errors, violations of its policy, exceptions."""
    return [
        one["params"]
        for one in browser.events
        if one["method"] in ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")
    ]


def requests(browser: Chromium) -> list[str]:
    return [one["params"]["request"]["url"] for one in browser.events if one["method"] == "Network.requestWillBeSent"]


def box(browser: Chromium, selector: str) -> dict[str, float]:
    found = browser.run(f"JSON.parse(JSON.stringify(document.querySelector({selector!r}).getBoundingClientRect()))")
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", [*NAMES, "many"])
def test_nothing_complains_and_nothing_is_loaded(browser: Chromium, pages: Path, name: str) -> None:
    """No error in the console, no request but for the file itself, and nothing wider than the window."""
    for width, height in (FOLD, (375, 800), (1920, 1080)):
        browser.size(width, height)
        browser.open(file_of(pages, name))
        assert complaints(browser) == []
        assert requests(browser) == [file_of(pages, name).as_uri()]
        assert browser.run("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", [*NAMES, "many"])
def test_the_answer_is_above_the_fold(browser: Chromium, pages: Path, name: str) -> None:
    """Verdict, headline, who has to move and what to type stand on the first screen, without scrolling."""
    browser.size(*FOLD)
    browser.open(file_of(pages, name))
    for selector in (".verdict", "h1", ".answer", ".answer + .answer", ".command"):
        where = box(browser, selector)
        assert where["width"] > 0
        assert 0 <= where["top"] < where["bottom"] <= FOLD[1], selector
    if browser.run("document.querySelector('.culprit') !== null"):
        assert box(browser, ".culprit")["bottom"] <= FOLD[1]


def test_the_culprit_of_many_ranks(browser: Chromium, pages: Path) -> None:
    """Of 64 ranks the one that has to move is named on the first screen, and marked in graph, lanes and stacks."""
    browser.size(*FOLD)
    browser.open(file_of(pages, "many"))
    assert browser.run("document.querySelector('.culprit .accused').textContent") == "scheduler TP1"
    for selector in ("svg .box.accused .title", ".lanes .accused", ".tree .accused"):
        assert browser.run(f"document.querySelector({selector!r}).textContent") == "scheduler TP1"
    took_ms = browser.run("performance.getEntriesByType('navigation')[0].loadEventEnd")
    print(f"64 ranks x 200 threads: loaded in {took_ms:.0f} ms")


def test_tables_sort_by_keyboard(browser: Chromium, pages: Path) -> None:
    """Tab reaches a heading's button; the space bar sorts, again turns it round; numbers sort as numbers."""
    browser.size(*FOLD)
    browser.open(file_of(pages, "absent-allreduce"))
    pids = "[...document.querySelectorAll('#environment tbody tr')].map(row => Number(row.cells[1].textContent))"
    browser.run("document.querySelectorAll('#environment thead button')[0].focus()")
    browser.press("Tab", 9)
    assert browser.run("document.activeElement.textContent") == "Pid"
    browser.press(" ", 32, " ")
    assert browser.run(pids) == sorted(browser.run(pids))
    assert browser.run("document.activeElement.parentElement.getAttribute('aria-sort')") == "ascending"
    browser.press(" ", 32, " ")
    assert browser.run(pids) == sorted(browser.run(pids), reverse=True)
    assert "Pid, descending" in browser.run("document.querySelector('[role=status]').textContent")


def test_the_keyboard_reaches_everything(browser: Chromium, pages: Path) -> None:
    """The first Tab shows the way past the navigation, with an outline; every region that scrolls takes the focus."""
    browser.size(*FOLD)
    browser.open(file_of(pages, "absent-allreduce"))
    browser.press("Tab", 9)
    assert browser.run("document.activeElement.className") == "skip"
    assert box(browser, ".skip")["left"] >= 0
    assert browser.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    wide = "[...document.querySelectorAll('.wide')]"
    assert browser.run(f"{wide}.every(one => one.tabIndex === 0 && one.ariaLabel)") is True


def contrast(browser: Chromium) -> list[str]:
    """Words with less than 4.5 to 1 against what is behind them."""
    found = browser.run(
        """(() => {
          const light = colour => {
            const parts = colour.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
              .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
          };
          const behind = one => {
            for (let at = one; at; at = at.parentElement) {
              const colour = getComputedStyle(at).backgroundColor;
              if (!/, 0\\)$/.test(colour)) return colour;
            }
            return 'rgb(255, 255, 255)';
          };
          const bad = [];
          for (const one of document.querySelectorAll('body *')) {
            if (one.closest('svg, script, .said') || !one.checkVisibility()) continue;
            if (![...one.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
            const a = light(getComputedStyle(one).color), b = light(behind(one));
            if ((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5) bad.push(one.textContent.slice(0, 40));
          }
          return bad;
        })()"""
    )
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("name", ["busy-init", "healthy-tp2-serving", "patients/asyncio-that-polls"])
def test_light_and_dark_can_be_read(browser: Chromium, pages: Path, name: str) -> None:
    """Either scheme has a ground of its own, and all words stand out from it."""
    grounds = []
    for scheme in ("light", "dark"):
        browser.open(file_of(pages, name), prefers_color_scheme=scheme)
        grounds.append(browser.run("getComputedStyle(document.body).backgroundColor"))
        assert contrast(browser) == []
    assert len(set(grounds)) == 2


def test_print_has_everything(browser: Chromium, pages: Path) -> None:
    """On paper what is folded is open, and the navigation is left out; afterwards it is as before."""
    browser.size(*FOLD)
    browser.open(file_of(pages, "absent-allreduce"))
    folded = "document.querySelectorAll('details:not([open])').length"
    before = browser.run(folded)
    assert before > 0
    printed = browser.ask("Page.printToPDF", printBackground=True)["data"]
    assert base64.b64decode(printed).startswith(b"%PDF")
    assert browser.run(folded) == before
    browser.ask("Emulation.setEmulatedMedia", media="print")
    assert browser.run("getComputedStyle(document.querySelector('nav')).display") == "none"
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert browser.run("document.querySelectorAll('details:not([open]):not(td > *)').length") == 0


def test_it_reads_without_javascript(browser: Chromium, pages: Path) -> None:
    """With scripts off every section has its words, and what is folded opens by itself."""
    browser.ask("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(file_of(pages, "absent-allreduce"))
        assert complaints(browser) == []
        root = browser.ask("DOM.getDocument", depth=0)["root"]["nodeId"]
        found = browser.ask("DOM.querySelectorAll", nodeId=root, selector="section h2, section table tbody tr")
        assert len(found["nodeIds"]) > 60
        buttons = browser.ask("DOM.querySelectorAll", nodeId=root, selector="button")
        assert buttons["nodeIds"] == []
    finally:
        browser.ask("Emulation.setScriptExecutionDisabled", value=False)
