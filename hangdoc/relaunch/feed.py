"""Feed prompts to a server that captures: each prompt whose sample is not there yet, a few at a time."""

from __future__ import annotations

import http.client
import json
import queue
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from hangdoc.capture.layout import exists
from hangdoc.relaunch.engine import given_options
from hangdoc.relaunch.prompts import Prompt
from hangdoc.relaunch.records import Plan

EVERYWHERE = {"", "0.0.0.0", "::"}  # noqa: S104 - what the server was told, not where hangdoc listens

AT_ONCE = 16
"""Requests at once: the server batches them; more would only wait there. Arbitrary."""

ANSWER_S = 600.0
"""For one answer; a prompt waits for those before it. SGLang gives its own warm-up request as long."""

AGAIN_S = 1.0
"""Before a request that failed is sent a second and last time. Arbitrary."""

WRITTEN_S = 30.0
"""How long no further sample may be finished, once all prompts are answered, before the rest is given up. Arbitrary: a
sample of 100 MB takes a second on a disk."""

STEP_S = 0.2
"""From one look for finished samples to the next. Arbitrary."""

INDEX, LOSS_MASK = "hangdoc_index", "hangdoc_loss_mask"
"""What the capture reads in a request's custom_params."""

SILENT_S = 60.0
"""How long no answer may come before the launch is looked at. Arbitrary: a long prompt's prefill takes seconds."""

Tell: TypeAlias = Callable[["Fed"], None]
Doubt: TypeAlias = Callable[[], str]


@dataclass(frozen=True)
class Place:
    """Where the samples are written, and how."""

    directory: Path
    form: str


@dataclass(frozen=True)
class Server:
    """Where requests go. key: for the Authorization header, "" where none is asked for."""

    url: str
    key: str = field(default="", repr=False)


@dataclass
class Fed:
    """How far it is; changed as it goes. refused: number and reason; stopped: why it ended before all were sent."""

    there: int = 0
    answered: int = 0
    written: int = 0
    refused: list[tuple[int, str]] = field(default_factory=list)
    stopped: str = ""
    expected: list[int] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """Whether every prompt has its sample."""
        return not self.refused and not self.stopped and self.written == len(self.expected)


class _SilentError(Exception):
    """The server does not answer; the reason."""


def server_of(plan: Plan) -> Server:
    """Return where the server of a plan will listen, by its command line."""
    options = given_options(plan.command.argv)
    host = options.get("--host", "")
    address = "127.0.0.1" if host in EVERYWHERE else host
    url = f"http://[{address}]" if ":" in address else f"http://{address}"
    return Server(f"{url}:{plan.port}", options.get("--api-key", ""))


def feed(prompts: Iterable[Prompt], server: Server, place: Place, tell: Tell, doubt: Doubt = lambda: "") -> Fed:
    """Send what has no sample yet, wait until the samples are written.

    tell: told after each answer and each look; doubt: asked when no answer has come for SILENT_S; what it returns, if
    anything, is why to stop.
    """
    fed = Fed()
    line = _Line(server)
    for prompt in _lacking(prompts, place, fed):
        line.send(prompt)
        if line.waiting >= AT_ONCE and not _take(line, fed, tell, doubt):
            break
    while line.waiting and not fed.stopped:
        _take(line, fed, tell, doubt)
    _wait_for_samples(fed, place, tell)
    return fed


class _Line:
    """Requests under way, in threads that end with hangdoc: one that is never answered must not hold it."""

    def __init__(self, server: Server) -> None:
        self.waiting = 0
        self._server = server
        self._prompts: queue.SimpleQueue[Prompt] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[int, str | _SilentError]] = queue.SimpleQueue()
        for number in range(AT_ONCE):
            threading.Thread(target=self._work, name=f"hangdoc-prompts-{number}", daemon=True).start()

    def send(self, prompt: Prompt) -> None:
        """Send a prompt as soon as a thread is free."""
        self.waiting += 1
        self._prompts.put(prompt)

    def answer(self) -> tuple[int, str | _SilentError] | None:
        """Return the number of an answered prompt and why it was refused ("": it was not); None when none has come."""
        try:
            found = self._answers.get(timeout=SILENT_S)
        except queue.Empty:
            return None
        self.waiting -= 1
        return found

    def _work(self) -> None:
        while True:
            prompt = self._prompts.get()
            said = _sent(self._server, prompt)
            if isinstance(
                said, _SilentError
            ):  # once more: what was lost on the way is no silence, and nothing is twice
                time.sleep(AGAIN_S)
                said = _sent(self._server, prompt)
            self._answers.put((prompt.index, said))


def _lacking(prompts: Iterable[Prompt], place: Place, fed: Fed) -> Iterator[Prompt]:
    for prompt in prompts:
        if exists(place.directory, prompt.index, place.form):
            fed.there += 1
        else:
            yield prompt


def _take(line: _Line, fed: Fed, tell: Tell, doubt: Doubt) -> bool:
    """Take an answer; False when there is no point in waiting for more."""
    found = line.answer()
    if found is None:
        fed.stopped = doubt()
        return not fed.stopped
    index, said = found
    if isinstance(said, _SilentError):
        fed.stopped = str(said)
        return False
    if said:
        fed.refused.append((index, said))
    else:
        fed.expected.append(index)
    fed.answered += 1
    tell(fed)
    return True


def _sent(server: Server, prompt: Prompt) -> str | _SilentError:
    try:
        return _send(server, prompt)
    except _SilentError as error:
        return error


def _send(server: Server, prompt: Prompt) -> str:
    """Send a prompt; return why the server refused it, "" when it did not. _SilentError when it does not answer."""
    path, body = _request(prompt)
    headers = {"content-type": "application/json", **({"authorization": f"Bearer {server.key}"} if server.key else {})}
    request = urllib.request.Request(server.url + path, json.dumps(body).encode(), headers)  # noqa: S310 - http only
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=ANSWER_S) as answer:
            answer.read()
    except urllib.error.HTTPError as error:
        return f"HTTP {error.code}: {words_of(error)}"
    except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: a key that no header can hold
        raise _SilentError(f"the server does not answer: {error}") from error
    return ""


def words_of(error: urllib.error.HTTPError) -> str:
    """Return the beginning of what a server says to a request that it refuses."""
    try:
        return error.read(200).decode(errors="replace")
    except (OSError, http.client.HTTPException) as lost:
        return f"its words were lost ({lost})"


def _request(prompt: Prompt) -> tuple[str, dict[str, object]]:
    """Return path and body: one token is asked for, which the prefill itself gives."""
    given: dict[str, object] = {INDEX: prompt.index}
    if prompt.loss_mask:
        given[LOSS_MASK] = prompt.loss_mask
    if prompt.tokens:
        sampling = {"max_new_tokens": 1, "temperature": 0, "custom_params": given}
        return "/generate", {"input_ids": list(prompt.tokens), "sampling_params": sampling}
    body: dict[str, object] = {
        "model": "default",
        "messages": list(prompt.messages),
        "max_tokens": 1,
        "temperature": 0,
        "custom_params": given,
    }
    if prompt.messages[-1]["role"] == "assistant":
        body["continue_final_message"] = True
    return "/v1/chat/completions", body


def _wait_for_samples(fed: Fed, place: Place, tell: Tell) -> None:
    """Wait for what the capture still writes: it does so after the answer."""
    left = set(fed.expected)
    until_s = time.monotonic() + WRITTEN_S
    while left:
        written = {index for index in left if exists(place.directory, index, place.form)}
        left -= written
        if written:
            until_s = time.monotonic() + WRITTEN_S
        fed.written = len(fed.expected) - len(left)
        tell(fed)
        if not left or time.monotonic() > until_s:
            return
        time.sleep(STEP_S)
