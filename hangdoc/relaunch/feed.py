"""Feed prompts to a server that captures: each prompt whose sample is not there yet, a few at a time."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from hangdoc.capture.layout import exists
from hangdoc.relaunch.prompts import Prompt

AT_ONCE = 16
"""Requests at once: the server batches them; more would only wait there. Arbitrary."""

ANSWER_S = 600.0
"""For one answer; a prompt waits for those before it. SGLang gives its own warm-up request as long."""

WRITTEN_S = 30.0
"""How long no further sample may be finished, once all prompts are answered, before the rest is given up. Arbitrary: a
sample of 100 MB takes a second on a disk."""

STEP_S = 0.2
"""From one look for finished samples to the next. Arbitrary."""

INDEX, LOSS_MASK = "hangdoc_index", "hangdoc_loss_mask"
"""What the capture reads in a request's custom_params."""

Tell: TypeAlias = Callable[["Fed"], None]


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


def feed(prompts: Iterable[Prompt], server: Server, directory: Path, form: str, tell: Tell) -> Fed:
    """Send what has no sample yet, wait until the samples are written; tell: told after each answer and each look."""
    fed = Fed()
    waiting: dict[Future[str], int] = {}
    with ThreadPoolExecutor(AT_ONCE, "hangdoc-prompts") as pool:
        for prompt in _lacking(prompts, directory, form, fed):
            waiting[pool.submit(_send, server, prompt)] = prompt.index
            if len(waiting) >= AT_ONCE and not _take(waiting, fed, tell):
                break
        while waiting and not fed.stopped:
            _take(waiting, fed, tell)
        pool.shutdown(cancel_futures=True)
    _wait_for_samples(fed, directory, form, tell)
    return fed


def _lacking(prompts: Iterable[Prompt], directory: Path, form: str, fed: Fed) -> Iterator[Prompt]:
    for prompt in prompts:
        if exists(directory, prompt.index, form):
            fed.there += 1
        else:
            yield prompt


def _take(waiting: dict[Future[str], int], fed: Fed, tell: Tell) -> bool:
    """Take the answers that have come; False when the server does not answer any more."""
    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
    for one in done:
        index = waiting.pop(one)
        try:
            refusal = one.result()
        except _SilentError as error:
            fed.stopped = fed.stopped or str(error)
            continue
        if refusal:
            fed.refused.append((index, refusal))
        else:
            fed.expected.append(index)
        fed.answered += 1
    tell(fed)
    return not fed.stopped


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
        return f"HTTP {error.code}: {error.read(200).decode(errors='replace')}"
    except (OSError, http.client.HTTPException) as error:
        raise _SilentError(f"the server does not answer: {error}") from error
    return ""


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


def _wait_for_samples(fed: Fed, directory: Path, form: str, tell: Tell) -> None:
    """Wait for what the capture still writes: it does so after the answer."""
    left = set(fed.expected)
    until_s = time.monotonic() + WRITTEN_S
    while left:
        written = {index for index in left if exists(directory, index, form)}
        left -= written
        if written:
            until_s = time.monotonic() + WRITTEN_S
        fed.written = len(fed.expected) - len(left)
        tell(fed)
        if not left or time.monotonic() > until_s:
            return
        time.sleep(STEP_S)
