"""Blocked: in the middle of the load the main thread reads from a FIFO into which no one writes."""

import os

from _rig import mark, scratch, wrap_load


def with_fifo(weights):
    import torch.distributed as dist

    for number, item in enumerate(weights):
        if number == 40:
            path = scratch(f"fifo.{dist.get_rank()}")
            os.mkfifo(path)
            # For writing too: without a writer the open itself would wait.
            fifo = os.open(path, os.O_RDWR)
            mark(dist.get_rank())
            os.read(fifo, 4096)
        yield item


wrap_load(lambda original, weights: original(with_fifo(weights)))
