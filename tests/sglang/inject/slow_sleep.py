"""Slow start: the load sleeps before each of its 188 tensors, but does go on."""

import time

from _rig import mark, wrap_load


def slowly(weights):
    import torch.distributed as dist

    for number, item in enumerate(weights):
        time.sleep(0.4)
        if number == 1:
            mark(dist.get_rank())
        yield item


wrap_load(lambda original, weights: original(slowly(weights)))
