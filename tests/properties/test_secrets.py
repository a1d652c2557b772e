"""Planted secrets of many shapes: none is left in a redacted trace, in its bytes, or in a report of it."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import msgspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from rich.console import Console

from hangdoc.diagnosis import diagnose
from hangdoc.model.reading import Known
from hangdoc.report.document import encode as document_of
from hangdoc.report.terminal import parts
from hangdoc.trace.reader import read
from hangdoc.trace.records import Header, SnapshotLine, StackLine, Trace
from hangdoc.trace.redact import Redactor, redact
from hangdoc.trace.secrets import holds
from hangdoc.trace.writer import encode
from tests.unit.trace import sample
from tests.unit.trace.strategies import every_variant, traces

LETTERS = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
UPPER = "ABCDEFGHJKLMNPQRSTUVWXYZ234567"


def letters(count: int, alphabet: str = LETTERS) -> st.SearchStrategy[str]:
    return st.text(alphabet, min_size=count, max_size=count)


LABEL = st.from_regex(r"[a-z]{3,8}-[0-9]{1,3}", fullmatch=True)
"""Part of a machine's name, as clusters have them."""

OCTET = st.integers(11, 254).map(str)

SECRETS: dict[str, st.SearchStrategy[str]] = {
    "OpenAI": letters(24).map("sk-{}".format),
    "OpenAI project": letters(30).map("sk-proj-{}".format),
    "Hugging Face": letters(34).map("hf_{}".format),
    "AWS": letters(16, UPPER).map("AKIA{}".format),
    "GitHub": letters(36).map("ghp_{}".format),
    "GitHub fine": letters(40).map("github_pat_{}".format),
    "GitLab": letters(20).map("glpat-{}".format),
    "Slack": letters(24).map("xoxb-{}".format),
    "Google": letters(35).map("AIza{}".format),
    "NVIDIA": letters(40).map("nvapi-{}".format),
    "JWT": st.tuples(letters(20), letters(30), letters(20)).map(lambda p: "eyJ{}.eyJ{}.{}".format(*p)),
    "bearer": letters(24).map("Bearer sk-{}".format),
    "email": st.tuples(letters(8), LABEL).map(lambda p: "{}@{}.example.com".format(*p)),
    "IPv4": st.tuples(OCTET, OCTET, OCTET, OCTET).map(".".join),
    "IPv6": st.integers(0x1000, 0xFFFF).map("2001:db8:85a3::8a2e:{:x}".format),
    "host": LABEL.map("{}.cluster.example.com".format),
    "home": letters(8).map("/home/{}".format),
    "file at home": letters(8).map("/home/{}/models/llama/server.log".format),
    "basic auth": st.tuples(letters(8), letters(12)).map(lambda p: "https://{}:{}@files.example.com/x".format(*p)),
}
"""A secret of each shape."""


def core_of(secret: str) -> str:
    """The part of a secret that must not be found: what stands around it may be there in any text."""
    if "://" in secret:
        return secret.partition("://")[2].partition("@")[0]
    return secret.rpartition(" ")[2]


BESIDE = ("{}", "--api-key={}", "OPENAI_API_KEY={}", "python3 {}", "Thread-1 ({})", "{}.py", "of_{}")
"""How a secret may stand in a field."""


def secrets() -> st.SearchStrategy[str]:
    return st.one_of(*SECRETS.values())


def all_texts(value: Any) -> str:
    """Every text of a record, keys too."""
    return "\n".join(_texts(msgspec.to_builtins(value)))


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for pair in value.items() for one in pair for text in _texts(one)]
    if isinstance(value, list | tuple):
        return [text for one in value for text in _texts(one)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("kind", SECRETS)
@settings(max_examples=8)
@given(st.data())
def test_no_record_lets_a_secret_through(kind: str, data: st.DataObject) -> None:
    """Each shape, in every text of every kind of record, alone and within a text that a rule would keep."""
    secret = data.draw(SECRETS[kind])
    for place in BESIDE:
        planted = place.format(secret)
        redactor = Redactor()
        for line in [
            variant for kind_ in (Header, StackLine, SnapshotLine) for variant in every_variant(kind_, planted)
        ]:
            assert secret in all_texts(line)
            assert core_of(secret) not in all_texts(redactor.line(line)), f"{place}: {secret}"


@settings(max_examples=60)
@given(st.data())
def test_no_bytes_of_a_file_have_a_secret(data: st.DataObject) -> None:
    """Random traces with a secret as any of their texts: nothing of it is in the file."""
    secret = data.draw(secrets())
    trace = data.draw(traces(lambda _record, _field: st.sampled_from([secret, f"{secret} x", "MainThread"])))
    packed = encode(redact(trace), 3)
    assert core_of(secret).encode() not in zstandard.ZstdDecompressor().decompressobj().decompress(packed)


@pytest.mark.parametrize("kind", SECRETS)
@settings(max_examples=3)
@given(st.data())
def test_no_report_has_a_secret(kind: str, data: st.DataObject) -> None:
    """A launch whose every text has the secret in it: neither the report for people nor the document has it."""
    secret = data.draw(SECRETS[kind])
    trace = read(encode(redact(planted(sample.trace(), f"_{secret}"))))
    diagnosis = diagnose(trace, "trace")
    to = StringIO()
    console = Console(file=to, width=10_000)
    for part in parts(diagnosis):
        console.print(part)
    assert diagnosis.target.redacted
    assert core_of(secret) not in to.getvalue()
    assert core_of(secret) not in json.dumps(json.loads(document_of(diagnosis)), ensure_ascii=False)


def planted(trace: Trace, secret: str) -> Trace:
    """The trace with the secret behind each of its free texts."""
    found = _planted(trace, Trace, secret)
    assert isinstance(found, Trace)
    return found


def _planted(value: Any, kind: Any, secret: str) -> Any:
    if isinstance(value, Struct):
        types = {field.name: field.type for field in msgspec.structs.fields(type(value))}
        changed = {name: _planted(getattr(value, name), types[name], secret) for name in types}
        return msgspec.structs.replace(value, **changed)
    if isinstance(value, tuple):
        return tuple(_planted(item, kind, secret) for item in value)
    if isinstance(value, dict):
        return {
            f"{key}{secret}" if kind == dict[str, str] else key: _planted(item, kind, secret)
            for key, item in value.items()
        }
    return f"{value}{secret}" if isinstance(value, str) and "Literal" not in str(kind) else value


def test_the_machine_is_not_named_anywhere() -> None:
    """The name of the machine itself, in a field whose names stay: the header gives it away."""
    trace = sample.trace()
    header = msgspec.structs.replace(trace.header, host="gpu7-b.example.com")
    texts = all_texts(redact(planted(msgspec.structs.replace(trace, header=header), ".GPU7-b")))
    assert "gpu7-b" not in texts.lower()


def test_healthy_words_are_no_secrets() -> None:
    """Names that reasoning rests on stay: redaction by shape takes no function, file, thread or address of its own."""
    kept = (
        "forward_decode", "c10d::ProcessGroupGloo", "std::vector<int>::push_back", "127.0.0.1", "::1", "0.0.0.0",
        "site-packages/torch/distributed/distributed_c10d.py", "lib/python3.12/threading.py", "sk_buff", "pt_main",
        "<frozen importlib._bootstrap>", "libcudart.so.12.4.127", "2026-01-02 03:04:05", "zmq.sugar.socket",
        "Scheduler.event_loop_overlap", "fd:01:12345:0", "0.5.23", "sglang::scheduler_TP0_DP1",
    )  # fmt: skip
    assert [text for text in kept if holds(text)] == []


def test_readings_without_text_are_untouched() -> None:
    """Known numbers are no texts: a trace without a secret keeps every record of numbers."""
    trace = sample.trace()
    values = [one.reading.value for shot in trace.snapshots for one in shot.samples if isinstance(one.reading, Known)]
    again = [
        one.reading.value for shot in redact(trace).snapshots for one in shot.samples if isinstance(one.reading, Known)
    ]
    clocks = [value.clocks for value in values if hasattr(value, "clocks")]
    assert clocks == [value.clocks for value in again if hasattr(value, "clocks")]
