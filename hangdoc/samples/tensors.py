"""Tensors in a sample's file, described without torch and without running anything that the file says."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import re
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

PIECE_BYTES = 1 << 24
SIZES_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4, "float64": 8, "int32": 4, "int64": 8}
STORAGES = {
    "BFloat16Storage": "bfloat16",
    "HalfStorage": "float16",
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "IntStorage": "int32",
    "LongStorage": "int64",
}
SAFETENSORS = {"BF16": "bfloat16", "F16": "float16", "F32": "float32", "F64": "float64", "I32": "int32", "I64": "int64"}

_ALL_ONES = {
    "bfloat16": re.compile(rb"[\x7f\xff]"),
    "float16": re.compile(rb"[\x7c-\x7f\xfc-\xff]"),
    "float32": re.compile(rb"[\x7f\xff]"),
    "float64": re.compile(rb"[\x7f\xff]"),
}
"""What the last (highest) byte of a number is if its exponent may be all ones, as a NaN's and an infinity's is."""


@dataclass(frozen=True)
class Tensor:
    """dtype: torch's name without `torch.`; open: a stream of its bytes, little-endian."""

    dtype: str
    shape: tuple[int, ...]
    open: Callable[[], BinaryIO]


def read(path: Path) -> dict[str, Tensor]:
    """Describe the tensors of a .ckpt, .ckpt.gz or .safetensors file; OSError, or ValueError when it is damaged."""
    try:
        if path.suffix == ".safetensors":
            return _safetensors(path)
        if path.suffix == ".gz":
            with gzip.open(path) as stream:
                return _checkpoint(io.BytesIO(stream.read()))
        return _checkpoint(path)
    except (
        zipfile.BadZipFile,
        pickle.UnpicklingError,
        KeyError,
        EOFError,
        TypeError,
        IndexError,
        struct.error,
    ) as error:
        raise ValueError(f"is damaged ({type(error).__name__}: {error})") from error


def has_nan(tensor: Tensor) -> bool:
    """Say whether a number of the tensor is NaN."""
    pattern, size = _ALL_ONES.get(tensor.dtype), SIZES_BYTES[tensor.dtype]
    if pattern is None:
        return False
    with tensor.open() as stream:
        while piece := stream.read(PIECE_BYTES):
            # Few numbers have the highest exponents: their last bytes are looked for at the speed of C.
            for match in pattern.finditer(piece[size - 1 :: size]):
                number = _number(piece[match.start() * size : match.end() * size], tensor.dtype)
                if number != number:  # noqa: PLR0124 - what a NaN is
                    return True
    return False


def _number(raw: bytes, dtype: str) -> float:
    if dtype == "bfloat16":
        raw, dtype = b"\0\0" + raw, "float32"
    value: float = struct.unpack({"float16": "<e", "float32": "<f", "float64": "<d"}[dtype], raw)[0]
    return value


def _checkpoint(source: Path | BinaryIO) -> dict[str, Tensor]:
    """Describe what `torch.save` of a dictionary of tensors has written."""
    with zipfile.ZipFile(source) as archive:
        (pickled,) = (name for name in archive.namelist() if name.endswith("/data.pkl"))
        found = _Describing(archive.read(pickled)).load()
        sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
    if not isinstance(found, dict):
        raise TypeError("it is no dictionary of tensors")
    prefix = pickled.removesuffix("data.pkl")
    return {str(name): _stored(source, prefix, value, sizes) for name, value in found.items()}


def _stored(source: Path | BinaryIO, prefix: str, value: Any, sizes: dict[str, int]) -> Tensor:
    if not isinstance(value, _Described):
        raise TypeError("something in it is no tensor")
    entry = f"{prefix}data/{value.key}"
    count = 1
    for length in value.shape:
        count *= length
    if sizes[entry] < count * SIZES_BYTES[value.dtype]:
        raise ValueError(f"is damaged: {entry} is too short for {value.shape}")
    return Tensor(value.dtype, value.shape, lambda: io.BytesIO(_content(source, entry)))


def _content(source: Path | BinaryIO, entry: str) -> bytes:
    with zipfile.ZipFile(source) as archive:
        return archive.read(entry)


@dataclass(frozen=True)
class _Described:
    key: str
    dtype: str
    shape: tuple[int, ...]


class _Describing(pickle.Unpickler):
    """Knows the three names that a pickle of tensors has, and refuses every other."""

    def __init__(self, pickled: bytes) -> None:
        super().__init__(io.BytesIO(pickled))

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name in STORAGES:
            return STORAGES[name]
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, _, shape, *__: _Described(storage[0], storage[1], tuple(shape))
        if (module, name) == ("collections", "OrderedDict"):
            return dict
        raise pickle.UnpicklingError(f"it wants {module}.{name}")

    def persistent_load(self, pid: Any) -> tuple[str, str]:
        _, dtype, key, *_ = pid
        return key, dtype


def _safetensors(path: Path) -> dict[str, Tensor]:
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        size = path.stat().st_size
        if not 0 < length <= size - 8:
            raise ValueError("is damaged: its header is longer than the file")
        header = json.loads(stream.read(length))
    return dict(_parts(path, header, 8 + length, size))


def _parts(path: Path, header: dict[str, Any], base: int, size: int) -> Iterator[tuple[str, Tensor]]:
    for name, part in header.items():
        if name == "__metadata__":
            continue
        begin, end = part["data_offsets"]
        if base + end > size:
            raise ValueError(f"is damaged: {name} ends behind the file's end")
        yield name, Tensor(SAFETENSORS[part["dtype"]], tuple(part["shape"]), _part(path, base + begin, end - begin))


def _part(path: Path, offset: int, size: int) -> Callable[[], BinaryIO]:
    def opened() -> BinaryIO:
        with path.open("rb") as stream:
            stream.seek(offset)
            return io.BytesIO(stream.read(size))

    return opened
