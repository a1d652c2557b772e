"""Everything that is discovered keeps the rules of its kind: probes, hypotheses, playbooks, commands, files."""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator
from typer.main import get_command

from docs.generate import help_of, pages
from hangdoc.cli.main import app
from hangdoc.criteria import Hypothesis
from hangdoc.discovery import modules
from hangdoc.model.diagnosis import Verdict
from hangdoc.report.document import document
from hangdoc.report.library import playbooks
from hangdoc.sampling.probe import Probe
from tests.unit.report.diagnoses import FULL, a_diagnosis

ROOT = Path(__file__).resolve().parents[2]
PROBES = modules("hangdoc.probes")
HYPOTHESES = modules("hangdoc.hypotheses")
COMMANDS: dict[str, Any] = getattr(get_command(app), "commands", {})
PLAYBOOKS = playbooks()
PAGES = pages()
OURS = ("hangdoc", "probes", "playbooks", "tests", "benchmarks", "docs")
PYTHON_FILES = sorted(path for top in OURS for path in (ROOT / top).rglob("*.py") if "/." not in str(path))
HUNDREDS: dict[Verdict, tuple[int, ...]] = {
    "busy-wait": (1,),
    "blocked": (2,),
    "slow-start": (3,),
    "crashed": (4,),
    "healthy": (5,),
    "hung": (2, 9),
}
PLAYBOOK_SECTIONS = ("What it looks like", "Confirm by hand", "What to do", "Not to be confused with")


def names(found: list[ModuleType] | tuple[ModuleType, ...]) -> list[str]:
    return [module.__name__.rsplit(".", 1)[1] for module in found]


def at(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("module", PROBES, ids=names(PROBES))
def test_probe(module: ModuleType) -> None:
    """A probe module opens with a sentence and has a PROBE: its name, a title, where it reads, limits of its own."""
    probe = module.PROBE
    assert isinstance(probe, Probe)
    assert re.fullmatch(r"[a-z][a-z0-9-]*", probe.name)
    assert module.__doc__
    assert probe.title.strip()
    assert probe.reads
    assert callable(probe.open)
    assert callable(probe.check)
    assert probe.every >= 1
    assert 0 < probe.deadline_s <= 60
    assert 0 < probe.budget_ratio <= 1


def test_probe_names_are_unique() -> None:
    """A reading's probe can be told by its name."""
    found = [module.PROBE.name for module in PROBES]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("name", names(PROBES))
def test_probe_has_a_test(name: str) -> None:
    """Every probe is named by a test file of its own."""
    assert [path for path in (ROOT / "tests").rglob("test_*.py") if name in path.stem]


@pytest.mark.parametrize("module", HYPOTHESES, ids=names(HYPOTHESES))
def test_hypothesis(module: ModuleType) -> None:
    """A hypothesis has an identifier of its verdict's hundred, a name, an action and a playbook of the same name."""
    hypothesis = module.HYPOTHESIS
    assert isinstance(hypothesis, Hypothesis)
    assert re.fullmatch(r"HD\d{3}", hypothesis.id)
    assert hypothesis.verdict in get_args(Verdict)
    assert int(hypothesis.id[2]) in HUNDREDS[hypothesis.verdict]
    assert re.fullmatch(r"[a-z][a-z-]*[a-z]", hypothesis.name)
    assert module.__doc__ is not None
    assert module.__doc__.startswith(f"{hypothesis.id}: ")
    assert hypothesis.playbook in PLAYBOOKS
    assert hypothesis.action.endswith(".")
    assert hypothesis.essential


def test_hypotheses_are_told_apart() -> None:
    """No identifier and no name is used twice."""
    for field in ("id", "name"):
        found = [getattr(module.HYPOTHESIS, field) for module in HYPOTHESES]
        assert len(set(found)) == len(found)


@pytest.mark.parametrize("name", sorted(PLAYBOOKS))
def test_playbook(name: str) -> None:
    """A playbook is short, has its sections, and names only playbooks that exist."""
    text = PLAYBOOKS[name]
    titles = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert text.startswith("# ")
    assert not [section for section in PLAYBOOK_SECTIONS if section not in titles]
    assert titles[0] == PLAYBOOK_SECTIONS[0]
    assert titles[1].startswith("Why it ")
    assert len(text.splitlines()) <= 60
    assert max(len(line) for line in text.splitlines()) <= 120
    others = re.findall(r"^- `([a-z-]+)`[:,]", text.partition("## Not to be confused with")[2], re.MULTILINE)
    assert set(others) <= set(PLAYBOOKS)


def test_no_playbook_without_a_hypothesis() -> None:
    """Each playbook belongs to a hypothesis."""
    assert set(PLAYBOOKS) == {module.HYPOTHESIS.playbook for module in HYPOTHESES}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_command(name: str) -> None:
    """A command's --help has an example that names it; whatever prints a result can print it as JSON."""
    text = help_of(name)
    assert re.search(rf"Examples?:\s.*?hangdoc {name}", text, re.DOTALL)
    assert "--json" in text
    assert (ROOT / "hangdoc" / "cli" / f"{name.replace('-', '_')}.py").is_file()


@pytest.mark.parametrize("name", sorted(PAGES))
def test_generated_page(name: str) -> None:
    """A generated page is what `make docs` writes now."""
    path = ROOT / "docs" / name
    assert path.is_file(), "run make docs"
    assert path.read_text() == PAGES[name], "run make docs"


def test_no_generated_page_is_left_over() -> None:
    """There is no page of a hypothesis that is no more."""
    assert {f"hypotheses/{path.name}" for path in (ROOT / "docs" / "hypotheses").iterdir()} <= set(PAGES)


@pytest.mark.parametrize("gpus", [FULL.gpus, (), None])
def test_document_fits_the_schema(gpus: Any) -> None:
    """The document is valid by the committed schema, with GPUs, without and unread."""
    schema = json.loads((ROOT / "docs" / "schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(document(a_diagnosis(gpus=gpus)))


@pytest.mark.parametrize("path", PYTHON_FILES, ids=at)
def test_file(path: Path) -> None:
    """A file has at most 400 lines (a command 80), opens with a sentence, and is called after what it holds."""
    text = path.read_text()
    assert len(text.splitlines()) <= (80 if path.parent.name == "cli" and "hangdoc" in path.parts[-3:] else 400)
    assert ast.get_docstring(ast.parse(text)) or not text.strip()
    assert not re.search(r"utils?|helpers?|_?mgr|misc|common", path.stem)


@pytest.mark.parametrize("path", PYTHON_FILES, ids=at)
def test_functions_are_short(path: Path) -> None:
    """No function has more than 35 lines of code."""
    tree = ast.parse(path.read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    long = [f"{one.name} ({lines})" for one in functions if (lines := code_lines(one)) > 35]
    assert long == []


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function's body, without its signature and docstring."""
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in body)


def test_no_path_of_a_machine() -> None:
    """The project's text names neither this checkout nor its interpreter; outside tests no home directory either."""
    here = re.compile("|".join(re.escape(f"{place}/") for place in {str(ROOT), sys.prefix, sys.base_prefix} - {"/usr"}))
    texts = {path: path.read_text(errors="replace") for path in _texts()}
    found = {at(path) for path, text in texts.items() if here.search(text)}
    found |= {at(path) for path, text in texts.items() if "tests" not in path.parts and HOME.search(text)}
    assert found == set()


def _texts() -> list[Path]:
    listed = [path for top in (*OURS, ".ci") for path in (ROOT / top).rglob("*")]
    listed += ROOT.iterdir()
    return [path for path in listed if path.suffix in TEXT_SUFFIXES and path.is_file() and not _is_cache(path)]


def _is_cache(path: Path) -> bool:
    return any(
        (part.startswith(".") and part != ".ci") or part == "__pycache__" for part in path.relative_to(ROOT).parts
    )


TEXT_SUFFIXES = {"", ".py", ".md", ".toml", ".json", ".txt", ".c"}
HOME = re.compile(r"/(?:home|Users|root)/[a-z0-9_.-]+")


def test_docstring_of_each_test() -> None:
    """A test's docstring is the claim it checks."""
    missing = [
        f"{at(path)}: {node.name}"
        for path in PYTHON_FILES
        if path.name.startswith("test_")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and not ast.get_docstring(node)
    ]
    assert missing == []


def test_signs_say_what_they_look_for() -> None:
    """Every essential and excluding sign has a docstring, or the function that made it has."""
    silent = [
        f"{module.HYPOTHESIS.id}: {sign.__qualname__}"
        for module in HYPOTHESES
        for sign in (*module.HYPOTHESIS.essential, *module.HYPOTHESIS.excluding)
        if not inspect.getdoc(sign) and "<locals>" not in sign.__qualname__
    ]
    assert silent == []
