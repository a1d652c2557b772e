"""The bytes of a sample: SpecForge's `torch.save` file, or safetensors, with their SHA-256 taken on the way."""

from __future__ import annotations

import ctypes
import hashlib
import json
from typing import Any, BinaryIO, Protocol

Tensors = dict[str, Any]

DTYPES = {
    "torch.bfloat16": "BF16",
    "torch.float16": "F16",
    "torch.float32": "F32",
    "torch.float64": "F64",
    "torch.int64": "I64",
}
"""torch's names of the types a sample may have, and safetensors'."""


class Save(Protocol):
    """Writes tensors of the CPU to a stream."""

    def __call__(self, tensors: Tensors, stream: Any) -> None:
        """Write all tensors."""


class Hashing:
    """A stream that takes the digest and the length of what passes through it."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream, self.digest, self.size_bytes = stream, hashlib.sha256(), 0

    def write(self, data: Any) -> int:
        """Pass bytes on."""
        view = memoryview(data).cast("B")
        self.stream.write(view)
        self.digest.update(view)
        self.size_bytes += len(view)
        return len(view)

    def flush(self) -> None:
        """Flush the stream behind."""
        self.stream.flush()


def save_specforge(tensors: Tensors, stream: Any) -> None:
    """Write as SpecForge's prepare_hidden_states.py does."""
    import torch

    torch.save(tensors, stream)


def save_safetensors(tensors: Tensors, stream: Any) -> None:
    """Write by hand: the server need not have the safetensors package of any version for it."""
    header: dict[str, Any] = {}
    end = 0
    for name, tensor in tensors.items():
        begin, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": DTYPES[str(tensor.dtype)], "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # so that the tensors are aligned
    stream.write(len(text).to_bytes(8, "little") + text)
    for tensor in tensors.values():
        stream.write(_memory(tensor.contiguous()))


def _memory(tensor: Any) -> memoryview:
    """Return the tensor's bytes without a copy and without numpy."""
    size = tensor.numel() * tensor.element_size()
    return memoryview((ctypes.c_char * size).from_address(tensor.data_ptr()))


SAVES: dict[str, Save] = {"specforge": save_specforge, "safetensors": save_safetensors}
