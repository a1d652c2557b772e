"""Blocked: rank HANG_RANK sleeps for ever once it has loaded, the others wait for it in the barrier after the load."""

import os
import time

from _rig import mark, wrap_load


def load(original, weights):
    import torch.distributed as dist

    result = original(weights)
    if dist.get_rank() == int(os.environ["HANG_RANK"]):
        mark(dist.get_rank())
        while True:
            time.sleep(3600)
    return result


wrap_load(load)
