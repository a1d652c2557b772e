"""What following a launch costs that is well: 10 processes with 200 threads each, as shares of a core by the minute.

Run it with `python benchmarks/following.py`; --seconds 90 for a short one. What `hangdoc watch PID` itself uses and the
programs that it runs count. The first 30 s have its start and the close look; the pace slows after 30 s and 120 s.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from snapshot import PROCESSES, SERVE, THREADS, launch

FIRST_S, STEP_S = 30.0, 60.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=330.0, help="how long to follow (default 330)")
    options.add_argument("--record", action="store_true", help="with --record DIR, as when nobody attends")
    given = options.parse_args()
    with launch() as (started, _), tempfile.TemporaryDirectory() as folder:
        assert started.stdin is not None
        started.stdin.write(SERVE)
        started.stdin.flush()
        command = [str(Path(sys.executable).with_name("hangdoc")), "watch", str(started.pid), "--json"]
        command += ["--record", folder] if given.record else []
        print(f"target: {PROCESSES} processes x {THREADS} threads, well; load {os.getloadavg()[0]:.1f}")
        hangdoc = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            table(hangdoc.pid, given.seconds)
        finally:
            hangdoc.terminate()
            out, _ = hangdoc.communicate()
    print(f"it said: {', '.join(json.loads(line)['verdict'] for line in out.splitlines())}")


def table(pid: int, seconds: float) -> None:
    """Print the share of a core, span by span."""
    begin_s = before_s = time.monotonic()
    spent_s, step_s = 0.0, FIRST_S
    while before_s - begin_s < seconds:
        time.sleep(step_s)
        now_s, now_spent_s = time.monotonic(), cpu_s(pid)
        share = (now_spent_s - spent_s) / (now_s - before_s)
        print(f"{before_s - begin_s:6.0f} to {now_s - begin_s:4.0f} s: {share:6.2%} of a core", flush=True)
        before_s, spent_s, step_s = now_s, now_spent_s, STEP_S


def cpu_s(pid: int) -> float:
    """CPU time of a process and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return sum(map(int, fields[11:15])) / TICKS_PER_S


if __name__ == "__main__":
    main()
