"""A headless Chromium, driven by its DevTools protocol through two pipes: no port, no driver, no package."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LONGEST_S = 120.0
"""No answer takes longer, whatever the machine is doing; nothing passes or fails by a time."""

FLAGS = (
    "--headless",
    "--no-sandbox",  # root has none
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


@dataclass
class Chromium:
    """One browser with one page; events: everything it reported since the page was opened."""

    child: subprocess.Popen[bytes]
    to: int
    back: int
    events: list[dict[str, Any]] = field(default_factory=list)
    session: str = ""
    _number: int = 0
    _rest: bytes = b""

    @classmethod
    def start(cls, profile: Path) -> Chromium:
        """Start it; it ends with the pipes, whoever forgets it."""
        their_in, to = os.pipe()
        back, their_out = os.pipe()

        def wire() -> None:
            low_in, low_out = os.dup(their_in), os.dup(their_out)
            os.dup2(low_in, 3)
            os.dup2(low_out, 4)

        arguments = ["chromium", *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        child = subprocess.Popen(
            arguments,
            preexec_fn=wire,  # noqa: PLW1509 - it only renumbers two descriptors
            close_fds=False,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(their_in)
        os.close(their_out)
        found = cls(child, to, back)
        target = found.ask("Target.createTarget", url="about:blank")["targetId"]
        found.session = found.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Security"):
            found.ask(f"{domain}.enable")
        return found

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result; what else comes meanwhile is an event."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.to, json.dumps(command).encode() + b"\0")
        answer = self._until(lambda one: one.get("id") == self._number)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def open(self, page: Path, **emulated: str) -> None:
        """Load a file, with media features such as prefers-color-scheme="dark", and wait until it is there."""
        features = [{"name": name.replace("_", "-"), "value": value} for name, value in emulated.items()]
        self.ask("Emulation.setEmulatedMedia", media="", features=features)
        self.events.clear()
        self.ask("Page.navigate", url=page.as_uri())
        self._seen("Page.loadEventFired")

    def size(self, width: int, height: int) -> None:
        """Make the window so large."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def run(self, script: str) -> Any:
        """Return what an expression gives."""
        result = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def press(self, key: str, code: int, text: str = "") -> None:
        """Press a key and let it go."""
        about: Mapping[str, Any] = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.ask("Input.dispatchKeyEvent", type="keyDown", text=text, **about)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **about)

    def end(self) -> None:
        """End it, with all of its processes."""
        with suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)
        self.child.wait()
        os.close(self.to)
        os.close(self.back)

    def _seen(self, method: str) -> None:
        if not any(one["method"] == method for one in self.events):
            self._until(lambda one: one.get("method") == method)

    def _until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        end_s = time.monotonic() + LONGEST_S
        while True:
            message = self._next(end_s)
            if "method" in message:
                self.events.append(message)
            if wanted(message):
                return message

    def _next(self, end_s: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            left_s = end_s - time.monotonic()
            assert left_s > 0, "Chromium does not answer"
            assert select.select([self.back], [], [], left_s)[0], "Chromium does not answer"
            chunk = os.read(self.back, 1 << 20)
            assert chunk, "Chromium has ended"
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message
