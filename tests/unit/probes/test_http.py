"""Asking servers that are well, slow, silent, endless, refusing, or no HTTP at all: real ones, on real ports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from hangdoc.model.http import Http, HttpOutcome, ServerMetrics
from hangdoc.model.process import EngineName, Launch, Process, ProcessKey
from hangdoc.model.reading import Known, Missing
from hangdoc.model.snapshot import Sample
from hangdoc.sampling.probe import Context
from hangdoc.trace import wording
from hangdoc.trace.tokens import Tokens
from hangdoc_probes import _network, http
from hangdoc_probes._metrics import parse_metrics
from tests.unit.probes.targets import OBEDIENT, Target, missing, process_of, round_of

SERVER = """
import http.server, json, signal, socket, time
PAGES = json.loads(sys.argv[1])
class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        print("asked", self.path, file=sys.stderr, flush=True)
        status, body = PAGES.get(self.path, [404, ""])
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())
    def log_message(self, *words): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
say("ready"); say(server.server_port)
signal.pause()
"""
RUDE = """
import select, socket, signal
way = sys.argv[1]
server = socket.create_server(("127.0.0.1", 0))
say("ready"); say(server.getsockname()[1])
def serve(one):
    if way == "silent": signal.pause()
    if way == "drips":
        while True: one.sendall(b"H"); select.select([], [], [], 0.05)
    one.recv(4096)
    if way == "garbage": one.sendall(bytes(range(256)) * 64)
    if way == "no-http": one.sendall(b"SSH-2.0-OpenSSH\\r\\n")
    if way == "hello-and-bye": pass
    if way == "cut": one.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 100\\r\\n\\r\\nhalf")
    if way == "continues":
        while True: one.sendall(b"HTTP/1.1 100 Continue\\r\\n\\r\\n")
    if way == "bad-chunks": one.sendall(b"HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\nzz\\r\\n")
    if way == "huge":
        one.sendall(b"HTTP/1.1 200 OK\\r\\n\\r\\n")
        while True: one.sendall(bytes(1 << 16))
    if way == "many-headers": one.sendall(b"HTTP/1.1 200 OK\\r\\n" + b"a: b\\r\\n" * 1000 + b"\\r\\n")
    one.close()
while True:
    connection, _ = server.accept()
    threading.Thread(target=serve, args=(connection,), daemon=True).start()
"""
PAGE = """# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{tp_rank="0",model_name="a b"} 2.0
sglang:num_queue_reqs{tp_rank="0"} 1.0
sglang:prompt_tokens_total{model_name="m"} 100.0
sglang:generation_tokens_total{model_name="m"} 50.0
sglang:realtime_tokens_total{mode="decode"} 7.0
sglang:num_requests_total{model_name="m"} 9.0
"""


def context_of(port: int | str, engine: EngineName = "sglang", *, generate: bool = False) -> Context:
    launch = Launch(root=process_of(os.getpid()).key, engine=engine, settings={"port": str(port)})
    return Context(launch=launch, intern=lambda _: 0, http_generate=generate)


@contextmanager
def serving(code: str, *arguments: str) -> Iterator[tuple[Target, int]]:
    with running_with(code, *arguments) as target:
        yield target, int(target.hear())


@contextmanager
def running_with(code: str, *arguments: str) -> Iterator[Target]:
    argv = [sys.executable, "-c", OBEDIENT + code, *arguments]
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        target = Target(child)
        assert target.hear() == "ready"
        yield target
    finally:
        child.kill()
        child.communicate()


def ask(context: Context, *members: Process) -> list[Sample]:
    return list(http.open_session(context).take(round_of(*members)))


def reading(samples: list[Sample]) -> Http:
    (sample,) = samples
    assert isinstance(sample.reading, Known), sample
    assert isinstance(sample.reading.value, Http)
    return sample.reading.value


def outcomes(found: Http) -> list[tuple[str, HttpOutcome, int | None]]:
    return [(reply.path, reply.outcome, reply.status) for reply in found.replies]


def test_a_healthy_server() -> None:
    """Two requests, no other, and what the metrics say."""
    pages = json.dumps({"/model_info": [200, "{}"], "/metrics": [200, PAGE]})
    with serving(SERVER, pages) as (target, port):
        found = reading(ask(context_of(port), target.process))
        target.child.kill()
        assert target.child.stderr is not None
        asked = target.child.stderr.read().decode().split("\n")
    assert outcomes(found) == [("/model_info", "answered", 200), ("/metrics", "answered", 200)]
    assert (found.listener, found.listener_pid, found.port) == ("member", target.pid, port)
    expected = ServerMetrics(running=Known(2), waiting=Known(1), tokens=Known(157), finished=Known(9))
    assert found.metrics == Known(expected)
    assert [line for line in asked if line] == ["asked /model_info", "asked /metrics"]


def test_an_older_server_without_metrics() -> None:
    """The older path is tried when the newer one is not there, and neither is asked again once it is known to lack."""
    with serving(SERVER, json.dumps({"/get_model_info": [200, "{}"]})) as (target, port):
        session = http.open_session(context_of(port))
        first, second = (reading(list(session.take(round_of(target.process)))) for _ in range(2))
    assert [path for path, _, _ in outcomes(first)] == ["/model_info", "/get_model_info", "/metrics"]
    assert [path for path, _, _ in outcomes(second)] == ["/get_model_info"]
    assert isinstance(second.metrics, Missing)
    assert second.metrics.reason == "unsupported"


def test_a_token_only_when_asked_for() -> None:
    """/health_generate is asked with --http-generate, and /health never."""
    pages = json.dumps({"/model_info": [200, "{}"], "/health_generate": [503, ""]})
    with serving(SERVER, pages) as (target, port):
        found = reading(ask(context_of(port, generate=True), target.process))
    assert outcomes(found)[-1] == ("/health_generate", "answered", 503)


@pytest.mark.parametrize(
    ("way", "outcome"),
    [
        ("silent", "silent"),
        ("drips", "silent"),
        ("continues", "silent"),
        ("garbage", "garbled"),
        ("no-http", "garbled"),
        ("many-headers", "garbled"),
        ("hello-and-bye", "cut"),
        ("cut", "cut"),
        ("bad-chunks", "cut"),
        ("huge", "too-long"),
    ],
)
def test_servers_that_do_not_answer(way: str, outcome: HttpOutcome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is told from the others, ends at the deadline, and is not asked a second path."""
    monkeypatch.setattr(http, "ANSWER_S", 0.5)
    with serving(RUDE, way) as (target, port):
        session = http.open_session(context_of(port))
        begun_s = time.monotonic()
        found = reading(list(session.take(round_of(target.process))))
        took_s = time.monotonic() - begun_s
        assert list(session.take(round_of(target.process))) == []
    assert [(path, how) for path, how, _ in outcomes(found)] == [("/model_info", outcome)]
    assert took_s < 60, "the deadline did not hold"
    assert isinstance(found.metrics, Missing)


LISTENS = """
import socket, signal
server = socket.socket()
server.bind(("127.0.0.1", 0)); server.listen()
say("ready"); say(server.getsockname()[1])
sys.stdin.readline()
server.close()
say("closed")
signal.pause()
"""


def test_members_that_ended_are_passed_over() -> None:
    """A member that is gone, or a zombie, does not hide the one that listens."""
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    zombie = replace(process_of(child.pid), role="tokenizer")
    gone = replace(zombie, key=ProcessKey(2**22 - 1, 1))
    with serving(SERVER, json.dumps({"/model_info": [200, "{}"]})) as (target, port):
        (sample,) = http.open_session(context_of(port)).take(round_of(target.process, zombie, gone))
        found = reading([sample])
    child.wait()
    assert found.listener_pid == target.pid


def test_nobody_listens() -> None:
    """A port on which nobody listens is a reading of its own, not a failure."""
    with serving(LISTENS) as (target, port):
        assert target.tell() == "closed"
        found = reading(ask(context_of(port), target.process))
    assert (found.listener, found.replies) == ("nobody", ())


def test_a_strangers_port_is_not_asked() -> None:
    """A program outside the launch that has the launch's port gets no request."""
    with serving(RUDE, "silent") as (_, port):
        found = reading(ask(context_of(port), process_of(os.getpid())))
    assert (found.listener, found.listener_pid, found.replies) == ("stranger", None, ())


@pytest.mark.parametrize("port", ["", "x", "0", "65536", "-1", "³"])
def test_no_port(port: str) -> None:
    """A launch without a port that could be asked is not asked."""
    assert ask(context_of(port), process_of(os.getpid())) == []


def test_the_port_of_torchrun_is_no_http() -> None:
    """torchrun's port is its rendezvous: it is not spoken to."""
    with serving(RUDE, "silent") as (target, port):
        assert ask(context_of(port, "torchrun"), target.process) == []


def test_proxies_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever proxy the environment names, the server itself is asked."""
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    with serving(SERVER, json.dumps({"/model_info": [200, "{}"]})) as (target, port):
        assert outcomes(reading(ask(context_of(port), target.process)))[0] == ("/model_info", "answered", 200)


IPV6 = SERVER.replace('("127.0.0.1", 0)', '("::1", 0)').replace(
    "server = http", "http.server.ThreadingHTTPServer.address_family = socket.AF_INET6\nserver = http"
)


@pytest.mark.parametrize("host", ["::1", "::"])
def test_ipv6(host: str) -> None:
    """A server that listens on IPv6 alone, or on every address of it, is asked there."""
    if not Path("/proc/net/if_inet6").exists() or not Path("/proc/net/if_inet6").read_text():
        pytest.skip("cannot be had here: no IPv6")
    with serving(IPV6.replace('"::1"', f'"{host}"'), json.dumps({"/model_info": [200, "{}"]})) as (target, port):
        assert outcomes(reading(ask(context_of(port), target.process)))[0] == ("/model_info", "answered", 200)


NAMESPACE = """
import ctypes, fcntl, struct, socket
if ctypes.CDLL(None).unshare(0x40000000): say("refused"); sys.exit()
one = socket.socket()
fcntl.ioctl(one, 0x8914, struct.pack("16sh14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
"""


def test_another_network_namespace() -> None:
    """In a network namespace of its own the server is asked at its own loopback address."""
    if os.geteuid():
        pytest.skip("cannot be had here: a network namespace takes root")
    with running_with(NAMESPACE + SERVER, json.dumps({"/model_info": [200, "{}"]})) as target:
        found = reading(ask(context_of(target.hear()), target.process))
    assert outcomes(found)[0] == ("/model_info", "answered", 200)


def test_a_namespace_that_cannot_be_entered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the right to enter it the reading is missing, with what would change that."""
    if os.geteuid():
        pytest.skip("cannot be had here: a network namespace takes root")

    def refused(path: str) -> None:
        raise PermissionError(1, "Operation not permitted", path)

    monkeypatch.setattr(_network, "enter", refused)
    with running_with(NAMESPACE + SERVER, "{}") as target:
        lack = missing(ask(context_of(target.hear()), target.process)[0])
    assert lack.reason == "denied"
    assert "root" in lack.remedy


def test_what_it_says_of_a_silent_server_stays_in_a_recording() -> None:
    """Every sentence that the probe gives for what is missing is made of known words."""
    texts = [http.ELSEWHERE, http._NO_METRICS.detail, "its network namespace cannot be entered"]
    texts += ["nobody listens on its port", "its port belongs to another program", "the server does not publish it"]
    texts += ["it did not answer with its metrics"]
    assert [text for text in texts if wording.sentence(Tokens(), text) != text] == []


@pytest.mark.parametrize(
    "page",
    [
        b"",
        b"\xff" * 1000,
        b"sglang:num_running_reqs NaN\n",
        b"sglang:num_running_reqs +Inf",
        b"sglang:num_running_reqs -1",
    ],
)
def test_metrics_that_say_nothing(page: bytes) -> None:
    """What is no number of requests is Missing, never 0."""
    assert isinstance(parse_metrics(page, "sglang").running, Missing)


def test_metrics_are_added_up() -> None:
    """Rows of all ranks and models count, with or without a time stamp."""
    page = b'vllm:generation_tokens_total{engine="0"} 1e3\nvllm:generation_tokens_total{engine="1"} 5 1700000000000\n'
    assert parse_metrics(page, "vllm").tokens == Known(1005)
