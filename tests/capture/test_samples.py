"""`hangdoc capture status` and `verify`, and what is said before a launch: from files alone."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import pickle
import struct
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from hangdoc.capture.layout import RECORDS, started_at, temporary
from hangdoc.cli.main import run
from hangdoc.errors import HangdocError
from hangdoc.samples import install, needs, support, tensors
from hangdoc.samples.install import Install
from hangdoc.samples.wish import Wish, differs, wish

DATA = Path(__file__).parent / "data"
WHOLE, WITH_NAN = (DATA / "whole.ckpt").read_bytes(), (DATA / "nan.ckpt").read_bytes()


def put(directory: Path, number: int, content: bytes = WHOLE, *, note: bool = True, suffix: str = ".ckpt") -> Path:
    """A sample as the writer leaves it."""
    name = f"rows_0-2000/data_{number}{suffix}"
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    if note:
        shapes = {"hidden_state": [1, 3, 4], "aux_hidden_state": [1, 3, 12]}
        line = {"event": "writing", "path": name, "index": number, "tokens": 3, "shapes": shapes, "at": 100.0 + number}
        line |= {"dtype": "torch.bfloat16", "sha256": hashlib.sha256(content).hexdigest()}
        written = {"event": "written", "path": name, "at": 100.0 + number}
        record(directory, "manifest-1-1.jsonl", json.dumps(line) + "\n" + json.dumps(written) + "\n")
    return path


def record(directory: Path, name: str, text: str) -> None:
    (directory / RECORDS).mkdir(parents=True, exist_ok=True)
    with (directory / RECORDS / name).open("a") as stream:
        stream.write(text)


def told(capsys: pytest.CaptureFixture[str], action: str, directory: Path) -> tuple[int, dict[str, Any]]:
    code = run(["capture", action, str(directory), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_a_whole_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whole samples, plain and compressed, are counted by both, and the exit code is 0."""
    put(tmp_path, 0)
    put(tmp_path, 1, gzip.compress(WHOLE), suffix=".ckpt.gz")
    code, document = told(capsys, "verify", tmp_path)
    assert (code, document["samples"], document["damaged"]) == (0, 2, [])
    code, document = told(capsys, "status", tmp_path)
    assert (code, document["samples"], document["tokens"], document["gaps"]) == (0, 2, 6, [])
    assert document["shapes"] == {
        "tokens": [3, 3],
        "hidden_state": [4],
        "aux_hidden_state": [12],
        "dtype": ["bfloat16"],
    }
    assert document["bytes_per_token"] == round((len(WHOLE) + len(gzip.compress(WHOLE))) / 6, 1)
    assert document["bytes_per_s"] == len(gzip.compress(WHOLE))


def changed(content: bytes) -> bytes:
    """One bit of a state."""
    place = content.index(b"data/3") + 70
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


@pytest.mark.parametrize(
    ("content", "noted", "fault"),
    [
        (WHOLE[: len(WHOLE) // 2], WHOLE, "is not what was written (its checksum differs)"),
        (changed(WHOLE), WHOLE, "is not what was written (its checksum differs)"),
        (WHOLE[: len(WHOLE) // 2], None, "is damaged (BadZipFile"),
        (b"", None, "is damaged (BadZipFile"),
        (WITH_NAN, None, "has NaN"),
    ],
)
def test_a_damaged_sample(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, noted: bytes | None, fault: str
) -> None:
    """A sample that is cut, changed or has NaN is named with its fault, and the exit code is 1."""
    put(tmp_path, 0)
    put(tmp_path, 1, noted or content, note=noted is not None).write_bytes(content)
    code, document = told(capsys, "verify", tmp_path)
    assert code == 1
    assert [one["path"] for one in document["damaged"]] == ["rows_0-2000/data_1.ckpt"]
    assert document["damaged"][0]["fault"].startswith(fault)
    assert run(["capture", "verify", str(tmp_path)]) == 1
    assert "1 of 2 samples are whole\ndamaged:\n  rows_0-2000/data_1.ckpt" in capsys.readouterr().out


class Evil:
    """Runs a command when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch was-run",)


def test_nothing_in_a_sample_is_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file whose pickle would run a program is damaged, and the program does not run."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "rows_0-2000" / "data_0.ckpt"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"input_ids": Evil()}))
    code, document = told(capsys, "verify", tmp_path)
    assert code == 1
    assert "system" in document["damaged"][0]["fault"]
    assert not Path("was-run").exists()


def safetensors(**parts: tuple[str, list[int], bytes]) -> bytes:
    header, data = {}, b""
    for name, (dtype, shape, raw) in parts.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def a_safetensors_sample(*, length: int = 2, state: float = 1.0, layers: int = 3) -> bytes:
    ids = ("I64", [2], struct.pack("<2q", 1, 2))
    last = ("F32", [1, length, 1], struct.pack(f"<{length}f", *[state] * length))
    aux = ("F32", [1, length, layers], struct.pack(f"<{length * layers}f", *[1.0] * length * layers))
    return safetensors(input_ids=ids, loss_mask=ids, hidden_state=last, aux_hidden_state=aux)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (a_safetensors_sample(), ""),
        (a_safetensors_sample(state=float("inf")), ""),
        (a_safetensors_sample(state=float("nan")), "has NaN"),
        (a_safetensors_sample(length=3), "hidden_state has the shape (1, 3, 1), expected (1, 2, 1)"),
        (a_safetensors_sample(layers=2), "aux_hidden_state has the shape (1, 2, 2), expected (1, 2, 3)"),
        (a_safetensors_sample()[:-1], "is damaged: aux_hidden_state ends behind the file's end"),
        (b"\xff" * 20, "is damaged: its header is longer than the file"),
        (safetensors(input_ids=("I64", [0], b"")), "lacks loss_mask, hidden_state, aux_hidden_state"),
    ],
)
def test_safetensors(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, fault: str) -> None:
    """The other format is read by hand as strictly: shapes by the layers wanted, NaN, cut files."""
    put(tmp_path, 0, content, suffix=".safetensors")
    record(tmp_path, "run.json", json.dumps({"layers": [1, 2, 3], "form": "safetensors"}))
    code, document = told(capsys, "verify", tmp_path)
    assert code == bool(fault)
    assert [one["fault"] for one in document["damaged"]] == [fault] * bool(fault)


@pytest.mark.parametrize(
    ("dtype", "raw", "expected"),
    [
        ("float16", struct.pack("<3e", 1, float("inf"), -2), False),
        ("float16", struct.pack("<3e", 1, float("nan"), -2), True),
        ("float64", struct.pack("<2d", -float("inf"), 3), False),
        ("float64", struct.pack("<2d", float("nan"), 3), True),
        ("bfloat16", b"\x80\x7f\x80\xff\x7f\x7f", False),
        ("bfloat16", b"\x80\x3f\xc0\xff", True),
        ("int64", b"\xff" * 16, False),
    ],
)
def test_nan(dtype: str, raw: bytes, expected: bool) -> None:
    """NaN is told from infinities and from the largest numbers in every type."""
    tensor = tensors.Tensor(dtype, (len(raw) // tensors.SIZES_BYTES[dtype],), lambda: io.BytesIO(raw))
    assert tensors.has_nan(tensor) is expected


def test_gaps_interrupted_and_unfinished_are_no_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Missing numbers, removed and interrupted samples and stray temporary files are told; the exit code stays 0."""
    for number in (0, 3, 4):
        put(tmp_path, number)
    put(tmp_path, 5).unlink()
    record(tmp_path, "manifest-2-2.jsonl", json.dumps({"event": "writing", "path": "rows_0-2000/data_9.ckpt"}) + "\n{")
    stray = temporary(tmp_path / "rows_0-2000" / "data_9.ckpt", 2**22 - 1, 0)
    mine = temporary(tmp_path / "rows_0-2000" / "data_8.ckpt", os.getpid(), 0)
    stray.touch()
    mine.touch()
    code, document = told(capsys, "verify", tmp_path)
    assert code == 0
    assert document["gaps"] == [[1, 2]]
    assert document["removed"] == ["rows_0-2000/data_5.ckpt"]
    assert document["interrupted"] == ["rows_0-2000/data_9.ckpt"]
    assert document["unfinished"] == [f"rows_0-2000/{stray.name}"]
    assert run(["capture", "status", str(tmp_path)]) == 0
    assert "missing numbers: 1 to 2" in capsys.readouterr().out


def test_a_stopped_capture_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A capture that stopped by itself is told with its reason, and the exit code is 1."""
    put(tmp_path, 0)
    facts = {"pid": os.getpid(), "start_ticks": started_at(os.getpid()), "state": "stopped", "reason": "no room\x1b[2J"}
    record(tmp_path, "writer-1-1.json", json.dumps(facts | {"counts": {"written": 1, "nan": 2}, "nan": [4, 7]}))
    assert run(["capture", "status", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert f"capture has STOPPED (pid {os.getpid()}, running): no room\n" in said
    assert "prompts: 1 written, 2 skipped for NaN" in said


@pytest.mark.parametrize("kind", ["absent", "empty", "file"])
def test_no_directory_of_samples(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    """What is no directory of samples is wrong use: one line, exit code 2."""
    path = {"absent": tmp_path / "absent", "empty": tmp_path, "file": tmp_path / "file"}[kind]
    (tmp_path / "file").touch()
    for action in ("status", "verify"):
        assert run(["capture", action, str(path)]) == 2
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("layers", "form"),
    [("1,x", "specforge"), ("", "specforge"), ("1,1", "specforge"), ("-1", "specforge"), ("1", "csv")],
)
def test_a_wish_that_makes_no_sense(tmp_path: Path, layers: str, form: str) -> None:
    """Layers that are no numbers, twice there or below 0, and unknown formats are wrong use."""
    with pytest.raises(HangdocError) as caught:
        wish(layers, tmp_path, form)
    assert caught.value.exit_code == 2


def test_a_directory_of_another_wish(tmp_path: Path) -> None:
    """Samples of other layers, or in another format, are not added to."""
    wanted = Wish((1, 2, 3), tmp_path)
    assert differs(wanted) == ""
    record(tmp_path, "run.json", json.dumps({"layers": [1, 2, 3], "form": "specforge"}))
    assert differs(wanted) == ""
    assert "layers [1, 2, 3], and [1, 2, 4]" in differs(Wish((1, 2, 4), tmp_path))
    assert "format specforge" in differs(Wish((1, 2, 3), tmp_path, "safetensors"))


SOURCES = {
    "srt/model_executor/model_runner.py": "class ModelRunner:\n  def load_model(self): ...\n",
    "srt/managers/scheduler.py": "class Scheduler:\n  def run_batch(self): ...\n",
    "srt/managers/tokenizer_manager.py": "class TokenizerManager:\n  server_status = 0\n",
    "srt/entrypoints/http_server.py": "def _wait_and_warmup(): ...\n",
    "srt/managers/schedule_batch.py": "prefix_lens, extend_lens, origin_input_ids = ...",
    "srt/sampling/sampling_params.py": "custom_params = ...",
    "srt/models/llama.py": "class LlamaForCausalLM: ...\n",
    "srt/models/streams.py": "import sglang.srt.layers.layer_boundary.residual.mhc\nclass StreamsForCausalLM: ...\n",
}


def sources(root: Path, **instead: str) -> Install:
    for path, text in SOURCES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(instead.get(Path(path).stem, text))
    return Install(root, "9.9", (3, 12))


def checked(tmp_path: Path, installed: Install, *argv: str, architecture: str = "LlamaForCausalLM") -> tuple[str, ...]:
    model = tmp_path / "model"
    model.mkdir(exist_ok=True)
    config = {"architectures": [architecture], "text_config": {"num_hidden_layers": 6}, "num_hidden_layers": 99}
    (model / "config.json").write_text(json.dumps(config))
    wanted = Wish((1, 3, 5), tmp_path / "samples")
    return support.check(wanted, installed, ("x", "--model-path", str(model), *argv), {}, tmp_path).faults


def test_what_a_supported_launch_needs_is_found(tmp_path: Path) -> None:
    """With everything in place there is no fault, and without a fault nothing is refused."""
    assert checked(tmp_path, sources(tmp_path / "sglang"), "--tp-size", "8", "--ep-size", "8") == ()
    support.refuse(support.Support(()))


def test_what_was_looked_for_and_not_found(tmp_path: Path) -> None:
    """An SGLang without the places to hook, or without the model, is refused naming each of them."""
    installed = sources(tmp_path / "sglang", scheduler="class Scheduler: ...\n", schedule_batch="", llama="")
    faults = checked(tmp_path, installed)
    assert (
        faults[0]
        == "SGLang 9.9: looked for Scheduler.run_batch in sglang/srt/managers/scheduler.py and did not find it"
    )
    assert "looked for the word prefix_lens in sglang/srt/managers/schedule_batch.py" in faults[1]
    assert faults[-1] == "looked for class LlamaForCausalLM in sglang/srt/models and did not find it"
    with pytest.raises(HangdocError, match=r"run_batch.*LlamaForCausalLM") as caught:
        support.refuse(support.Support(faults))
    assert "nothing was started or ended" in caught.value.remedy


def test_another_kind_of_residual_is_refused(tmp_path: Path) -> None:
    """A model whose residual is no plain sum is refused by what its file imports."""
    faults = checked(tmp_path, sources(tmp_path / "sglang"), architecture="StreamsForCausalLM")
    assert faults == ("StreamsForCausalLM: its residual is no plain sum (sglang/srt/models/streams.py: mhc)",)


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (("--pp-size", "2"), "pp_size=2"),
        (("--pipeline-parallel-size=2",), "pp_size=2"),
        (("--enable-dp-attention",), "enable_dp_attention=True"),
        (("--moe-a2a-backend", "deepep"), "moe_a2a_backend=deepep"),
        (("--speculative-algorithm", "EAGLE3"), "speculative_algorithm=EAGLE3"),
        (("--nnodes=2",), "nnodes=2"),
        (("--enable-piecewise-cuda-graph",), "enable_piecewise_cuda_graph=True"),
    ],
)
def test_arguments_that_scatter_states(tmp_path: Path, argv: tuple[str, ...], name: str) -> None:
    """A way to run under which no rank has whole states is refused before anything is started."""
    (fault,) = checked(tmp_path, sources(tmp_path / "sglang"), *argv)
    assert fault.startswith(f"{name}: ")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("python3", "-I", "-m", "sglang.launch_server"), ["python -I"]),
        (("/usr/bin/python3.11", "-uE", "server.py", "-S"), ["python -uE"]),
        (("python", "-u", "-m", "sglang.launch_server", "-E"), []),
        (("sglang", "-S", "serve"), []),
    ],
)
def test_an_isolated_interpreter(tmp_path: Path, argv: tuple[str, ...], said: list[str]) -> None:
    """An interpreter that is told to ignore PYTHONPATH or sitecustomize is refused: it would capture nothing."""
    wanted = Wish((1, 3, 5), tmp_path / "samples")
    faults = support.check(wanted, sources(tmp_path / "sglang"), argv, {}, tmp_path).faults
    assert [fault.partition(":")[0] for fault in faults] == said


def test_a_layer_that_does_not_exist(tmp_path: Path) -> None:
    """Layer 6 of 6 is wrong use: the state behind the last layer is no layer's input."""
    installed = sources(tmp_path / "sglang")
    checked(tmp_path, installed)
    argv = ("x", "--model-path", str(tmp_path / "model"))
    with pytest.raises(HangdocError, match=r"layer 6 does not exist: .* layers 0 to 5") as caught:
        support.check(Wish((1, 2, 6), tmp_path / "samples"), installed, argv, {}, tmp_path)
    assert caught.value.exit_code == 2


def test_a_model_of_the_hub(tmp_path: Path) -> None:
    """A model's name is looked up in the Hugging Face cache; one that is not there is a note, not a fault."""
    snapshot = tmp_path / "hub" / "models--a--b" / "snapshots" / "1"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text(json.dumps({"architectures": ["Absent"], "num_hidden_layers": 6}))
    installed, wanted = sources(tmp_path / "sglang"), Wish((1, 2), tmp_path / "samples")
    found = support.check(wanted, installed, ("--model", "a/b"), {"HF_HOME": str(tmp_path)}, tmp_path)
    assert found.faults == ("looked for class Absent in sglang/srt/models and did not find it",)
    assert found.notes == ("2 layers are wanted: SpecForge's EAGLE-3 training reads three",)
    unknown = support.check(wanted, installed, ("--model", "a/c"), {"HF_HOME": str(tmp_path)}, tmp_path)
    assert unknown.faults == ()
    assert unknown.notes[0].startswith("config.json of a/c is not on this machine")


@pytest.mark.parametrize(
    ("source", "argv", "expected"),
    [
        ("cuda_graph_backend_prefill", (), ("--disable-radix-cache", "--cuda-graph-backend-prefill=disabled")),
        ("disable_piecewise_cuda_graph", (), ("--disable-radix-cache", "--disable-piecewise-cuda-graph")),
        ("", (), ("--disable-radix-cache",)),
        ("cuda_graph_backend_prefill", ("--disable-cuda-graph", "--disable-radix-cache"), ()),
    ],
)
def test_flags_in_the_versions_own_words(
    tmp_path: Path, source: str, argv: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    """The prefix cache and prefill graphs are switched off as the version calls it, and nothing is given twice."""
    (tmp_path / "srt").mkdir()
    (tmp_path / "srt" / "server_args.py").write_text(source)
    assert needs.flags(Install(tmp_path, "9.9", (3, 12)), argv) == expected


def test_the_interpreter_is_asked(tmp_path: Path) -> None:
    """The launch's own interpreter says where its SGLang is; one without it is refused."""
    (tmp_path / "sglang").mkdir()
    (tmp_path / "sglang" / "__init__.py").write_text("raise SystemExit('it must not be imported')")
    found = install.find(sys.executable, {"PYTHONPATH": str(tmp_path)}, tmp_path)
    assert (found.package, found.python) == (tmp_path / "sglang", sys.version_info[:2])
    with pytest.raises(HangdocError, match="has no SGLang"):
        install.find(sys.executable, {}, tmp_path / "sglang")
    with pytest.raises(HangdocError, match="does not say where its SGLang is"):
        install.find("/bin/false", {}, tmp_path)


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    """A place where nothing can be made is one line and wrong use."""
    (tmp_path / "file").touch()
    with pytest.raises(HangdocError, match="cannot be written"):
        needs.prepare(Wish((1,), tmp_path / "file" / "samples"), sources(tmp_path / "sglang"), (), {})
