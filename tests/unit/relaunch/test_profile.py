"""Which profile applies is decided from NVML; what it changes, in whose words, and what stays as the user said."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hangdoc.errors import HangdocError
from hangdoc.model.gpu import OLDER, Gpu
from hangdoc.model.reading import Known, Missing
from hangdoc.relaunch.engine import engine_in, read_options
from hangdoc.relaunch.gpus import Choice, choose
from hangdoc.relaunch.profile import builtin, named
from hangdoc.relaunch.records import Change, Command
from hangdoc.relaunch.treat import Facts, treat
from tests.fake_nvml.stub import FakeNvml
from tests.unit.relaunch.stage import Stage

SM120 = (
    "gpus 8",
    "name NVIDIA RTX PRO 6000 Blackwell Server Edition",
    *(f"gpu {index} major 12" for index in range(8)),
)
OLD_WORDS = """
parser.add_argument("--attention-backend")
parser.add_argument("--disable-cuda-graph")
parser.add_argument("--disable-radix-cache")
parser.add_argument("--chunked-prefill-size")
"""
NEW_FIELDS = """
class Fields:
    attention_backend: A[Optional[str]] = None
    cuda_graph_backend_decode: A[Optional[str]] = None
    cuda_graph_backend_prefill: A[Optional[str]] = None
    disable_radix_cache: A[bool] = False
    chunked_prefill_size: A[Optional[int]] = None
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> FakeNvml:
    return FakeNvml(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def nvml(library: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    library.install(monkeypatch)
    return library


def installed(folder: Path, *, new: bool) -> Path:
    """A directory with an SGLang of the old or the new vocabulary in it."""
    path = folder / ("new" if new else "old") / "sglang"
    fields = path / "srt" / "arg_groups" / "fields"
    fields.mkdir(parents=True)
    (path / "__init__.py").touch()
    (path / "srt" / "server_args.py").write_text('"--disable-cuda-graph"' if new else OLD_WORDS)
    (fields / "exec_.py").write_text(NEW_FIELDS if new else "")
    return path.parent


def sglang(folder: Path, *options: str, new: bool = True, **variables: str) -> Command:
    argv = (sys.executable, "-S", "-m", "sglang.launch_server", *options)
    return Command(argv, folder, {"PYTHONPATH": str(installed(folder, new=new)), **variables})


def treated(command: Command, **facts: Any) -> tuple[Command, Mapping[str, Change]]:
    choice = Choice(builtin()["sm120"], "it is a test")
    after, treatment = treat(command, choice, Facts(engine_in(command), **facts))
    return after, {one.text: one for one in treatment.changes}


def gpus(*majors: int) -> Known[tuple[Gpu, ...]]:
    unread = dict.fromkeys(("used_bytes", "total_bytes", "util_ratio", "power_w", "power_limit_w", "processes"), OLDER)
    return Known(
        tuple(
            Gpu(index=index, name=f"Card of {major}", compute_capability=Known((major, 0)), **unread)  # type: ignore[arg-type]
            for index, major in enumerate(majors)
        )
    )


def test_eight_sm120_cards_get_the_profile(stage: Stage, nvml: FakeNvml) -> None:
    """With auto, told by NVML: each change with its reason and source; tuning is only suggested; without capture graphs
    and prefix cache stay."""
    nvml.says(*SM120)
    ended = stage.relaunch(
        "--dry-run", "--json", "--", *stage.server(), PYTHONPATH=str(installed(stage.folder, new=True))
    )
    assert ended.code == 0, ended.err
    document = ended.document
    profile = document["profile"]
    assert profile["name"] == "sm120"
    assert profile["because"].startswith("all 8 GPUs are NVIDIA RTX PRO 6000 Blackwell Server Edition")
    assert document["command"]["argv"][-2:] == ["--attention-backend", "triton"]
    changes = document["command"]["environment"]["changes"]
    assert [(one["name"], one["after"]) for one in changes] == [("SGLANG_ENABLE_JIT_DEEPGEMM", "0")]
    assert all(one["reason"] and one["source"] for one in profile["changes"])
    hints = " ".join(profile["hints"])
    for word in ("NCCL_PROTO=LL", "NCCL_ALGO=Ring", "--num-continuous-decode-steps 4", "all_reduce_perf", "-g 8"):
        assert word in hints


def test_other_cards_get_none_and_the_plan_says_so(stage: Stage, nvml: FakeNvml) -> None:
    """An H200 is not treated."""
    nvml.says("gpus 2")
    ended = stage.relaunch("--dry-run", "--", *stage.server())
    assert "none: no profile is for NVIDIA H200 (fake) (compute capability 9.0)" in " ".join(ended.out.split())
    assert "--attention-backend" not in ended.out


def test_a_name_applies_anywhere_with_a_warning(stage: Stage, nvml: FakeNvml) -> None:
    """--profile sm120 on an H200: applied, and doubted."""
    nvml.says("gpus 2")
    ended = stage.relaunch(
        *("--dry-run", "--json", "--profile", "sm120", "--", *stage.server()),
        PYTHONPATH=str(installed(stage.folder, new=True)),
    )
    profile = ended.document["profile"]
    assert profile["name"] == "sm120"
    assert "sm120 is for compute capability 12.x" in profile["warnings"][0]
    assert ended.document["command"]["argv"][-1] == "triton"


def test_an_nvml_that_never_answers_is_no_reason_to_wait_or_to_guess(stage: Stage, nvml: FakeNvml) -> None:
    """No profile, a warning, and the plan all the same."""
    nvml.says(*SM120, "hang nvmlDeviceGetCudaComputeCapability")
    ended = stage.relaunch("--dry-run", "--json", "--", *stage.server())
    assert ended.code == 0, ended.err
    profile = ended.document["profile"]
    assert (profile["name"], "did not return" in profile["because"]) == (None, True)
    assert "--profile" in profile["warnings"][0]


def test_a_launch_that_hung_in_its_first_collective_loses_peer_access(tmp_path: Path) -> None:
    """NCCL_P2P_DISABLE only where NVML reports peers and the diagnosis speaks for it; else how to test it is told."""
    command = sglang(tmp_path)
    choice = Choice(builtin()["sm120"], "it is a test")
    engine = engine_in(command)
    for suspected, peers, is_made, is_hinted in (
        (frozenset({"HD107"}), True, True, False),
        (frozenset({"HD201"}), True, False, True),
        (frozenset({"HD107"}), False, False, False),
    ):
        facts = Facts(engine, peers_reported=peers, suspected=suspected, gpus=8)
        after, treatment = treat(command, choice, facts)
        assert ("NCCL_P2P_DISABLE" in after.environment) == is_made
        assert any("NCCL_P2P_DISABLE" in hint for hint in treatment.hints) == is_hinted


@pytest.mark.parametrize(
    ("new", "words"),
    [
        (True, ("--cuda-graph-backend-decode=disabled", "--cuda-graph-backend-prefill=disabled")),
        (False, ("--disable-cuda-graph",)),
    ],
)
def test_options_are_spelled_as_the_sglang_at_hand_knows_them(
    tmp_path: Path, new: bool, words: tuple[str, ...]
) -> None:
    """By its sources, not by its number; for capture graphs and prefix cache go off and a prompt stays whole."""
    after, _ = treated(sglang(tmp_path, new=new), capturing=True)
    added = after.argv[4:]
    assert added == ("--attention-backend", "triton", *words, "--disable-radix-cache", "--chunked-prefill-size", "-1")


@pytest.mark.parametrize(
    ("given", "text", "outcome"),
    [
        (("--attention-backend", "flashinfer"), "--attention-backend triton", "yours"),
        (("--attention_backend=fa4",), "--attention-backend triton", "yours"),
        (("--decode-attention-backend", "trtllm_mla"), "--attention-backend triton", "yours"),
        (("--attention-back", "fa4"), "--attention-backend triton", "yours"),
        (("--attention-backend", "triton"), "--attention-backend triton", "already"),
        (
            ("--disable-cuda-graph",),
            "--cuda-graph-backend-decode=disabled --cuda-graph-backend-prefill=disabled",
            "already",
        ),
        (
            ("--cuda-graph-backend-decode", "full"),
            "--cuda-graph-backend-decode=disabled --cuda-graph-backend-prefill=disabled",
            "yours",
        ),
    ],
)
def test_the_users_own_option_wins(tmp_path: Path, given: tuple[str, ...], text: str, outcome: str) -> None:
    """In every spelling argparse takes, and by whichever option decides the same; it is reported."""
    command = sglang(tmp_path, *given)
    after, changes = treated(command, capturing=True)
    assert changes[text].outcome == outcome
    option = text.partition(" ")[0].partition("=")[0]
    assert not [word for word in after.argv[len(command.argv) :] if word.startswith(option)]


def test_the_users_own_variable_wins(tmp_path: Path) -> None:
    """From the launch's environment or --set."""
    after, changes = treated(sglang(tmp_path, SGLANG_ENABLE_JIT_DEEPGEMM="1"))
    assert after.environment["SGLANG_ENABLE_JIT_DEEPGEMM"] == "1"
    assert changes["SGLANG_ENABLE_JIT_DEEPGEMM=0"].outcome == "yours"


def test_what_stands_in_an_option_file_is_the_users_own(tmp_path: Path) -> None:
    """The command line would win over --config, so it is not added."""
    (tmp_path / "server.yaml").write_text("tp: 8\nattention_backend: fa4\n")
    command = sglang(tmp_path, "--config", "server.yaml")
    after, changes = treated(command)
    assert after.argv == command.argv
    assert "server.yaml" in changes["--attention-backend triton"].detail


def test_a_script_gets_variables_only_and_the_plan_says_so(tmp_path: Path) -> None:
    """hangdoc adds no option to a program whose options it does not know."""
    command = Command(("bash", "run.sh"), tmp_path, {})
    after, treatment = treat(command, Choice(builtin()["sm120"], "it is a test"), Facts(engine_in(command)))
    assert after.argv == command.argv
    assert after.environment["SGLANG_ENABLE_JIT_DEEPGEMM"] == "0"
    assert [one.outcome for one in treatment.changes if one.place == "command"] == ["impossible"]
    assert treatment.warnings


@pytest.mark.parametrize("prefix", [("timeout", "900"), ("env", "A=b"), ("numactl", "--interleave=all")])
def test_an_engine_behind_a_wrapper_is_found(tmp_path: Path, prefix: tuple[str, ...]) -> None:
    """`timeout 900 python -m sglang.launch_server`: the option goes to the engine."""
    command = sglang(tmp_path)
    after, _ = treated(replace(command, argv=(*prefix, *command.argv)))
    assert after.argv[-2:] == ("--attention-backend", "triton")


def test_mixed_cards_get_none_unless_only_the_fitting_are_visible() -> None:
    """CUDA_VISIBLE_DEVICES says which cards a launch has."""
    assert choose("auto", gpus(12, 9), {}).profile is None
    chosen = choose("auto", gpus(12, 9), {"CUDA_VISIBLE_DEVICES": "0"})
    assert chosen.profile is not None
    assert chosen.profile.name == "sm120"
    assert choose("auto", Missing("gpu", "denied", "no"), {}).warnings
    assert choose("auto", gpus(), {}).because == "there is no NVIDIA GPU for it"


def test_a_profile_of_ones_own(tmp_path: Path) -> None:
    """A file is read like those that hangdoc brings."""
    path = tmp_path / "mine.toml"
    path.write_text(
        'name = "mine"\ntitle = "my cards"\n[[change]]\nvariable = "NCCL_DEBUG"\nvalue = "INFO"\nwhen = "always"\n'
        'reason = "to see more"\nsource = "me"\n'
    )
    choice = choose(str(path), gpus(9), {})
    command = Command(("true",), tmp_path, {})
    after, treatment = treat(command, choice, Facts(None))
    assert after.environment == {"NCCL_DEBUG": "INFO"}
    assert (treatment.name, treatment.warnings) == ("mine", ())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("name = ", "is no profile"),
        ('name = "x"', "title"),
        ('name = "x"\ntitle = "y"\n[[change]]\nwhen = "sometimes"', "sometimes"),
        (
            'name = "x"\ntitle = "y"\n[[change]]\nwhen = "always"\nreason = "r"\nsource = "s"',
            "either words or a variable",
        ),
        (
            'name = "x"\ntitle = "y"\n[[change]]\nwhen = "always"\nreason = "r"\nsource = "s"\nword = "--a"',
            "word is no field",
        ),
        (
            'name = "x"\ntitle = "y"\n[[change]]\nwhen = "always"\nreason = "r"\nsource = "s"\nwords = [["a"]]',
            "begin with an option",
        ),
        ('name = "x"\ntitle = "y"\nchanges = []\nchange = []', "changes is no field"),
    ],
)
def test_a_file_that_is_no_profile_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    """What would silently do nothing is an error."""
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(HangdocError, match="is no profile") as raised:
        named(str(path))
    assert complaint in raised.value.message


def test_every_builtin_entry_says_why_and_whence() -> None:
    """No change without a reason and a source."""
    for profile in builtin().values():
        assert all(entry.reason and entry.source for entry in profile.change)


def test_options_are_read_from_both_places(tmp_path: Path) -> None:
    """Quoted words up to 0.5.8, annotated fields in 0.5.23; without sources nothing is known."""
    old = read_options(installed(tmp_path, new=False) / "sglang")
    new = read_options(installed(tmp_path, new=True) / "sglang")
    assert old is not None
    assert new is not None
    assert "--cuda-graph-backend-decode" in new - old
    assert read_options(tmp_path) is None
