"""Start the processes of a plan, say on a FIFO which pids they have, and stay until the lifeline closes.

The lifeline is a FIFO that only the test writes to: every process of a plan reads it, so all end with the test, even
those that were re-parented. The plan is a JSON file: {"name", "ready", "lifeline", "children": {name: {...}}}.
"""

import ctypes
import json
import multiprocessing
import os
import sys
from pathlib import Path

PR_SET_NAME = 15
ARG_START, ARG_END = 45, 46  # fields of /proc/self/stat behind the name


def tell(plan, message):
    with Path(plan["ready"]).open("w") as ready:
        ready.write(json.dumps(message) + "\n")


def stay(lifeline):
    os.read(lifeline, 1)
    os._exit(0)


def rename(title):
    """As setproctitle does: over the own command line, and the short name."""
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    start, end = int(fields[ARG_START]), int(fields[ARG_END])
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, title.encode(), len(title))
    ctypes.CDLL(None).prctl(PR_SET_NAME, title.encode())


def spawned(plan, name, child):
    """The body of a child of the real multiprocessing: its title comes when the test says so."""
    lifeline = os.open(plan["lifeline"], os.O_RDONLY)
    pids = start_all({**plan, "name": f"{plan['name']}.{name}"}, child.get("children", {}))
    tell(plan, {"name": f"{plan['name']}.{name}", "pid": os.getpid(), "children": pids})
    if "argv" not in child:
        stay(lifeline)
    if "go" in child:
        Path(child["go"]).read_bytes()
    rename(child["argv"][0])
    tell(plan, {"name": f"{plan['name']}.{name}.renamed", "pid": os.getpid()})
    stay(lifeline)


def start_all(plan, children):
    """Start children, those that are to be spawned by the real multiprocessing; returns their pids by name."""
    pids = {name: start(plan, child) for name, child in children.items() if not child.get("spawn")}
    context = multiprocessing.get_context("spawn")
    for name, child in children.items():
        if child.get("spawn"):
            process = context.Process(target=spawned, args=(plan, name, child), daemon=False)
            process.start()
            pids[name] = process.pid
    return pids


def start(plan, child):
    """Fork and exec one child; returns its pid once it carries its new command line."""
    reader, writer = os.pipe()  # closed by exec: the end of file is the handshake
    if os.fork() == 0:
        become(plan, child, writer)
    os.close(writer)
    with os.fdopen(reader) as answer:
        pid = int(answer.read())
    if child.get("daemon"):
        os.wait()
    return pid


def become(plan, child, writer):
    if child.get("own_session"):
        os.setsid()
    if child.get("own_group"):
        os.setpgid(0, 0)
    if child.get("daemon") and os.fork():
        os._exit(0)
    os.write(writer, str(os.getpid()).encode())
    os.dup2(os.open(plan["lifeline"], os.O_RDONLY), 0)
    os.environ.update(child.get("environment", {}))
    for number in child.get("inherit", []):
        os.set_inheritable(number, True)
    os.execvp(child.get("executable", "cat"), child["argv"])


def main():
    plan = json.loads(Path(os.environ["HANGDOC_PLAN"]).read_text())
    lifeline = os.open(plan["lifeline"], os.O_RDONLY)
    pids = start_all(plan, plan["children"])
    tell(plan, {"name": plan["name"], "pid": os.getpid(), "children": pids})
    stay(lifeline)


if __name__ == "__main__":
    sys.exit("run me through a plan")
