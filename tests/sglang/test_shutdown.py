"""A real server that is shut down while it is watched."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from hangdoc_probes import exits
from tests.sglang import cases
from tests.sglang.launches import Launch
from tests.unit.cli.commands import LONGEST_S, rounds_in, start, wait_until

KEEPS_STATUS = "6.15 on" not in str(exits.check(Path("/proc")))


@cases.on("healthy-metrics")
def test_sigterm_is_an_orderly_end(launch: Launch, tmp_path: Path) -> None:
    """A server that is asked to end kills its ranks and leaves: healthy, in phase shutdown, and no member is dead."""
    trace = tmp_path / "end.hangtrace"
    following = start("watch", str(launch.pid), "--until", "exit", "--json", "--record", str(trace))
    wait_until(lambda: rounds_in(trace) > 1)
    os.kill(launch.pid, signal.SIGTERM)
    said, _ = following.communicate(timeout=LONGEST_S)
    document = json.loads(said.splitlines()[-1])
    assert document["verdict"] in ({"healthy"} if KEEPS_STATUS else {"healthy", "undetermined"}), document["hypotheses"]
    assert document["phase"] == "shutdown"
    assert following.returncode == 0
