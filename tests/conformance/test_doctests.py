"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from types import ModuleType

import pytest

import hangdoc
import hangdoc_probes

NOT_IMPORTED = ("hangdoc.demo.",)  # programs: importing one would run it


def modules(package: ModuleType) -> list[str]:
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return sorted(item.name for item in found if not item.name.startswith(NOT_IMPORTED))


@pytest.mark.parametrize("name", [*modules(hangdoc), *modules(hangdoc_probes)])
def test_examples(name: str) -> None:
    """Every example in a module's docstrings gives what it says."""
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples() -> None:
    """The search finds examples at all."""
    finder = doctest.DocTestFinder()
    examples = [
        test for name in modules(hangdoc) for test in finder.find(importlib.import_module(name)) if test.examples
    ]
    assert len(examples) > 20
