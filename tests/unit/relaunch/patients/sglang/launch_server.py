"""Stands for SGLang's launcher: its command line, its titles and what it prints; how it fares is its act's matter."""

import ctypes
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path

LIBC = ctypes.CDLL(None)
PR_SET_NAME, PR_SET_PDEATHSIG = 15, 1
ARG_START, ARG_END = 45, 46


def tell(name):
    stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    descriptor = os.open(os.environ["HANGDOC_TEST_FIFO"], os.O_WRONLY)
    os.write(descriptor, f"{name} {os.getpid()} {stat[19]}\n".encode())
    os.close(descriptor)


def title(text):
    """As setproctitle does: over the own command line, and the short name."""
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    start, end = int(fields[ARG_START]), int(fields[ARG_END])
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, text.encode()[: end - start - 1], len(text))
    LIBC.prctl(PR_SET_NAME, text.encode())


def log(text):
    print(time.strftime("[%Y-%m-%d %H:%M:%S] ") + text, flush=True)


def event_loop_normal():
    """As an idle scheduler that was told to sleep between polls."""
    while True:
        maybe_sleep_on_idle()


def maybe_sleep_on_idle():
    select.select([], [], [])


def spin():
    turns = 0
    while True:
        turns += 1
        half = turns // 2
        if half < 0:
            break


def rank(work):
    if os.fork():
        return
    if os.environ.get("HANGDOC_TEST_ACT", "ready") == "ready":
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    title("sglang::scheduler")
    tell("rank")
    work()


def serve():
    """As a server that is ready and has nothing to do."""
    port = int(sys.argv[sys.argv.index("--port") + 1])
    with socket.create_server(("127.0.0.1", port)):
        log("The server is fired up and ready to roll!")
        tell("launcher")
        while True:
            signal.pause()


def main(act):
    if act == "asked":
        signal.signal(signal.SIGTERM, lambda *_: tell("asked"))
    log(f"server_args=ServerArgs({' '.join(sys.argv[1:])})")
    if act == "dies":
        log(f"ValueError: no weights; key {os.environ.get('MY_API_KEY')}")
        sys.exit(3)
    log("Load weight begin. avail mem=1.00 GB")
    if act == "alone":
        log(f"TOKEN={os.environ['MY_WORD']} of somebody else")
        serve()
    rank(spin if act == "hung" else event_loop_normal)
    log("Load weight end. type=Tiny, dtype=torch.bfloat16, avail mem=1.00 GB")
    if act == "hung":
        tell("launcher")
        os.wait()
    log("max_total_num_tokens=4096, chunked_prefill_size=4096")
    serve()


if __name__ == "__main__":
    main(os.environ.get("HANGDOC_TEST_ACT", "ready"))
