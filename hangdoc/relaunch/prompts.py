"""Read a file of prompts: one JSON object a line, a conversation or token ids; the line's number is the sample's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from hangdoc.errors import HangdocError
from hangdoc.regular import open_regular

CONVERSATIONS = ("messages", "conversations", "conversation")
ROLES = {"human": "user", "gpt": "assistant"}
"""ShareGPT's names of roles."""

HOW = 'a line is {"input_ids": [1, 2], "loss_mask": [0, 1]} or {"messages": [{"role": "user", "content": "..."}]}'


@dataclass(frozen=True)
class Prompt:
    """One line. index: its number from 0; tokens or messages: one of both; loss_mask: text of 0 and 1, "" for none."""

    index: int
    tokens: tuple[int, ...] = ()
    messages: tuple[dict[str, str], ...] = ()
    loss_mask: str = ""


def check_prompts(path: Path) -> int:
    """Read every line once and return how many there are; HangdocError (2) names the first that is no prompt."""
    count = sum(1 for _ in read_prompts(path))
    if not count:
        raise HangdocError(f"{path} has no prompts", HOW)
    return count


def read_prompts(path: Path) -> Iterator[Prompt]:
    """Yield the prompts of a file; blank lines are none, but count. HangdocError (2) for a line that is no prompt."""
    try:
        with TextIOWrapper(open_regular(path), encoding="utf-8") as lines:
            for index, line in enumerate(lines):
                if line.strip():
                    yield _prompt(path, index, line)
    except OSError as error:
        raise HangdocError(f"{path} cannot be read: {error.strerror}", "look at the path") from error
    except UnicodeDecodeError as error:
        raise HangdocError(f"{path} is no text in UTF-8", HOW) from error


def _prompt(path: Path, index: int, line: str) -> Prompt:
    try:
        given = json.loads(line)
    except ValueError:
        given = None
    complaint, prompt = _read(index, given) if isinstance(given, dict) else ("it is no JSON object", None)
    if prompt is None:
        raise HangdocError(f"{path}, line {index + 1}: {complaint}", HOW)
    return prompt


def _read(index: int, given: dict[str, Any]) -> tuple[str, Prompt | None]:
    """Return the prompt of an object, or what is wrong with it."""
    talk = next((given[name] for name in CONVERSATIONS if name in given), None)
    tokens = given.get("input_ids")
    if (talk is None) == (tokens is None):
        return "it has either input_ids or messages", None
    if talk is not None:
        messages = _messages(talk)
        return ("its messages are no conversation", None) if not messages else ("", Prompt(index, messages=messages))
    if not isinstance(tokens, list) or not tokens or not all(type(one) is int and one >= 0 for one in tokens):
        return "its input_ids are no token ids", None
    mask = given.get("loss_mask")
    if mask is None:
        return "", Prompt(index, tuple(tokens))
    if not isinstance(mask, list) or len(mask) != len(tokens) or not all(one in (0, 1) for one in mask):
        return "its loss_mask is not a 0 or 1 for each of input_ids", None
    return "", Prompt(index, tuple(tokens), loss_mask="".join(str(int(one)) for one in mask))


def _messages(talk: Any) -> tuple[dict[str, str], ...]:
    """Return a conversation as the chat API takes it, from its own form or ShareGPT's; empty when it is none."""
    found: list[dict[str, str]] = []
    for turn in talk if isinstance(talk, list) else ():
        role = turn.get("role", turn.get("from")) if isinstance(turn, dict) else None
        content = turn.get("content", turn.get("value")) if isinstance(turn, dict) else None
        if not isinstance(role, str) or not isinstance(content, str):
            return ()
        found.append({"role": ROLES.get(role, role), "content": content})
    return tuple(found)
