"""What stays of each kind of text, and what does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_origin

import msgspec
import pytest
from msgspec import Struct

from hangdoc.discovery import modules
from hangdoc.model.log import LogTail
from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.reading import Known
from hangdoc.model.snapshot import Plain, Sample
from hangdoc.trace import arguments, names, wording
from hangdoc.trace import redact as redaction
from hangdoc.trace.records import Header, SnapshotLine, StackLine
from hangdoc.trace.redact import TEXT_RULES, WHOLE_RULES, Redactor, redact
from hangdoc.trace.tokens import Tokens, is_token
from tests.unit.trace import sample

PACKAGES = "/opt/venv/lib/python3.12/site-packages"


@pytest.mark.parametrize(
    ("file", "kept"),
    [
        (f"{PACKAGES}/torch/distributed/distributed_c10d.py", "site-packages/torch/distributed/distributed_c10d.py"),
        ("/usr/lib/python3/dist-packages/six.py", "dist-packages/six.py"),
        ("/usr/lib/python3.12/threading.py", "lib/python3.12/threading.py"),
        ("/root/.pyenv/versions/3.13.0t/lib/python3.13t/queue.py", "lib/python3.13t/queue.py"),
        ("/usr/lib/python312.zip/os.py", "python312.zip/os.py"),
        ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap>"),
        ("<string>", "<string>"),
        ("/srv/site/sglang/srt/managers/scheduler.py", "sglang/srt/managers/scheduler.py"),
        ("/sgl-workspace/sglang/python/sglang/launch_server.py", "sglang/launch_server.py"),
        ("/home/alice/vllm/vllm/v1/engine/core.py", "vllm/v1/engine/core.py"),
        ("zmq/backend/cython/_zmq.py", "zmq/backend/cython/_zmq.py"),
        ("/usr/lib/x86_64-linux-gnu/libcuda.so.580.1", "libcuda.so.580.1"),
        ("/home/alice/project/serve.py", "<path-1>.py"),
        ("/home/alice/sglang/customer/serve.py", "<path-1>.py"),
        ("/home/alice/torch/train.py", "<path-1>.py"),
        ("serve.py", "<path-1>.py"),
        ("/home/alice/liballoy.so", "<path-1>.so"),
        ("/home/alice/secret.key", "<path-1>"),
        ("<ipython-input-3-secret>", "<path-1>"),
        (f"{PACKAGES}/torch/a b.py", "<path-1>.py"),
        (f"{PACKAGES}/../../../../home/alice/a.py", "<path-1>.py"),
        ("", ""),
    ],
)
def test_a_frames_file(file: str, kept: str) -> None:
    """What follows an installation's own directories stays, and ends as the path does; else the ending at most."""
    assert names.frame_file(Tokens(), file) == kept
    assert is_token(kept) or file.endswith(kept)


def test_every_frame_that_reasoning_looks_for_is_still_found() -> None:
    """Each file that an engine's table names ends alike before and after."""
    rules = [rule for module in modules("hangdoc.engines") for rule in module.ENGINE.frames]
    files = {rule.file for rule in rules if rule.file.endswith(".py")}
    assert files
    for file in files:
        assert names.frame_file(Tokens(), f"{PACKAGES}/{file}").endswith(f"/{file}")


@pytest.mark.parametrize(
    "target",
    [
        *(
            "pipe:[123]",
            "socket:[4026531992]",
            "anon_inode:[eventpoll]",
            "anon_inode:inotify",
            "/dev/null",
            "/dev/pts/3",
        ),
        *(
            "/dev/nvidia0",
            "/dev/nvidiactl",
            "/dev/nvidia-uvm",
            "/dev/nvidia-caps/nvidia-cap1",
            "/dev/infiniband/uverbs0",
        ),
    ],
)
def test_objects_of_the_kernel_keep_their_names(target: str) -> None:
    """A descriptor of a pipe, a socket, a device is what the reasoning about waits rests on."""
    assert names.path(Tokens(), target) == target


@pytest.mark.parametrize(
    ("target", "kept"),
    [
        ("/home/alice/server.log", "<path-1>.log"),
        ("/home/alice/server.log (deleted)", "<path-1>.log (deleted)"),
        ("/models/alice/model-00001-of-00006.safetensors", "<path-1>.safetensors"),
        ("/dev/shm/alice", "<path-1>"),
        ("/dev/nvidia-alice", "<path-1>"),
        ("pipe:[alice]", "<path-1>"),
        ("/memfd:alice (deleted)", "<path-1> (deleted)"),
    ],
)
def test_files_keep_a_harmless_ending(target: str, kept: str) -> None:
    """Of a file's path its ending stays where that says what it is for."""
    assert names.path(Tokens(), target) == kept


def test_a_command_line() -> None:
    """Program, public module, known options; values that are numbers or known words; this machine's addresses."""
    assert arguments.argv(Tokens(), sample.ARGV) == (
        *("python3", "-m", "sglang.launch_server", "--model-path", "<path-1>", "--tp", "2"),
        *("--host", "<host-1>", "--port=30000", "--api-key", "<arg-1>", "--dist-init-addr", "<host-2>:5000"),
        *("--disable-cuda-graph", "--cuda-graph-bs", "1", "2", "--attention-backend", "triton", "<arg-2>"),
    )


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("/usr/bin/python3 /home/alice/train.py --lr 3", "python3 <path-1>.py <arg-1> <arg-2>"),
        ("torchrun --nproc-per-node 2 --rdzv-endpoint=gpu7:29500 -m alice.train", None),
        ("vllm serve alice/model -tp 2 --max-model-len 8k", "vllm serve <path-1> -tp 2 --max-model-len <arg-1>"),
        ("python -m alice.serve --tp alice", "python -m <arg-1> --tp <arg-2>"),
        ("python3 -c print('alice')", "python3 -c <arg-1>"),
        ("x --host 127.0.0.1 --host 0.0.0.0 --host ::", "<arg-1> --host 127.0.0.1 --host 0.0.0.0 --host ::"),
        ("sglang --served-model-name=alice --kv-cache-dtype=fp8_e5m2", None),
        ("python --mem-fraction-static 0.88 --random-seed -1", "python --mem-fraction-static 0.88 --random-seed -1"),
    ],
)
def test_more_command_lines(words: str, kept: str | None) -> None:
    """Both forms of options, positional words, code, and words that only look like a known option's value."""
    found = " ".join(arguments.argv(Tokens(), words.split()))
    assert kept is None or found == kept
    assert "alice" not in found
    assert "gpu7" not in found


@pytest.mark.parametrize(
    "title",
    [
        *("sglang::scheduler_TP0", "sglang::scheduler_DP0_PP1_ATTN_CP0_MOE_DP1_TP0_EP3", "sglang::detokenizer"),
        *("VLLM::EngineCore_DP0", "VLLM::Worker_TP0_EP0", "VLLM::APIServer_0", "sglang::data_parallel_controller"),
        "python -B -c from multiprocessing.resource_tracker import main;main(6)",
        "python -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=7, pipe_handle=9)",
        "python --multiprocessing-fork",
    ],
)
def test_titles_that_engines_and_python_give_stay(title: str) -> None:
    """Roles and ranks are read from these."""
    assert arguments.title(Tokens(), title) == title


def test_a_title_and_its_argv_have_the_same_tokens() -> None:
    """The title of a process that gave itself none is its command line."""
    tokens = Tokens()
    assert arguments.title(tokens, " ".join(sample.ARGV)).split() == [*arguments.argv(tokens, sample.ARGV)]


def test_settings_keep_what_an_argv_keeps() -> None:
    """Numbers and known words stay under known names; all else is a token."""
    settings = {"tp_size": "2", "model_path": "/home/alice/m", "dist_init_addr": "10.0.0.7:5000", "alice": "1"}
    assert arguments.settings(Tokens(), settings) == {
        "tp_size": "2",
        "model_path": "<path-1>",
        "dist_init_addr": "<host-1>:5000",
        "<option-1>": "<arg-1>",
    }


@pytest.mark.parametrize(
    "name",
    [
        *("MainThread", "Thread-1 (_wait_and_warmup)", "Thread-12", "Thread-1 (_wait", "ThreadPoolExecutor-0_3", ""),
        *("AnyIO worker thread", "asyncio_0", "tqdm_monitor", "QueueFeederThread", "InductorSubproc", "Dummy-2"),
        *("pt_gloo_runloop", "pt_nccl_watchdg", "gloo_tcp_loop", "ZMQbg/IO/0", "ZMQbg/Reaper", "cuda-EvtHandlr"),
        *("cuda00001800007", "jemalloc_bg_thd", "libuv-worker", "sglang::schedul", "python3.12", "nvcc", "cc1plus"),
    ],
)
def test_names_of_threads_that_are_known_stay(name: str) -> None:
    """Helper threads are told from working ones by these."""
    assert names.thread(Tokens(), name) == name


@pytest.mark.parametrize(
    "name", ["alice", "Thread-1 (alice's)", "sglang-alice", "pt_alice's", "python3 alice", "Alice"]
)
def test_other_names_of_threads_become_tokens(name: str) -> None:
    """A name that a program or a person made up."""
    assert names.thread(Tokens(), name) == "<name-1>"


@pytest.mark.parametrize(
    "name",
    [
        *("NVIDIA H200", "NVIDIA A100-SXM4-80GB", "NVIDIA GeForce RTX 4090", "NVIDIA H100 80GB HBM3", "Tesla T4"),
        *("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "NVIDIA GH200 480GB", "NVIDIA RTX 6000 Ada Generation"),
        *("NVIDIA GeForce RTX 5070 Ti Laptop GPU", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "AMD Instinct MI300X"),
    ],
)
def test_names_of_gpus_stay(name: str) -> None:
    """A product's name."""
    assert names.gpu(Tokens(), name) == name
    assert names.gpu(Tokens(), f"{name} of alice") == "<gpu-1>"


@pytest.mark.parametrize(
    "text",
    [
        "[Errno 13] Permission denied: '/proc/123/fd'",
        "py-spy took longer than 5 s and was killed",
        "run hangdoc as root or as the target's user",
        "the process has ended; its pid was given to another",
        "child of 4711",
        "loaded 3 of 6 shards, 50% in 1.5 s",
        "the lock file is of another user, whose processes may not be looked at",
        "somebody listens on the launch's port who may not be looked at",
        "no space in shared memory",
    ],
)
def test_sentences_of_hangdoc_and_the_kernel_stay(text: str) -> None:
    """They say why a reading is missing and what would change that."""
    assert wording.sentence(Tokens(), text) == text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Permission denied: '/home/alice/x.log'", "Permission denied: '<path-1>.log'"),
        ("owned by alice on gpu7.example.com", "owned by <text-1> on <text-2>"),
        ("connect to 10.0.0.7:5000 failed (alice@example.com)", "connect to <text-1> failed (<text-2>)"),
        ("HF_TOKEN=hf_abcdef is wrong", "<text-1> is wrong"),
        ("alice, alice and\nalice", "<text-1>, <text-1> and\n<text-1>"),
    ],
)
def test_other_words_become_tokens(text: str, kept: str) -> None:
    """Paths, hosts, users, addresses and keys are no words of ours."""
    assert wording.sentence(Tokens(), text) == kept


def test_one_text_has_one_token_wherever_it_turns_up() -> None:
    """The log in an open descriptor and in the log probe's reading stays one and the same."""
    before = sample.trace()
    tail = LogTail("/home/alice/logs/server.log", (1000,), 1, 1, ())
    reading = Sample(probe="log", process=None, taken_ns=1, reading=Known(tail))
    last = before.snapshots[-1]
    snapshots = (*before.snapshots[:-1], msgspec.structs.replace(last, samples=(*last.samples, reading)))
    after = str(redact(msgspec.structs.replace(before, snapshots=snapshots)).snapshots[-1])
    token = after.partition("LogTail(path='")[2].partition("'")[0]
    assert token.endswith(".log")
    assert after.count(f"target='{token}'") == len(sample.MEMBERS)


def test_a_third_partys_readings_lose_their_texts() -> None:
    """Numbers stay under their names; texts, and names that no code would give, become tokens."""
    values = {"depth": 3, "ratio": 0.5, "on": True, "none": None, "owner": "alice", "of alice@gpu7": 1}
    sent = Sample(probe="mine", process=ProcessKey(1, 2), taken_ns=1, reading=Known(Plain(values)))
    snapshot = msgspec.structs.replace(sample.trace().snapshots[0], samples=(sent,))
    found = Redactor().line(SnapshotLine(snapshot))
    assert isinstance(found, SnapshotLine)
    assert found.snapshot.samples[0].reading == Known(
        Plain({"depth": 3, "ratio": 0.5, "on": True, "none": None, "owner": "<text-1>", "<name-1>": 1})
    )


class Newcomer(Struct, frozen=True):
    """A record that nobody told redaction about."""

    note: str
    notes: tuple[str, ...]
    by_name: dict[str, Known[str]]
    count: int


class Stranger(Struct, frozen=True):
    """A record with a type that redaction has never seen."""

    notes: list[str]


def test_a_field_that_nobody_listed_is_redacted() -> None:
    """The default is a token, in every place of a type that may hold a text, whatever rule the field around it has."""
    found = Redactor()._struct(Newcomer("alice", ("alice", "bob"), {"alice": Known("carol")}, 3), names.function)
    assert found == Newcomer("<text-1>", ("<text-1>", "<text-2>"), {"<text-1>": Known("<text-3>")}, 3)


def test_a_type_that_redaction_does_not_know_is_refused() -> None:
    """Rather no trace than one with a hole."""
    with pytest.raises(TypeError, match="does not know"):
        Redactor()._struct(Stranger(["alice"]), names.free_text)


def reachable(record: Any, seen: set[type[Struct]]) -> Iterator[tuple[type[Struct], str]]:
    """Every field of every record in a trace that may hold a text."""
    for part in (record, *get_args(record)):
        origin = get_origin(part) or part
        if part is not record:
            yield from reachable(part, seen)
        elif isinstance(origin, type) and issubclass(origin, Struct) and origin not in seen:
            seen.add(origin)
            for field in msgspec.structs.fields(origin):
                if redaction._holds_text(field.type):
                    yield origin, field.name
                yield from reachable(field.type, seen)


def test_no_rule_is_for_a_field_that_is_gone() -> None:
    """Every rule names a field that is in a trace and may hold a text."""
    fields = {place for line in (Header, StackLine, SnapshotLine) for place in reachable(line, set())}
    assert set(TEXT_RULES) | set(WHOLE_RULES) <= fields
    assert (Process, "argv") in fields


def test_the_key_of_a_shared_futex_stays() -> None:
    """Numbers of the kernel's alone, equal in every process that shares the lock; any other text is no key."""
    for key in ("", "00:01:17542:40", "fe:00:26933:4096"):
        assert names.futex_key(Tokens(), key) == key
    assert names.futex_key(Tokens(), "00:01:17542:/home/alice") == "<text-1>"


@pytest.mark.parametrize(
    "detail",
    [
        "FIFO on descriptor 3; the process itself also holds the write end, in a set of 2",
        "unix socket on descriptor 3: nobody who can be seen holds the other end",
        "TCP on descriptor 3, port 30000 to port 40000",
        "eventfd on descriptor 3: only the process itself holds it",
        "flock write lock on inode 12, descriptor 3; pid 70, which took it, has ended",
        "zmq: the peers of 1 I/O threads",
        "the end of its child 70",
    ],
)
def test_what_is_said_of_a_wait_stays(detail: str) -> None:
    """The links probe's own words and numbers are no secret: the waits of a redacted trace read like the live ones."""
    assert wording.sentence(Tokens(), detail) == detail
