"""Blocked: at the end of the load rank HANG_RANK waits for an event no one sets, the others in an all_reduce."""

import os
import threading

from _rig import mark, wrap_load


def load(original, weights):
    import torch
    import torch.distributed as dist

    result = original(weights)
    mark(dist.get_rank())
    if dist.get_rank() == int(os.environ["HANG_RANK"]):
        threading.Event().wait()
    dist.all_reduce(torch.ones(1))
    return result


wrap_load(load)
