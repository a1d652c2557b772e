"""What a card has to complain of, asked of NVML by the program that may hang: errors, links, modes, events.

`ask` is given in: it tells whoever waits which call is made next. A value is {"value": X} or {"error": CLASS, ...}.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

import pynvml

Answer = dict[str, Any]
Ask = Callable[..., Answer]

EVERY_S = 10.0
"""How old an answer may be: none of this changes fast, and links alone are some 18 calls a card. Arbitrary."""

MOST_EVENTS = 64
"""Errors of one card that are kept. Arbitrary: a card that is lost repeats itself."""


class Health:
    """Asks each card seldom, and collects its errors in every poll. events: also wait for errors."""

    def __init__(self, ask: Ask, *, events: bool) -> None:
        self._ask = ask
        self._answers: dict[int, tuple[float, Answer]] = {}
        self._xids: dict[int, list[int]] = {}
        self._addresses: dict[int, int] = {}
        self._refused: dict[int, Answer] = {}
        self._set: Answer | None = None if events else _off()

    def of(self, to: Any, index: int) -> Answer:
        """Return everything of a card; its errors are as of this moment, the rest may be EVERY_S old."""
        asked_s, answer = self._answers.get(index, (0.0, {}))
        if not answer or time.monotonic() - asked_s >= EVERY_S:
            answer = self._read(to)
            self._answers[index] = (time.monotonic(), answer)
        return {**answer, "xids": self._xids_of(to, index)}

    def _read(self, to: Any) -> Answer:
        ask = self._ask
        kind, since = pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
        return {
            "ecc": ask("nvmlDeviceGetTotalEccErrors", to, kind, since),
            "rows": ask("nvmlDeviceGetRemappedRows", to),
            "links": self._links(to),
            "fabric": self._fabric(to),
            "mig": ask("nvmlDeviceGetMigMode", to),
            "mode": ask("nvmlDeviceGetComputeMode", to),
        }

    def _links(self, to: Any) -> Answer:
        states = []
        for link in range(pynvml.NVML_NVLINK_MAX_LINKS):
            answer = self._ask("nvmlDeviceGetNvLinkState", to, link)
            if answer.get("error") in {"NVMLError_InvalidArgument", "NVMLError_NotSupported"}:
                break  # it has no further link, or none at all
            if "error" in answer:
                return answer
            states.append(answer["value"])
        return {"value": [sum(1 for state in states if state), len(states)]}

    def _fabric(self, to: Any) -> Answer:
        told = pynvml.c_nvmlGpuFabricInfo_v2_t()
        answer = self._ask("nvmlDeviceGetGpuFabricInfoV", to, ctypes.byref(told))
        if answer.get("error") == "NVMLError_NotSupported":
            return {"value": 0}
        return answer if "error" in answer else {"value": told.state}

    def _xids_of(self, to: Any, index: int) -> Answer:
        if self._set is None:
            self._set = self._ask("nvmlEventSetCreate")
        if "error" in self._set:
            return self._set
        if index not in self._xids and index not in self._refused:
            self._register(to, index)
        if index in self._refused:
            return self._refused[index]
        self._collect()
        return {"value": self._xids[index]}

    def _register(self, to: Any, index: int) -> None:
        assert self._set is not None
        event = pynvml.nvmlEventTypeXidCriticalError
        answer = self._ask("nvmlDeviceRegisterEvents", to, event, self._set["value"])
        if "error" in answer:
            self._refused[index] = answer
            return
        self._xids[index] = []
        self._addresses[_address(to)] = index

    def _collect(self) -> None:
        assert self._set is not None
        while "value" in (found := self._ask("nvmlEventSetWait_v2", self._set["value"], 0)):
            index = self._addresses.get(_address(found["value"].device))
            if index is not None and len(self._xids[index]) < MOST_EVENTS:
                self._xids[index].append(int(found["value"].eventData))


def _address(handle: Any) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0


def _off() -> Answer:
    return {"error": "NVMLError_Timeout", "text": "a wait for events did not return before"}
