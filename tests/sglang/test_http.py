"""What is read of a real server that counts what it serves: its answers and, at last, its end."""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from pathlib import Path

from hangdoc.launch.find import find_launch
from hangdoc.model.http import Http
from hangdoc.model.reading import Known
from hangdoc.sampling.probe import Context, Round
from hangdoc_probes import exits, http
from tests.sglang import cases
from tests.sglang.launches import Launch
from tests.unit.cli.commands import LONGEST_S, rounds_in, run, start, wait_until

KEEPS_STATUS = "6.15 on" not in str(exits.check(Path("/proc")))


def generate(port: int) -> None:
    body = json.dumps({"input_ids": [5, 6, 7], "sampling_params": {"max_new_tokens": 8, "ignore_eos": True}}).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/generate", body, {"Content-Type": "application/json"}, method="POST"
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=120) as answer:
        assert answer.status == 200


@cases.on("healthy-metrics")
def test_a_real_server_answers_and_counts(launch: Launch) -> None:
    """It answers both paths; its counters stand while it idles, and have risen once a request has been served."""
    found = find_launch(launch.pid, None)
    session = http.open_session(Context(launch=found, intern=lambda _: 0))
    readings: list[Http] = []
    for number in range(3):
        if number == 2:
            generate(launch.port)
        (sample,) = session.take(Round(number, 0, found.processes, thorough=True))
        assert isinstance(sample.reading, Known), sample
        assert isinstance(sample.reading.value, Http)
        readings.append(sample.reading.value)
    assert [(one.path, one.outcome, one.status) for one in readings[0].replies] == [
        ("/model_info", "answered", 200),
        ("/metrics", "answered", 200),
    ]
    first, idle, served = (one.metrics.value for one in readings if isinstance(one.metrics, Known))
    assert first.tokens == idle.tokens
    assert isinstance(idle.tokens, Known)
    assert isinstance(served.tokens, Known)
    assert served.tokens.value > idle.tokens.value


@cases.on("healthy-metrics")
def test_its_answer_stands_in_the_report(launch: Launch, tmp_path: Path) -> None:
    """An idle server is healthy, and that it answers is a reason; a replay gives the same reasons."""
    trace = tmp_path / "a.hangtrace"
    document = json.loads(run("watch", str(launch.pid), "--once", "--json", "--record", str(trace)).out)
    assert document["verdict"] == "healthy"
    idle = next(one for one in document["hypotheses"] if one["id"] == "HD501")
    assert f"its HTTP server answers on port {launch.port}" in idle["for"]
    assert json.loads(run("replay", str(trace), "--json").out)["hypotheses"] == document["hypotheses"]


@cases.on("healthy-metrics")
def test_sigterm_is_an_orderly_end(launch: Launch, tmp_path: Path) -> None:
    """Last, as it ends the server: one that is asked to end is healthy, in phase shutdown, and none of it is dead."""
    trace = tmp_path / "end.hangtrace"
    following = start("watch", str(launch.pid), "--until", "exit", "--json", "--record", str(trace))
    wait_until(lambda: rounds_in(trace) > 1)
    os.kill(launch.pid, signal.SIGTERM)
    said, _ = following.communicate(timeout=LONGEST_S)
    document = json.loads(said.splitlines()[-1])
    assert document["verdict"] in ({"healthy"} if KEEPS_STATUS else {"healthy", "undetermined"}), document["hypotheses"]
    assert document["phase"] == "shutdown"
    assert following.returncode == 0
