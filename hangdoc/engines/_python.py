"""Frames that mean the same under every engine: the interpreter's own, torch's, and those of common libraries."""

from __future__ import annotations

import re

from hangdoc.model.engine import Activity, FrameRule
from hangdoc.model.log import Phase


def _frame(
    activity: Activity, function: str, file: str = "", phase: Phase = "unknown", *, innermost: bool = False
) -> FrameRule:
    return FrameRule(activity, re.compile(function), file, phase, innermost)


FRAMES = (
    # Threads that exist to wait.
    _frame("helper", r"_worker", "concurrent/futures/thread.py", innermost=True),
    _frame("helper", r"run", "tqdm/_monitor.py"),
    _frame("helper", r"_feed", "multiprocessing/queues.py"),
    _frame("helper", r"_read_thread|_wait_for_.*", "torch/_inductor/compile_worker/subproc_pool.py"),
    _frame("helper", r"serve_forever", "socketserver.py"),
    _frame("helper", r"run", "anyio/_backends/_asyncio.py"),
    _frame("helper", r"_handle_(workers|tasks|results)", "multiprocessing/pool.py"),
    # Imports: the frozen bootstrap is in the stack only while a module is being loaded.
    _frame(
        "import",
        r"_find_and_load\w*|_load_unlocked|exec_module|_call_with_frames_removed|get_code|get_data",
        "<frozen importlib._bootstrap>",
        "launch",
    ),
    _frame("import", r".*", "<frozen importlib._bootstrap_external>", "launch"),
    # torch.distributed: functions that return when every rank has come.
    _frame(
        "collective",
        r"all_reduce|broadcast\w*|barrier|monitored_barrier|all_gather\w*|_?reduce\w*|gather\w*|scatter\w*"
        r"|all_to_all\w*|batch_isend_irecv|send\w*|recv\w*|_object_to_tensor",
        "torch/distributed/distributed_c10d.py",
    ),
    _frame("rendezvous", r".*", "torch/distributed/rendezvous.py", "rendezvous"),
    _frame(
        "rendezvous",
        r"init_process_group|new_group\w*|_new_process_group_helper|_new_group_with_tag"
        r"|_store_based_barrier",
        "torch/distributed/distributed_c10d.py",
        "rendezvous",
    ),
    # Waits of the standard library.
    _frame("file-lock", r"acquire|blocking_acquire|_acquire", "filelock/_api.py"),
    _frame("file-lock", r"_poll_until_acquired|_acquire\w*", "filelock/_core/_acquire.py"),
    _frame("file-lock", r"wait", "torch/utils/file_baton.py"),
    _frame("file-lock", r"blocking_acquire", "tvm_ffi/utils/lockfile.py"),
    _frame("future", r"result|wait|as_completed", "concurrent/futures/_base.py"),
    _frame("lock", r"wait|wait_for|acquire|join|_wait_for_tstate_lock|__enter__", "threading.py"),
    _frame("queue", r"get|put", "queue.py"),
    _frame("queue", r"get|put|join", "multiprocessing/queues.py"),
    _frame("queue", r"recv\w*|poll|wait|_recv\w*|_poll", "multiprocessing/connection.py"),
    _frame("parent-wait", r"join|wait|poll", "multiprocessing/popen_fork.py"),
    # Compilers started from Python.
    _frame(
        "compile",
        r"_run_ninja_build|_jit_compile|_write_ninja_file\w*|load_inline",
        "torch/utils/cpp_extension.py",
        "jit-compile",
    ),
    _frame(
        "compile",
        r"compile_fx\w*|codegen|compile_to_module|_compile_to_module",
        "torch/_inductor/compile_fx.py",
        "jit-compile",
    ),
    _frame("compile", r"compile", "triton/compiler/compiler.py", "jit-compile"),
    _frame("compile", r"build_and_load|build|run_ninja", "flashinfer/jit/core.py", "jit-compile"),
    _frame("graph-capture", r"capture_begin|__enter__", "torch/cuda/graphs.py", "graph-capture"),
)
"""Tried after the engine's own rules, frame by frame."""
