"""Real SGLang on the CPU: what is captured is what transformers computes on the same checkpoint, and nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hangdoc.samples import install, needs, support
from hangdoc.samples.directory import read
from hangdoc.samples.install import Install
from hangdoc.samples.needs import Additions
from hangdoc.samples.status import status
from hangdoc.samples.verify import verify
from hangdoc.samples.wish import Wish
from tests.capture.conftest import ROOT
from tests.sglang.launches import DEADLINE_S, Launch, environment, start
from tests.sglang.provision import NEWEST, Rig
from tests.sglang.scenarios import OLD, READY, Scenario

CHUNK = 16
"""Tokens of a prefill pass: longer prompts come in several."""

LONG, SHORT = [5 + number for number in range(40)], [9, 8, 7]
NUMBERED = {"hangdoc_index": 4321, "hangdoc_loss_mask": "0110"}
FOUR = [31, 32, 33, 34]
NEW_TOKENS = 6
DTYPE = "float32"
"""In bfloat16 rounding sends tokens to other experts, and two right answers may differ."""

PRECISE = 5e-6
"""Largest error of a row; the measured ones, in docs/capture.md, are a tenth of it."""


@dataclass(frozen=True)
class Case:
    """A launch: the model, the version, the ranks, and what is wanted of it."""

    kind: str
    version: str
    tp: int
    layers: tuple[int, ...]
    form: Any = "specforge"

    def __str__(self) -> str:
        return f"{self.kind}-{self.version}-tp{self.tp}"


CASES = (
    Case("llama", NEWEST, 1, (1, 3, 5)),
    Case("deepseek_v3", NEWEST, 2, (0, 2, 5), "safetensors"),
    Case("deepseek_v2", OLD, 2, (2, 4, 3)),
)


@dataclass(frozen=True)
class Captured:
    """What a launch left. tokens: its answers, one for each prompt in LONG, SHORT, FOUR, LONG."""

    case: Case
    model: Path
    directory: Path
    installed: Install
    added: Additions
    tokens: list[list[int]]
    log: str
    before: dict[str, tuple[int, int]]


def stamps(package: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every source file of the installed SGLang."""
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in package.rglob("*.py")}


def ask(launch: Launch, ids: list[Any], **params: Any) -> list[list[int]]:
    body = {"input_ids": ids, "sampling_params": {"temperature": 0, "ignore_eos": True, **params}}
    request = urllib.request.Request(
        f"http://127.0.0.1:{launch.port}/generate", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
        value = json.load(answer)
    return [one["output_ids"] for one in (value if isinstance(value, list) else [value])]


def talk(launch: Launch) -> list[list[int]]:
    """Several prompts in one request, a numbered one with a mask, a single new token, a health check."""
    both = ask(launch, [LONG, SHORT], max_new_tokens=NEW_TOKENS)
    four = ask(launch, FOUR, max_new_tokens=NEW_TOKENS, custom_params=NUMBERED)
    ask(launch, FOUR, max_new_tokens=NEW_TOKENS, custom_params=NUMBERED)  # once more: it is there
    one = ask(launch, LONG, max_new_tokens=1)
    urllib.request.urlopen(f"http://127.0.0.1:{launch.port}/health_generate", timeout=DEADLINE_S).close()
    return [*both, *four, *one]


def wait_until_written(launch: Launch, directory: Path, number: int) -> None:
    """Until the files are there and the writer has noted it, so that a kill then finds nothing under way."""
    until = time.monotonic() + DEADLINE_S
    while status(read(directory))["counts"].get("written", 0) < number:
        assert not launch.dead(), launch.tail()
        assert time.monotonic() < until, launch.tail()
        launch.pause()


def kill_a_rank(launch: Launch) -> None:
    """While a prompt runs; then the answer fails, or the launch is gone."""
    os.kill(max(launch.scheduler_pids().items())[1], signal.SIGKILL)
    with contextlib.suppress(OSError, urllib.error.URLError):
        urllib.request.urlopen(f"http://127.0.0.1:{launch.port}/model_info", timeout=5).close()


@pytest.fixture(scope="module", params=CASES, ids=str)
def captured(
    request: pytest.FixtureRequest, rig: Rig, tmp_path_factory: pytest.TempPathFactory, torch_python: Any
) -> Captured:
    case: Case = request.param
    root = tmp_path_factory.mktemp(str(case))
    model, directory = root / "model", root / "samples"
    torch_python("tests.capture.models", model, case.kind)
    flags = ("--model-path", str(model), "--dtype", DTYPE, "--chunked-prefill-size", str(CHUNK))
    plain = Scenario("capture", "none", (READY,), tp=case.tp, flags=flags)
    variables = environment(plain, rig, case.version, root)
    wish = Wish(case.layers, directory, case.form)
    installed = install.find(str(rig.python), variables, root)
    support.refuse(support.check(wish, installed, flags, variables, root))
    before = stamps(installed.package)
    added = needs.prepare(wish, installed, flags, variables)
    # --disable-radix-cache is among the rig's flags already, and given twice it does no harm.
    scenario = Scenario(
        "capture",
        "none",
        (READY,),
        tp=case.tp,
        flags=(*flags, *added.flags),
        environment=tuple(added.environment.items()),
    )
    with start(scenario, directory=root / "log", version=case.version, rig=rig) as launch:
        launch.wait_until_ill()
        tokens = talk(launch)
        wait_until_written(launch, directory, 4)
        kill_a_rank(launch)
        log = launch.text()
    return Captured(case, model, directory, installed, added, tokens, log, before)


@pytest.fixture(scope="module")
def compared(captured: Captured, torch_python: Any) -> dict[str, Any]:
    case = captured.case
    layers = ",".join(map(str, case.layers))
    value: dict[str, Any] = json.loads(
        torch_python("tests.capture.compare", captured.model, captured.directory, layers, DTYPE, NEW_TOKENS)
    )
    return value


def test_the_states_are_those_that_transformers_computes(captured: Captured, compared: dict[str, Any]) -> None:
    """Each state is transformers' of the same number within the type's noise, and far from any other number's."""
    for sample in compared.values():
        assert max(*sample["errors"], sample["last_error"]) < PRECISE
        # Another layer, a forgotten residual or the state before the norm would be at least this far off.
        assert sample["nearest_wrong"] > 0.1
        assert sample["dtypes"]["hidden_state"] == sample["dtypes"]["aux_hidden_state"] == f"torch.{DTYPE}"


def test_exactly_the_prompts_are_there(captured: Captured, compared: dict[str, Any]) -> None:
    """Every prompt of a request is one sample, chunked ones whole; warm-up, health checks, decoding leave none."""
    suffix = ".ckpt" if captured.case.form == "specforge" else ".safetensors"
    found = {name: sample["ids"] for name, sample in compared.items()}
    assert sorted(found.values()) == sorted([LONG, SHORT, FOUR, LONG])
    assert found[f"data_4321{suffix}"] == FOUR
    assert compared[f"data_4321{suffix}"]["mask"] == [0, 1, 1, 0]
    assert all(set(sample["mask"]) == {1} for name, sample in compared.items() if "4321" not in name)
    assert (captured.directory / "rows_4000-6000" / f"data_4321{suffix}").is_file()
    for sample in compared.values():
        length, width = len(sample["ids"]), 128
        shapes = {"hidden_state": [1, length, width], "aux_hidden_state": [1, length, 3 * width]}
        assert sample["shapes"] == {"input_ids": [length], "loss_mask": [length], **shapes}


def test_the_answers_are_the_same(captured: Captured, compared: dict[str, Any]) -> None:
    """The server generates, under capture, what greedy decoding by transformers generates."""
    expected = {tuple(sample["ids"]): sample["generated"] for sample in compared.values()}
    for ids, tokens in zip((LONG, SHORT, FOUR), captured.tokens[:3], strict=True):
        assert tokens == expected[tuple(ids)]


def test_a_killed_rank_leaves_whole_samples(captured: Captured) -> None:
    """After a rank was killed every finished sample is whole, and status tells what became of the prompts."""
    document = verify(read(captured.directory))
    assert document["damaged"] == []
    assert document["without_checksum"] == 0
    counts = status(read(captured.directory))["counts"]
    assert (counts["written"], counts["already_there"], counts.get("nan", 0)) == (4, 1, 0)
    assert counts["warm_up"] >= 1
    assert captured.log.count("hangdoc capture: inputs of layers") == 1


def test_the_installed_server_is_untouched(captured: Captured) -> None:
    """No source file of SGLang has changed, and with the private directory gone only samples and records are left."""
    assert stamps(captured.installed.package) == captured.before
    needs.remove(captured.added)
    assert not list(captured.directory.glob(".hangdoc/code-*"))
    assert captured.added.way.startswith("plugin" if captured.case.version == NEWEST else "import hook")


def test_specforge_reads_the_directory(captured: Captured, specforge: Path, torch_python: Any) -> None:
    """SpecForge's own reader, its eager check switched on, takes every sample."""
    if captured.case.form != "specforge":
        pytest.skip("cannot be had here: this case writes safetensors, which SpecForge does not read")
    read_by_specforge = json.loads(torch_python("tests.capture.read_specforge", captured.directory, path=(specforge,)))
    assert sorted(sample["ids"] for sample in read_by_specforge.values()) == sorted([LONG, SHORT, FOUR, LONG])
    assert {path.name for path in captured.directory.glob("rows_*/data_*")} == {
        Path(path).name for path in read_by_specforge
    }


def test_the_repository_is_what_runs() -> None:
    """The tests use this checkout's capture code, not an installed one."""
    assert Path(needs.__file__).is_relative_to(ROOT)
