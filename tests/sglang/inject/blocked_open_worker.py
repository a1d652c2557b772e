"""Blocked: a loader's worker thread opens a FIFO that has no writer, the main thread waits for that worker's result."""

import os

from _rig import mark, scratch, wrap_open


def open_shard(original, path, *args, **kwargs):
    if "-00003-of-" in str(path):
        fifo = scratch("fifo.worker")
        os.mkfifo(fifo)
        mark("worker")
        os.close(os.open(fifo, os.O_RDONLY))
    return original(path, *args, **kwargs)


wrap_open(open_shard)
