"""Redaction of command lines, titles and settings: options that are known, values that are numbers or known words."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hangdoc.trace import allowed, names
from hangdoc.trace.tokens import Tokens

_NUMBER = re.compile(r"-?\d{1,12}(?:\.\d{1,9})?(?:[eE]-?\d{1,3})?|\d{1,6}(?:,\d{1,6}){1,256}", re.ASCII)
_OPTION = re.compile(r"(--?[A-Za-z][\w.-]*)(?:=(.*))?", re.ASCII | re.DOTALL)
_SWITCH = re.compile(r"--(?:enable|disable|enforce|skip|no|use)-[a-z0-9-]{1,60}", re.ASCII)
_MODULE = re.compile(rf"(?:{'|'.join(allowed.MODULES)})(?:\.[A-Za-z_]\w{{0,40}}){{0,5}}", re.ASCII)
_SPAWN_CODE = (
    r"from multiprocessing\.(?:spawn import spawn_main; ?spawn_main\((?:\w{1,20}=\d{1,10}(?:, )?){0,4}\)"
    r"|resource_tracker import main;main\(\d{1,10}\))"
)
_SPAWN = re.compile(_SPAWN_CODE, re.ASCII)
_TITLE_WORD = re.compile(rf"{_SPAWN_CODE}|\S+", re.ASCII)
_TITLE = re.compile(
    r"(?:sglang|vllm|VLLM)::[A-Za-z]{1,24}(?:_[A-Za-z]{1,24}){0,4}(?:_(?:[A-Z]{2,8}_){0,2}[A-Z]{0,8}\d{1,5}){0,9}"
    r"|pt_[a-z_]{1,32}|ray::[A-Za-z_]{1,24}",
    re.ASCII,
)


def argv(tokens: Tokens, words: Iterable[str]) -> tuple[str, ...]:
    """Keep the program, its public module, known options, and those of their values that are numbers or known words."""
    kept: list[str] = []
    option = ""
    for word in words:
        match = None if _NUMBER.fullmatch(word) else _OPTION.fullmatch(word)
        if match is None:
            kept.append(_value(tokens, option, word))
            continue
        option, value = match.group(1), match.group(2)
        kept.append(_option(tokens, word, option, value))
    return tuple(kept)


def title(tokens: Tokens, text: str) -> str:
    """Keep what engines call their processes ("sglang::scheduler_TP0"); any other title is a command line."""
    if _TITLE.fullmatch(text):
        return text
    return " ".join(argv(tokens, _TITLE_WORD.findall(text)))


def settings(tokens: Tokens, options: dict[str, str]) -> dict[str, str]:
    """Keep the settings an argv would keep."""
    return {
        name if _is_known(name) else tokens.of(name, "option"): _value(tokens, f"--{name}", value)
        for name, value in options.items()
    }


def _option(tokens: Tokens, word: str, option: str, value: str | None) -> str:
    if value is None and (option in allowed.PYTHON_OPTIONS or _SWITCH.fullmatch(option)):
        return word
    if not _is_known(option):
        return tokens.of(word, "arg")
    return option if value is None else f"{option}={_value(tokens, option, value)}"


def _value(tokens: Tokens, option: str, word: str) -> str:
    """Return what stays of a word that follows an option ("" for none, or one that is not known)."""
    if option == "-m" and _MODULE.fullmatch(word):
        return word
    if option == "-c" and _SPAWN.fullmatch(word):
        return word
    name = _plain(option)
    if name in allowed.ADDRESS_OPTIONS:
        return names.address(tokens, word)
    if name in allowed.VALUE_OPTIONS and (_NUMBER.fullmatch(word) or word.lower() in allowed.VALUES):
        return word
    return _operand(tokens, word)


def _operand(tokens: Tokens, word: str) -> str:
    program = word.rpartition("/")[2]
    if allowed.PROGRAM.fullmatch(program) or word in allowed.SUBCOMMANDS:
        return program
    if word.endswith(".py"):
        return names.frame_file(tokens, word)
    return names.path(tokens, word) if "/" in word else tokens.of(word, "arg")


def _is_known(option: str) -> bool:
    name = _plain(option)
    return name in allowed.VALUE_OPTIONS or name in allowed.ADDRESS_OPTIONS or name in allowed.NAMED_OPTIONS


def _plain(option: str) -> str:
    return option.lstrip("-").replace("_", "-")
