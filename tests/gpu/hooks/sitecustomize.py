"""Runs in every Python process of a launch on a GPU machine: makes one rank ill, where and when the environment says.

HANG_MODE: what goes wrong ("" nothing); HANG_RANK: with which rank; HANG_DIR: where a mark is left once it has;
HANG_WHEN: a file without which nothing goes wrong yet; HANG_HOLD: a file without which no scheduler begins, so that
imports, the longest part of a start, are over before the card is needed; HANG_ONE_GPU: all ranks use the first card;
HANG_NEXT: another sitecustomize to run as well. NVLink multicast is never used.
"""

import functools
import os
import sys
import time

MODE = os.environ.get("HANG_MODE", "")
RANK = int(os.environ.get("HANG_RANK", "0"))
BOUND_S = float(os.environ.get("HANG_BOUND_S", "300"))
LAYER = 3
CYCLES_PER_S = 1.9e9


def mark(name):
    directory = os.environ.get("HANG_DIR")
    if directory:
        with open(os.path.join(directory, f"mark.{name}"), "w") as file:
            file.write(str(os.getpid()))


def is_due():
    when = os.environ.get("HANG_WHEN")
    return not when or os.path.exists(when)


def own_rank():
    import torch.distributed

    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0


def sleep_long():
    time.sleep(BOUND_S)


def loop_in_python():
    end, number = time.time() + BOUND_S, 0
    while time.time() < end:
        number += 1


def spin_on_the_gpu():
    import torch

    torch.cuda._sleep(int(BOUND_S * CYCLES_PER_S))


def fail():
    raise RuntimeError("induced failure of a rank")


def is_capturing():
    import torch

    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()


ILLNESSES = {
    "python-loop": loop_in_python,
    "kernel-spin": spin_on_the_gpu,
    "sleep": sleep_long,
    "sleep-in-capture": sleep_long,
    "raise": fail,
}


def patch_model(module):
    """Fall ill in the forward pass of one layer, once."""
    kind = module.DeepseekV2DecoderLayer
    healthy, done = kind.forward, []

    @functools.wraps(healthy)
    def forward(self, *arguments, **named):
        fits = getattr(self, "layer_id", None) == LAYER and is_capturing() == (MODE == "sleep-in-capture")
        if fits and not done and is_due() and own_rank() == RANK:
            done.append(True)
            mark("ill")
            ILLNESSES[MODE]()
        return healthy(self, *arguments, **named)

    kind.forward = forward


def patch_loader(module):
    """Wait before each tensor."""
    kind = module.DefaultModelLoader
    healthy = kind._get_all_weights

    def _get_all_weights(self, *arguments, **named):
        for number, tensor in enumerate(healthy(self, *arguments, **named)):
            if number == 2:
                mark("ill")
            time.sleep(0.4)
            yield tensor

    kind._get_all_weights = _get_all_weights


def patch_nccl(module):
    """Stay out of the set-up of NCCL's communicator."""
    kind = module.PyNcclCommunicator
    healthy = kind.__init__

    def __init__(self, *arguments, **named):
        if own_rank() == RANK:
            mark("ill")
            sleep_long()
        healthy(self, *arguments, **named)

    kind.__init__ = __init__


def patch_rendezvous(module):
    """Stay out of the rendezvous."""
    import torch.distributed

    healthy = torch.distributed.init_process_group

    def init_process_group(*arguments, **named):
        if named.get("rank") == RANK:
            mark("ill")
            sleep_long()
        return healthy(*arguments, **named)

    torch.distributed.init_process_group = init_process_group


def patch_scheduler(module):
    """Wait until the card is free; put every rank on the first card where there is only one."""
    healthy = module.run_scheduler_process

    @functools.wraps(healthy)
    def run_scheduler_process(server_args, port_args, gpu_id, *arguments, **named):
        hold = os.environ.get("HANG_HOLD")
        mark("held")
        while hold and not os.path.exists(hold):
            time.sleep(0.05)
        first = 0 if os.environ.get("HANG_ONE_GPU") else gpu_id
        return healthy(server_args, port_args, first, *arguments, **named)

    module.run_scheduler_process = run_scheduler_process


def patch_multicast(module):
    """Never gather over NVLink multicast."""
    kind = module.MultimemAllGatherer
    healthy = kind.__init__

    def __init__(self, max_tokens, *, enabled=True, skip_entry_sync=False):
        healthy(self, max_tokens, enabled=False, skip_entry_sync=skip_entry_sync)

    kind.__init__ = __init__


PATCHES = {
    "sglang.srt.managers.scheduler": patch_scheduler,
    "sglang.srt.distributed.device_communicators.triton_symm_mem_ag": patch_multicast,
}
if MODE in ILLNESSES:
    PATCHES["sglang.srt.models.deepseek_v2"] = patch_model
elif MODE == "slow-load":
    PATCHES["sglang.srt.model_loader.loader"] = patch_loader
elif MODE == "nccl-init":
    PATCHES["sglang.srt.distributed.device_communicators.pynccl"] = patch_nccl
elif MODE == "rendezvous":
    PATCHES["sglang.srt.distributed.parallel_state"] = patch_rendezvous


class Finder:
    """Finds nothing itself: patches a module once it has been loaded."""

    def find_spec(self, name, path=None, target=None):
        patch = PATCHES.pop(name, None)
        if patch is None:
            return None
        import importlib.util

        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            try:
                patch(module)
            except AttributeError as error:
                print(f"hook for {name} does not fit: {error!r}", file=sys.stderr, flush=True)

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Finder())

_next = os.environ.get("HANG_NEXT")
if _next:
    with open(_next) as _handle:
        exec(compile(_handle.read(), _next, "exec"), {"__name__": "sitecustomize", "__file__": _next})
