"""hangdoc redact on logs: planted secrets never survive, and what the diagnosis reads does."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hangdoc.diagnosis import diagnose
from hangdoc.logs.read import Wishes, read
from hangdoc.trace.log_text import LONGEST_LINE_BYTES, LogRedactor, redacted
from tests.properties.test_secrets import SECRETS, core_of

LAUNCHES = sorted((Path(__file__).parents[1] / "corpus" / "launches").glob("*.log"))

LINES = (
    "[2026-01-02 03:04:05 TP1] cannot reach {}, retrying",
    "server_args=ServerArgs(model_path='{}', api_key='{}', tp_size=8)",
    "{}",
    '{{"msg": "{}", "level": "info"}}',
    'RuntimeError: bad value "{}" in config',
    "env: A={} B=1",
    "\x1b[32mINFO\x1b[0m: ({}) done",
    "Loading shards:  50% 1/2 {}\r",
)
"""Where a log may have a secret."""

NAMED = (
    ("--api-key {}", "hunter2"),
    ("--api-key={}", "hunter2"),
    ("api_key='{}'", "hunter two"),
    ("'admin_api_key': '{}'", "hunter2"),
    ('"password": "{}"', "correct horse 1"),
    ("PASSWORD={}", "1234567"),
    ("HF_TOKEN={}", "hunter2"),
    ("AWS_SECRET_ACCESS_KEY={}", "a/b+c1"),
    ("Authorization: Bearer {}", "abcdef-123"),
    ("Cookie: {}", "session"),
    ("--model-path {}", "acme/private-model"),
    ("model_path='{}'", "acme/private-model"),
    ("served_model_name='{}'", "acme-private"),
    ("Receive: obj=GenerateReqInput(rid='x', text='{}')", "tell me a 'secret' story"),
    ("Received request cmpl-1: prompt: '{}', params: None", "tell me a story"),
    ("Finish: obj=GenerateReqInput(x), out={{'text': '{}'}}", "once upon a time"),
    ('File "{}", line 3, in main', "/srv/acme/serve.py"),
    ("cd {} && ls", "~/acme/private"),
    ("GET {} HTTP/1.1", "/v1/models?user=acme"),
    ("ssh://{}@host", "acme:pw"),
    ("see {} for more", "/mnt/acme/logs/a.log"),
    ("curl -u {} https://x", "admin:sup3r"),
    ("AccountName=a;AccountKey={};End=x", "QUJDREVG="),
    ("pwd:{} x", "hunter4"),
    ("secret -> {}", "hunter5"),
    ("Password for user carol is {}", "Xyzzy123"),
    ("Password for user {} is Xyzzy123", "carol"),
    ("text: {}", "What is the capital of Secretland?"),
    ("{}:~# ls", "root@gpu-node-17"),
    (r"open {} now", r"C:\Users\erin\secrets.txt"),
    ("mac {} up", "00:1a:2b:3c:4d:5e"),
    ("\x1b[31mapi_key\x1b[0m={}", "ansikey5566"),
    ("api_key=hun\x1b[1m{}", "ter2"),
)
"""What only its name, or its place, gives away."""


def redact(text: str, *also: str) -> str:
    return b"".join(redacted([text.encode()], LogRedactor(also))).decode()


@pytest.mark.parametrize("kind", SECRETS)
@settings(max_examples=20)
@given(st.data())
def test_no_line_lets_a_secret_through(kind: str, data: st.DataObject) -> None:
    """Each shape of secret, wherever in a line it stands, in pieces of any size: nothing of it is left."""
    secret = data.draw(SECRETS[kind])
    text = "".join(line.replace("{}", secret).replace("{{", "{").replace("}}", "}") + "\n" for line in LINES).encode()
    assert secret in text.decode()
    cut = data.draw(st.integers(0, len(text)))
    found = b"".join(redacted([text[:cut], text[cut:]], LogRedactor()))
    assert core_of(secret) not in found.decode()
    assert found.count(b"\n") == text.count(b"\n")
    assert re.match(rb"\[2026-01-02 03:04:05 TP1\] cannot reach (?:Bearer |https://)?<", found)


@pytest.mark.parametrize(("place", "secret"), NAMED)
def test_what_its_name_gives_away(place: str, secret: str) -> None:
    """Values of options, settings and variables, prompts and answers, paths."""
    found = redact(f"12:00:00 {place.format(secret)}\n")
    assert secret not in found
    assert found.startswith("12:00:00 ")
    assert "<" in found


@pytest.mark.parametrize(
    "line",
    [
        "[2026-01-02 03:04:05 TP0] Decode batch. #running-req: 1, #token: 123, token usage: 0.01, gen throughput: 12.1",
        "[2026-01-02 03:04:05 TP0] Load weight end. elapsed=3.50 s, type=LlamaForCausalLM, dtype=torch.bfloat16, mem=2",
        "max_total_num_tokens=12345, chunked_prefill_size=8192, max_prefill_tokens=16384, context_len=4096",
        'INFO:     127.0.0.1:51234 - "GET /health_generate HTTP/1.1" 200 OK',
        "INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)",
        "Init torch distributed begin.",
        "tp_size=8, dtype='auto', attention_backend='triton', api_key=None, skip_tokenizer_init=False",
        "torch.distributed.DistStoreError: wait timeout after 600000ms, keys: /store/key",
        "Capture cuda graph bs [1, 2, 4, 8, 12, 16, 24, 32]",
        "std::vector and c10d::ProcessGroupNCCL, version 2.21.5+cuda12.4",
    ],
)
def test_what_the_diagnosis_reads_stays(line: str) -> None:
    """Lines without anything private come back as they were."""
    assert redact(line + "\n").replace("<path-1>", "/store/key") == line + "\n"


@pytest.mark.parametrize("log", LAUNCHES, ids=lambda log: log.stem)
def test_a_redacted_log_says_the_same(log: Path, tmp_path: Path) -> None:
    """Verdict, grade, phase and steps of a real launch's log are those of the redacted one; twice is once."""
    path = tmp_path / log.name
    path.write_bytes(b"".join(redacted([log.read_bytes()], LogRedactor())))
    before, after = (diagnose(read([one], Wishes()), "log") for one in (log, path))
    assert [(one.verdict, one.grade, one.phase, one.headline) for one in (before,)] == [
        (one.verdict, one.grade, one.phase, one.headline) for one in (after,)
    ]
    assert before.log is not None
    assert after.log is not None
    assert before.log.steps == after.log.steps
    assert b"".join(redacted([path.read_bytes()], LogRedactor())) == path.read_bytes()


def test_tokens_are_stable_and_names_are_learned() -> None:
    """Equal texts have equal tokens; the owner of a home and a machine go wherever they stand from then on."""
    found = redact(
        "open /home/alice/x.log\nopen /home/alice/x.log\nalice waits for gpu-7.corp.example.com\nGPU-7 is full\n"
    )
    lines = found.splitlines()
    assert lines[0] == lines[1]
    assert "alice" not in found
    assert "gpu-7" not in found.lower()


def test_a_prompt_over_several_lines_goes_up_to_its_quote() -> None:
    """The lines of an open quote go; what follows its end stays, and a new record ends one that is never closed."""
    found = redact("prompt='multi\nsecretline2\n\nand secretline3'\nInit torch distributed begin.\n")
    assert "secretline" not in found
    assert found.splitlines()[-1] == "Init torch distributed begin."
    assert found.count("\n") == 5
    record = "[2026-01-02 03:04:05 TP0] Load weight begin."
    assert redact(f"prompt='never closed\nsecretline2\n{record}\n").splitlines()[-1] == record


def test_words_of_the_caller_go() -> None:
    """--also: whole words, in any case."""
    assert redact("ACME's model acme-7b, acmeist\n", "acme") == "<user-1>'s model <user-1>-7b, acmeist\n"


def test_a_private_key_over_several_lines_goes() -> None:
    """From its first line to its last."""
    text = "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAK\n-----END RSA PRIVATE KEY-----\nb\n"
    found = redact(text)
    assert found.splitlines()[0] == "a"
    assert found.splitlines()[-1] == "b"
    assert not [word for word in ("MIIEow", "IBAAK", "PRIVATE") if word in found]


def test_an_endless_line_is_left_out() -> None:
    """It is counted and not looked through; what follows is read again."""
    pieces = [b"x" * 300_000] * 8 + [b"\nnext\n"]
    found = b"".join(redacted(pieces, LogRedactor()))
    assert found == b"<line of 2400001 bytes left out>\nnext\n"
    assert LONGEST_LINE_BYTES < 8 * 300_000


@settings(max_examples=200)
@given(st.binary(max_size=300))
@example(b"=" * 250)
@example(b"eyJ" * 80)
@example(b"'" * 250)
def test_any_bytes_are_taken(data: bytes) -> None:
    """Whatever a log holds, redaction ends, keeps the number of lines, and is done once."""
    once = b"".join(redacted([data], LogRedactor()))
    assert once.count(b"\n") == data.count(b"\n")


REPEATED = (
    "a",
    "eyJ",
    "/a",
    "'/",
    "a.",
    "sk-",
    "=",
    "+a",
    "https://",
    "::",
    "password",
    "--",
    "-a",
    "~",
    "@",
    "a:",
    "1.",
)
CPU_S = 120

LOOK_THROUGH = """
import json, sys
from hangdoc.trace.log_text import LogRedactor, redacted
for unit in json.load(sys.stdin):
    list(redacted([unit.encode() * (300_000 // len(unit))], LogRedactor()))
print("done")
"""


def test_no_line_takes_for_ever() -> None:
    """Lines of one thing again and again: what grew with the square of a line's length would need hours."""
    ended = subprocess.run(
        [sys.executable, "-c", LOOK_THROUGH],
        input=json.dumps(REPEATED),
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S)),
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (0, "done\n")
