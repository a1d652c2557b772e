"""How fast a long log is read: hangdoc with and without its multi-pattern engine, ripgrep, GNU grep, wc, in one go."""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from hangdoc.engines.sglang import ENGINE
from hangdoc.logs.lines import loose
from hangdoc.logs.scan import expressions_of

ROUNDS = 2


def start_lines() -> Iterator[str]:
    yield "[2026-11-29 10:00:00] server_args=ServerArgs(model_path='MODEL', tp_size=8, port=30000)"
    for rank in range(8):
        yield f"[2026-11-29 10:00:30 TP{rank}] Init parallel begin."
        yield f"[2026-11-29 10:00:31 TP{rank}] Init parallel ends. elapsed=0.90 s"
        yield f"[2026-11-29 10:00:32 TP{rank}] Load weight begin. avail mem=139.13 GB"
    for rank in range(8):
        yield f"[2026-11-29 10:08:00 TP{rank}] Load weight end. elapsed=448.0 s, type=DeepseekV3ForCausalLM"
        yield f"[2026-11-29 10:08:01 TP{rank}] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 100000"
        yield f"[2026-11-29 10:08:01 TP{rank}] Memory pool end. avail mem=20.03 GB"
    yield "[2026-11-29 10:09:41] max_total_num_tokens=100000, chunked_prefill_size=8192"
    yield "[2026-11-29 10:09:41] INFO:     Started server process [2591]"
    yield "[2026-11-29 10:09:41] INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)"
    yield "[2026-11-29 10:09:44] The server is fired up and ready to roll!"


def serving_line(number: int, dice: random.Random) -> str:
    """A line as a busy server prints it: four in ten are decode batches, one in two thousand is something else."""
    clock = f"2026-11-29 {10 + number // 360_000 % 12}:{number // 6000 % 60:02}:{number // 100 % 60:02}"
    chance, usage = dice.random(), f"token usage: 0.{dice.randrange(100):02}"
    if chance < 0.0005:
        return f"[{clock} TP0] Cache flushed, {dice.randrange(1000)} entries are gone"
    if chance < 0.25:
        return f'[{clock}] INFO:     127.0.0.1:{dice.randrange(30000, 60000)} - "POST /generate HTTP/1.1" 200 OK'
    if chance < 0.55:
        tokens = f"#new-seq: 1, #new-token: {dice.randrange(9000)}, #cached-token: 0"
        return f"[{clock} TP0] Prefill batch, {tokens}, {usage}, #running-req: {dice.randrange(60)}, #queue-req: 0"
    speed = f"gen throughput (token/s): {dice.random() * 900:.2f}, #queue-req: 0"
    return f"[{clock} TP0] Decode batch, #running-req: {dice.randrange(60)}, {usage}, cuda graph: True, {speed}"


def make(path: Path, size_bytes: int) -> None:
    """Write a log of this size: a start, then hours of serving. Its middle repeats, because writing takes longer."""
    dice = random.Random(5)
    block = "".join(serving_line(number, dice) + "\n" for number in range(200_000)).encode()
    with path.open("wb") as file:
        file.write("".join(line + "\n" for line in start_lines()).encode())
        while file.tell() < size_bytes:
            file.write(block)
        file.write(
            b"[2026-11-30 12:00:00 TP3] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)\n"
        )


def timed(name: str, command: list[str], size_bytes: int) -> None:
    """Print the best of some runs, and the largest memory of one."""
    best, cpu_s, peak_kib, said = float("inf"), float("inf"), 0, ""
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.read()
        said = child.stderr.read().decode(errors="replace").strip()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        best, peak_kib = min(best, time.perf_counter() - begin), max(peak_kib, usage.ru_maxrss)
        cpu_s = min(cpu_s, usage.ru_utime + usage.ru_stime)
    speed, per_cpu = size_bytes / best / 1e9, size_bytes / cpu_s / 1e9
    memory = f"{peak_kib / 1024:5.0f} MiB"
    print(f"{name:<36} {speed:5.2f} GB/s {best:6.2f} s; {per_cpu:5.2f} GB per CPU second; {memory}", flush=True)
    if said:
        print(f"{'':<4}{said[-160:]}", flush=True)


PROGRAM = """
import sys
from pathlib import Path
from hangdoc.logs.read import Wishes, read
from hangdoc.diagnosis import diagnose
import time
begin = time.perf_counter()
def first(trace):
    print(f"first answer {diagnose(trace, 'log').verdict} after {time.perf_counter() - begin:.2f} s", file=sys.stderr)
found = diagnose(read([Path(sys.argv[1])], Wishes(first_answer=first, fast=sys.argv[2] == "fast")), "log")
print(found.verdict, found.grade, found.phase)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()))
    arguments = parser.parse_args()
    log = arguments.directory / f"hangdoc-logscan-{os.getpid()}.log"
    patterns = log.with_suffix(".patterns")
    try:
        make(log, int(arguments.gigabytes * 1e9))
        measure(log, patterns)
    finally:
        log.unlink(missing_ok=True)
        patterns.unlink(missing_ok=True)
    return 0


def measure(log: Path, patterns: Path) -> None:
    size_bytes = log.stat().st_size
    wanted = [loose(line) for line in ENGINE.log_lines if line.kind not in ("batch", "progress")]
    regular = sorted({re.sub(r"\(\?![^()]*\)", "", one).replace("(?:", "(").replace(r"\d", "[0-9]") for one in wanted})
    plain = sorted(re.sub(rb"\\(.)", rb"\1", one).decode() for one in expressions_of(ENGINE))
    print(f"{size_bytes / 1e9:.2f} GB, best of {ROUNDS}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    timed("wc -l", ["wc", "-l", str(log)], size_bytes)
    for kind, texts, flags in (
        ("patterns", regular, {"rg": [], "grep": ["-E"]}),
        ("texts", plain, {"rg": ["-F"], "grep": ["-F"]}),
    ):
        patterns.write_text("\n".join(texts) + "\n")
        for name, extra in flags.items():
            if (program := shutil.which(name)) is not None:
                command = [program, *extra, "-c", "-f", str(patterns), str(log)]
                timed(f"{name}, {len(texts)} {kind}", command, size_bytes)
            else:
                print(f"{name:<36} is not installed")
    script = str(Path(sys.executable).with_name("hangdoc"))
    timed("hangdoc diagnose, the whole command", [script, "diagnose", str(log)], size_bytes)
    for name, fast in (("with the multi-pattern engine", "fast"), ("without it", "slow")):
        timed(f"hangdoc, {name}", [sys.executable, "-c", PROGRAM, str(log), fast], size_bytes)


if __name__ == "__main__":
    sys.exit(main())
