"""Busy wait: rank HANG_RANK searches in the model's __init__ for layers that it can never find, in a Python loop."""

from _rig import edit_source

edit_source(
    "sglang.srt.models.deepseek_v2",
    "        self.layers_to_capture = []\n",
    """        self.layers_to_capture = []
        import os, _rig
        ill = torch.distributed.get_rank() == int(os.environ["HANG_RANK"])
        if ill:
            _rig.mark(torch.distributed.get_rank())
        next_layer = 0
        while ill and len(self.layers_to_capture) < 3:
            candidate = next_layer % config.num_hidden_layers
            if candidate >= config.num_hidden_layers:
                self.layers_to_capture.append(candidate)
            next_layer += 1
""",
)
