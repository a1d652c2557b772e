"""Blocks of nvidia-smi's table in a pasted report, as the records that the gpu probe makes."""

from __future__ import annotations

import re

from msgspec.structs import replace

from hangdoc.model.gpu import Gpu, GpuProcess, Gpus
from hangdoc.model.reading import Known, Missing, Reading

_DEVICE = re.compile(r"^\|\s+(?P<index>\d{1,3})\s+(?P<name>\S.*?)\s+(?:On|Off)  \|\s*[0-9A-Fa-f]{4,8}:")
_USE = re.compile(
    r"^\|.*?(?P<power>\d{1,5}|N/A)W?\s*/\s*(?P<limit>\d{1,5}|N/A)W?\s*\|\s*(?P<used>\d{1,8})MiB / {1,9}"
    r"(?P<total>\d{1,8})MiB\s*\|\s*(?:(?P<busy>\d{1,3})%|N/A)"
)
_PROCESS = re.compile(
    r"^\|\s+(?P<index>\d{1,3})\s+(?:(?:N/A|\d+)\s+){0,2}(?P<pid>\d{1,10})\s+[CGM+]{1,3}\s+.*?(?P<used>\d{1,8})MiB \|"
)
TEXTS_OF_TABLE = ("On  |", "Off  |", "MiB / ", "MiB |")
"""One of these stands in each of its lines that counts."""

_MIB = 1 << 20
_MOST = 64
"""GPUs that are kept. Arbitrary: the largest host has 16."""


class SmiTable:
    """Takes the lines of a log and keeps the last table that nvidia-smi printed into it."""

    def __init__(self) -> None:
        self._devices: dict[int, Gpu] = {}
        self._head: tuple[int, str] | None = None

    def take(self, line: str) -> bool:
        """Take one line without its wrapping; tell whether it belongs to a table."""
        if not line.startswith("|"):
            return False
        if (match := _DEVICE.match(line)) is not None:
            self._head = (int(match["index"]), match["name"])
        elif self._head is not None and (match := _USE.match(line)) is not None:
            self._device(*self._head, match)
        elif (match := _PROCESS.match(line)) is not None:
            self._process(match)
        return True

    def gpus(self) -> Gpus | None:
        """Return what the table says; None when there was none.

        Where it lists no process at all it was not pasted whole, or printed in a container, whose own it does not see.
        """
        found = [self._devices[index] for index in sorted(self._devices)]
        if all(gpu.processes == Known(()) for gpu in found):
            found = [replace(gpu, processes=_NONE_LISTED) for gpu in found]
        return Gpus(tuple(found)) if found else None

    def _device(self, index: int, name: str, match: re.Match[str]) -> None:
        self._head = None
        if len(self._devices) >= _MOST:
            return
        self._devices[index] = Gpu(
            index=index,
            name=name,
            used_bytes=Known(int(match["used"]) * _MIB),
            total_bytes=Known(int(match["total"]) * _MIB),
            util_ratio=_share(match["busy"]),
            power_w=_watts(match["power"]),
            power_limit_w=_watts(match["limit"]),
            processes=Known(()),
        )

    def _process(self, match: re.Match[str]) -> None:
        gpu = self._devices.get(int(match["index"]))
        if gpu is None or isinstance(gpu.processes, Missing) or len(gpu.processes.value) >= _MOST:
            return
        user = GpuProcess(int(match["pid"]), Known(int(match["used"]) * _MIB))
        self._devices[gpu.index] = replace(gpu, processes=Known((*gpu.processes.value, user)))


_NONE_LISTED = Missing("gpu", "not-in-input", "nvidia-smi lists no process")


def _share(percent: str | None) -> Reading[float]:
    return Missing("gpu", "not-in-input", "nvidia-smi printed N/A") if percent is None else Known(int(percent) / 100)


def _watts(printed: str) -> Reading[float]:
    return Known(float(printed)) if printed.isdigit() else Missing("gpu", "not-in-input", "nvidia-smi printed N/A")
