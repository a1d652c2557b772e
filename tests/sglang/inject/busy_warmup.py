"""Busy wait: the first forward (the warm-up request) searches the layers in a Python loop for one that is not there."""

from _rig import edit_source

edit_source(
    "sglang.srt.models.deepseek_v2",
    "        for i in range(normal_start_layer, normal_end_layer):\n",
    """        import _rig
        _rig.mark(torch.distributed.get_rank())
        wanted, i = {-1}, normal_start_layer
        while not wanted.issubset(range(normal_start_layer, i)):
            i += 1
            if i >= normal_end_layer:
                i = normal_start_layer
        for i in range(normal_start_layer, normal_end_layer):
""",
)
