"""Runs in every Python process of a launch: one missing backend handler, import marks and the fault injection."""

import gc
import os

from _rig import after_import, before_import, mark


def _register_mla(module):
    # SGLang has no DeepSeek handler named torch_native; its fallback picks an MHA prefill that torch_native cannot do.
    if hasattr(module, "_dispatch_mla_subtype"):
        module.AttentionBackendRegistry.register("torch_native", module._dispatch_mla_subtype)


def _mark_import():
    # The launcher leads its session, the processes it spawns do not.
    mark("import.launcher" if os.getpid() == os.getsid(0) else "import.child")


# A launch is nine tenths imports, and these are a tenth quicker when the collector does not look at every new function.
gc.set_threshold(200_000, 50, 100)

after_import("sglang.srt.models.deepseek_common.attention_backend_handler", _register_mla)
after_import("sglang.srt.models.deepseek_v2", _register_mla)

if "HANG_DIR" in os.environ:
    before_import("torch", _mark_import)

_inject = os.environ.get("HANG_INJECT")
if _inject:
    with open(_inject) as _handle:
        exec(compile(_handle.read(), _inject, "exec"), {"__name__": "hang_inject"})
