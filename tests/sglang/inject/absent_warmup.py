"""Blocked: in the first forward rank HANG_RANK waits for an event no one sets, the others for it in a collective."""

from _rig import edit_source

edit_source(
    "sglang.srt.models.deepseek_v2",
    "        for i in range(normal_start_layer, normal_end_layer):\n",
    """        import os, threading, _rig
        _rig.mark(torch.distributed.get_rank())
        if torch.distributed.get_rank() == int(os.environ["HANG_RANK"]):
            threading.Event().wait()
        for i in range(normal_start_layer, normal_end_layer):
""",
)
