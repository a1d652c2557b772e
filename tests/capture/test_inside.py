"""What runs in the server, without a server: it gets in, bothers nobody there, and knows what a batch is."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hangdoc.capture import layout, passes
from hangdoc.capture.assemble import MOST_OPEN, Assembly, Chunk
from hangdoc.capture.passes import Portion
from hangdoc.capture.room import Room
from hangdoc.capture.unsupported import refusals
from hangdoc.capture.warming import Warming, marked, ready_ends
from hangdoc.samples import needs
from hangdoc.samples.install import Install
from hangdoc.samples.wish import Wish

MODULES = {
    "srt/model_executor/model_runner.py": "class ModelRunner:\n    def load_model(self): return 'loaded'\n",
    "srt/managers/scheduler.py": "class Scheduler:\n    def run_batch(self, batch): return batch\n",
    "srt/managers/tokenizer_manager.py": "class TokenizerManager:\n    def __init__(self): self.server_status = None\n",
    "srt/entrypoints/http_server.py": "def _wait_and_warmup(): pass\n",
}
PLUGINS = "srt/plugins/__init__.py"
CHILD = """
import importlib, multiprocessing, sys
def show():
    from sglang.srt.managers.scheduler import Scheduler
    import sitecustomize
    print(hasattr(Scheduler.run_batch, '__wrapped__'), getattr(sitecustomize, 'USERS_OWN', None), flush=True)
if __name__ == '__main__':
    show()
    child = multiprocessing.get_context('spawn').Process(target=show)
    child.start(); child.join()
"""


def fake_sglang(root: Path, *, with_plugins: bool) -> Install:
    package = root / "site" / "sglang"
    for path, text in {**MODULES, **({PLUGINS: "def load_plugins(): pass\n"} if with_plugins else {})}.items():
        (package / path).parent.mkdir(parents=True, exist_ok=True)
        (package / path).write_text(text)
    return Install(package, "0.0", sys.version_info[:2])


def prepared(tmp_path: Path, *, with_plugins: bool, **environment: str) -> needs.Additions:
    installed = fake_sglang(tmp_path, with_plugins=with_plugins)
    return needs.prepare(Wish((1, 2, 3), tmp_path / "samples"), installed, (), environment)


def run(code: str, tmp_path: Path, environment: dict[str, str]) -> str:
    program = tmp_path / "program.py"
    program.write_text(code)
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [sys.executable, program], env=plain | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_needs_the_standard_library_alone(tmp_path: Path) -> None:
    """The private copy is imported whole by a bare interpreter: no package but its own and Python's is loaded."""
    added = prepared(tmp_path, with_plugins=True)
    names = sorted(path.stem for path in (added.private / needs.PACKAGE).glob("*.py"))
    code = f"import sys; sys.path.insert(0, {str(added.private)!r})\n"
    code += "".join(f"import {needs.PACKAGE}.{name}\n" for name in names if name != "__init__")
    code += "print({name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names) - {'__main__'})"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{{'{needs.PACKAGE}'}}\n"


@pytest.mark.parametrize("path", sorted(Path(layout.__file__).parent.glob("*.py")), ids=lambda path: path.stem)
def test_it_is_written_for_older_interpreters(path: Path) -> None:
    """What runs in the server has the syntax of Python 3.10."""
    ast.parse(path.read_text(), feature_version=(3, 10))


def test_the_import_hook_lives_beside_the_users_sitecustomize(tmp_path: Path) -> None:
    """Without plugins, a launch and its spawned children are hooked, and the user's sitecustomize runs as before."""
    users = tmp_path / "users"
    users.mkdir()
    (users / "sitecustomize.py").write_text("USERS_OWN = 'ran'\n")
    before = os.pathsep.join((str(users), str(tmp_path / "site")))
    added = prepared(tmp_path, with_plugins=False, PYTHONPATH=before)
    assert added.environment["PYTHONPATH"].endswith(before)
    assert run(CHILD, tmp_path, added.environment) == "True ran\n" * 2


def test_the_plugin_is_found_beside_others(tmp_path: Path) -> None:
    """With plugins, the private entry point is found next to the user's, and a list of allowed plugins gets it too."""
    other = tmp_path / "users" / "theirs-1.0.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (other / "entry_points.txt").write_text(f"[{needs.GROUP}]\ntheirs = json:dumps\n")
    added = prepared(tmp_path, with_plugins=True, PYTHONPATH=str(other.parent), SGLANG_PLUGINS="theirs")
    code = "from importlib.metadata import entry_points\n"
    code += f"for point in entry_points(group={needs.GROUP!r}): print(point.name, point.load().__name__)"
    assert set(run(code, tmp_path, added.environment).splitlines()) == {"hangdoc-capture activate", "theirs dumps"}
    assert added.environment["SGLANG_PLUGINS"] == "theirs,hangdoc-capture"
    assert not (added.private / "sitecustomize.py").exists()


def test_a_private_directory_goes_with_its_launch(tmp_path: Path) -> None:
    """What a dead launch has left is swept at the next one; what a living process uses, or has yet to use, is not."""
    added = prepared(tmp_path, with_plugins=False, PYTHONPATH=str(tmp_path / "site"))
    unused = prepared(tmp_path, with_plugins=False)
    run("pass", tmp_path, added.environment)
    used = prepared(tmp_path, with_plugins=False)
    assert (added.private.exists(), unused.private.exists()) == (False, True)
    users = used.private / "processes"
    users.mkdir()
    (users / f"{os.getpid()}-{layout.started_at(os.getpid())}").touch()
    prepared(tmp_path, with_plugins=False)
    assert used.private.exists()


def request(rid: str, length: int, output: int = 0, **params: Any) -> SimpleNamespace:
    sampling = SimpleNamespace(custom_params=params or None)
    return SimpleNamespace(
        rid=rid, origin_input_ids=list(range(length)), output_ids=[1] * output, sampling_params=sampling
    )


def batch(mode: str, *rows: tuple[SimpleNamespace, int, int]) -> SimpleNamespace:
    requests, starts, extents = zip(*rows, strict=True) if rows else ((), (), ())
    return SimpleNamespace(
        forward_mode=SimpleNamespace(name=mode), reqs=requests, prefix_lens=list(starts), extend_lens=list(extents)
    )


def test_a_batch_is_split_by_request() -> None:
    """Rows follow each other in the order of the requests; rows of decoding and of retracted requests are left out."""
    new, chunk = request("new", 4), request("chunk", 30)
    decoding, just_decoding = request("old", 5, 2), request("just", 5)
    read = passes.read(
        batch("MIXED", (new, 0, 4), (decoding, 6, 1), (chunk, 16, 8), (just_decoding, 5, 1), (request("r", 5, 3), 0, 5))
    )
    assert read is not None
    assert [(p.request, p.start, p.first_row, p.rows, p.is_last) for p in read.portions] == [
        ("new", 0, 0, 4, True),
        ("chunk", 16, 5, 8, False),
    ]
    assert read.rows == 19


@pytest.mark.parametrize("mode", ["DECODE", "IDLE", "TARGET_VERIFY", "DRAFT_EXTEND_V2", "SPLIT_PREFILL"])
def test_other_passes_are_none_of_ours(mode: str) -> None:
    """Only passes that run prompts are captured."""
    assert passes.read(batch(mode, (request("a", 3), 0, 3))) is None
    assert passes.read(batch("EXTEND")) is None


@pytest.mark.parametrize(("given", "index"), [(7, 7), (True, None), (-1, None), ("7", None)])
def test_a_samples_number_is_a_whole_number(given: Any, index: int | None) -> None:
    """A number that is none is not taken for one."""
    read = passes.read(batch("EXTEND", (request("a", 3, hangdoc_index=given), 0, 3)))
    assert read is not None
    assert read.portions[0].index == index


def portion(name: str, start: int, rows: int, length: int) -> Portion:
    return Portion(name, range(length), start, 0, rows)


def chunk(rows: int) -> Chunk:
    return Chunk((), None, None, 0, rows)


def test_chunks_become_one_sample() -> None:
    """A prompt in three passes, another one between them, is complete with the third."""
    assembly = Assembly()
    assert assembly.add(portion("a", 0, 4, 10), chunk(4)) == (None, False)
    assert assembly.add(portion("b", 0, 2, 2), chunk(2))[0] is not None
    assert assembly.add(portion("a", 4, 4, 10), chunk(4)) == (None, False)
    sample, _ = assembly.add(portion("a", 8, 2, 10), chunk(2))
    assert sample is not None
    assert sample.rows == 10


def test_rows_in_the_prefix_cache_are_missed() -> None:
    """A prompt whose first rows never ran is told, and no sample."""
    assembly = Assembly()
    assert assembly.add(portion("a", 3, 2, 5), chunk(2)) == (None, True)


def test_aborted_prompts_do_not_pile_up() -> None:
    """Prompts of which only the first chunk came are dropped in time; one that begins anew starts from its begin."""
    assembly = Assembly()
    for number in range(MOST_OPEN + 5):
        assembly.add(portion(str(number), 0, 1, 3), chunk(1))
    assert assembly.dropped == 5
    assembly.add(portion("64", 0, 1, 3), chunk(1))
    sample, _ = assembly.add(portion("64", 1, 2, 3), chunk(2))
    assert sample is not None
    assert (sample.rows, assembly.dropped) == (3, 6)


@pytest.mark.parametrize(
    ("index", "name"),
    [(0, "rows_0-2000/data_0.ckpt"), (1999, "rows_0-2000/data_1999.ckpt"), (2000, "rows_2000-4000/data_2000.ckpt")],
)
def test_samples_lie_where_specforge_puts_them(index: int, name: str) -> None:
    """2,000 samples share a directory, which is named after its numbers."""
    assert str(layout.sample_path(Path("/d"), index, ".ckpt").relative_to("/d")) == name


def test_the_next_number_follows_the_last(tmp_path: Path) -> None:
    """Numbers go on behind the last sample, compressed ones included; temporary files have none."""
    for name in ("rows_0-2000/data_3.ckpt", "rows_2000-4000/data_2001.ckpt.gz", "rows_2000-4000/.data_2007.1-1-0.tmp"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert layout.next_free(tmp_path) == 2002
    assert layout.exists(tmp_path, 2001, "specforge")
    assert not layout.exists(tmp_path, 2001, "safetensors")


@pytest.mark.parametrize(
    ("free", "size", "low", "too_little"),
    [(50, 100, False, False), (9, 100, True, False), (5, 100, True, True), (17 << 30, 1 << 40, False, False)],
)
def test_room(free: int, size: int, low: bool, too_little: bool) -> None:
    """A tenth left is low, of a big volume 16 GiB; a sample that would leave less than the reserve is too much."""
    room = Room(free, size)
    assert (room.is_low, room.is_too_little_for(5)) == (low, too_little)


def test_scattered_states_are_refused() -> None:
    """Each way to run that scatters states is named with its reason; the same arguments switched off are fine."""
    fine = {"pp_size": 1, "enable_dp_attention": False, "moe_a2a_backend": "none", "speculative_algorithm": None}
    assert refusals(fine | {"unknown": 3}) == []
    said = refusals({"pp_size": 2, "attn_dp_size": 4, "moe_a2a_backend": "deepep", "speculative_algorithm": "EAGLE3"})
    assert [sentence.partition(":")[0] for sentence in said] == [
        "pp_size=2",
        "attn_dp_size=4",
        "moe_a2a_backend=deepep",
        "speculative_algorithm=EAGLE3",
    ]


class Plain:
    """As older versions keep the status."""

    def __init__(self) -> None:
        self.server_status: Any = None


class Property:
    """As newer ones do."""

    kept: Any = None

    @property
    def server_status(self) -> Any:
        return self.kept

    @server_status.setter
    def server_status(self, value: Any) -> None:
        self.kept = value


@pytest.mark.parametrize("kind", [Plain, Property])
def test_the_warm_up_ends_before_the_server_says_so(tmp_path: Path, kind: type[Any]) -> None:
    """The mark is gone when the status is `Up`, in either version's way to keep it, and the status stays as set."""
    warming = Warming(tmp_path)
    owner = type(kind.__name__, (kind,), dict(vars(kind)))
    ready_ends(owner, warming)
    seen = []

    def warm_up(manager: Any) -> None:
        seen.append(warming.goes_on())
        manager.server_status = SimpleNamespace(name="Up")
        seen.append(warming.goes_on())

    manager = owner()
    marked(warm_up, warming)(manager)
    assert seen == [True, False]
    assert manager.server_status.name == "Up"


def test_settings_reach_the_server(tmp_path: Path) -> None:
    """What was wished is what the private directory says."""
    added = prepared(tmp_path, with_plugins=True)
    told = json.loads((added.private / "settings.json").read_text())
    assert told == {"layers": [1, 2, 3], "directory": str(tmp_path / "samples"), "form": "specforge"}
