"""Say what of a command and an environment may be shown: secrets are passed on, and never printed or recorded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hangdoc.launch.commands import SHELLS, base_name
from hangdoc.relaunch.records import Command
from hangdoc.trace import allowed

HIDDEN = "<hidden>"

SECRET_NAME = re.compile(
    r"passw|secret|credential|private[-_]?key|api[-_]?key|access[-_]?key"
    r"|(?:^|[-_.])(?:key|keys|keyfile|token|passphrase|pwd|pass|auth|cookie|bearer|dsn|webhook|salt)(?:$|[-_.])",
    re.IGNORECASE,
)
"""Names of options and variables whose value is nobody's business, most by whole words: not --max-total-tokens."""

SECRET_SHAPE = re.compile(
    r"\b(?:hf_|sk-|sk_|pk_|rk_|gh[pousr]_|github_pat_|glpat-|xox[abpr]-|AKIA|ASIA|AIza|ya29\.|nvapi-|r8_|gsk_)[\w-]{6,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}|://[^/\s:@]*:[^/\s@]+@|-----BEGIN|(?i:bearer)\s+\S{6,}"
)
"""How keys of well-known services and passwords in addresses look, wherever they stand."""

NUMBER = re.compile(r"-?\d{1,12}(?:\.\d{1,9})?(?:[eE]-?\d{1,3})?(?:,\d{1,9}){0,256}", re.ASCII)
PLAIN_WORDS = allowed.VALUES | {"disabled", "enabled", "full", "breakable", "eager", "inductor", "extra_buffer"}
"""Values that are words of an engine and nobody's secret."""

PLAIN_OPTIONS = (
    allowed.VALUE_OPTIONS
    | allowed.ADDRESS_OPTIONS
    | (allowed.NAMED_OPTIONS - {"api-key", "admin-api-key", "ssl-keyfile", "extra-metric-labels"})
)
"""Options whose values may be shown when they do not look like a secret themselves."""

PLAIN_VARIABLES = re.compile(
    r"(?:NCCL|SGLANG|SGL|CUDA|TORCH|TORCHINDUCTOR|TRITON|VLLM|OMP|MKL|GLOO|FLASHINFER|PYTORCH|CUBLAS|HANGDOC)_[A-Z0-9_]+"
    r"|HF_HUB_OFFLINE|PYTHONUNBUFFERED|TOKENIZERS_PARALLELISM"
)
"""Variables whose values may be shown; of all others only the name."""

SHORTEST = 4
"""Characters of a hidden value that is looked for in other texts: shorter ones would hide half of them. Arbitrary."""


def shown_argv(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command line as it may be shown.

    Rule: kept are the program, scripts and modules, options, and values that are numbers, known words, or belong to an
    option that is known to carry no secret; unless name or value look like a secret. Everything else is hidden.
    """
    return tuple(_shown(argv, position) for position in range(len(argv)))


def _shown(argv: tuple[str, ...], position: int) -> str:
    word = argv[position]
    before = argv[position - 1] if position else ""
    if SECRET_SHAPE.search(word):
        return HIDDEN
    if word.startswith("-") and not NUMBER.fullmatch(word):
        option, equals, value = word.partition("=")
        return word if not equals or _is_plain(option, value) else f"{option}={HIDDEN}"
    if before.startswith("--") and "=" not in before:
        return word if _is_plain(before, word) else HIDDEN
    name, equals, value = word.partition("=")
    if equals and name.isidentifier():
        return f"{name}={shown_value(name, value)}"
    if before == "-c" and base_name(argv[0]) in SHELLS:
        return f"<script, {len(word)} characters>"
    return word if position == 0 or _is_operand(word, before) else HIDDEN


def _is_plain(option: str, value: str) -> bool:
    name = option.lstrip("-").replace("_", "-")
    if SECRET_SHAPE.search(value) or "{" in value:  # JSON may hold anything
        return False
    if name in PLAIN_OPTIONS:
        return True
    if SECRET_NAME.search(name):
        return False
    return bool(NUMBER.fullmatch(value)) or value.lower() in PLAIN_WORDS


def _is_operand(word: str, before: str) -> bool:
    """Keep what says which program runs: a path, a script, a module, a number, a subcommand."""
    is_program = bool(allowed.PROGRAM.fullmatch(base_name(word))) or word in allowed.SUBCOMMANDS
    is_file = word.endswith((".py", ".sh")) or word.startswith(("/", "./", "../"))
    is_module = before == "-m" and bool(re.fullmatch(r"\w+(?:\.\w+)*", word))
    return is_program or is_file or is_module or bool(NUMBER.fullmatch(word)) or word.lower() in PLAIN_WORDS


def shown_value(name: str, value: str) -> str:
    """Return the value of a variable as it may be shown."""
    is_plain = PLAIN_VARIABLES.fullmatch(name) and not SECRET_NAME.search(name) and not SECRET_SHAPE.search(value)
    return value if is_plain else HIDDEN


def hidden_values(command: Command) -> frozenset[str]:
    """Return every value that must not turn up anywhere: hidden words, and variables with a secret's name or look."""
    return frozenset(value for value in _hidden(command) if len(value) >= SHORTEST)


def _hidden(command: Command) -> Iterator[str]:
    for word, kept in zip(command.argv, shown_argv(command.argv), strict=True):
        if kept == HIDDEN:
            yield word
        elif kept.endswith(f"={HIDDEN}"):
            yield word.partition("=")[2]
    yield from _secret_variables(command.environment)


def _secret_variables(environment: Mapping[str, str]) -> Iterator[str]:
    for name, value in environment.items():
        if SECRET_NAME.search(name) or SECRET_SHAPE.search(value):
            yield value


def veiled(text: str, hidden: frozenset[str]) -> str:
    """Return a text, from a log say, without any of these values."""
    for value in sorted(hidden, key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    return text
