"""Apply a profile to a command: what it adds, what stays because the user said otherwise, what it only suggests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from hangdoc.relaunch.engine import EngineCommand, given_options
from hangdoc.relaunch.gpus import Choice
from hangdoc.relaunch.profile import Entry, Profile
from hangdoc.relaunch.records import Change, Command, Outcome, Place, Treatment

OPTION_FILE = "--config"
"""SGLang's option for a file with more options; those of the command line win over it."""

SHORTEST_ABBREVIATION = len("--cuda")
"""argparse takes a beginning of an option for it; shorter ones would fit too many."""


@dataclass(frozen=True)
class Facts:
    """What a profile's conditions ask for. suspected: hypotheses that the old launch's diagnosis holds for likely."""

    engine: EngineCommand | None
    peers_reported: bool = False
    suspected: frozenset[str] = frozenset()
    gpus: int = 1
    capturing: bool = False
    set_by_user: Mapping[str, str] = field(default_factory=dict)


def treat(command: Command, choice: Choice, facts: Facts) -> tuple[Command, Treatment]:
    """Return the command with what the profile says, and an account of each of its entries."""
    profile = choice.profile
    if profile is None:
        return command, Treatment("", choice.because, warnings=choice.warnings)
    changes: list[Change] = []
    for entry in profile.change:
        if _applies(entry, facts):
            command, change = _variable(command, entry, facts) if entry.variable else _words(command, entry, facts)
            changes.append(change)
    warnings = (*choice.warnings, *_warnings(profile, facts))
    hints = tuple(entry.hint.replace("{gpus}", str(facts.gpus)) for entry in _hinted(profile, command, facts))
    return command, Treatment(profile.name, choice.because, tuple(changes), hints, warnings)


def _applies(entry: Entry, facts: Facts) -> bool:
    match entry.when:
        case "always":
            return True
        case "capture":
            return facts.capturing
        case "broken-peers":
            return facts.peers_reported and bool(facts.suspected & set(entry.evidence))
        case _:
            return False


def _hinted(profile: Profile, command: Command, facts: Facts) -> Iterator[Entry]:
    """Yield what is only suggested, less what the user has decided already."""
    options = _options(command, facts.engine)
    for entry in profile.change:
        is_open = entry.when == "hint" or (entry.when == "broken-peers" and facts.peers_reported)
        if not is_open or not entry.hint or _applies(entry, facts) or (entry.words and not _is_sglang(facts)):
            continue
        if entry.variable not in command.environment and not any(_given(rival, options) for rival in entry.rivals):
            yield entry


def _warnings(profile: Profile, facts: Facts) -> Iterator[str]:
    if facts.engine is None and any(entry.words and entry.when == "always" for entry in profile.change):
        yield "no engine's launcher is in the command (a script, or an own program): its options are left as they are"


def _variable(command: Command, entry: Entry, facts: Facts) -> tuple[Command, Change]:
    text = f"{entry.variable}={entry.value}"
    before = command.environment.get(entry.variable)
    if before == entry.value:
        return command, _change(entry, text, "already", "it is set so")
    if before is not None:
        whose = "--set" if entry.variable in facts.set_by_user else "the launch's environment"
        return command, _change(entry, text, "yours", f"{whose} sets it otherwise, and that wins")
    environment = {**command.environment, entry.variable: entry.value}
    return replace(command, environment=environment), _change(entry, text, "made", "it was not set")


def _words(command: Command, entry: Entry, facts: Facts) -> tuple[Command, Change]:
    spelling = _spelling(entry, facts)
    if not isinstance(spelling, tuple):
        return command, _change(entry, " ".join(entry.words[0]), "impossible", spelling)
    text = " ".join(spelling)
    options = _options(command, facts.engine)
    theirs = [found for rival in entry.rivals if (found := _given(rival, options))]
    if theirs:
        is_same = all(_says(words, options) for words in _pairs(spelling)) or any(
            all(_says(words, options) for words in _pairs(other)) for other in entry.words
        )
        outcome: Outcome = "already" if is_same else "yours"
        detail = "the command says so" if is_same else f"your own {_shown(theirs[0], options)} wins"
        return command, _change(entry, text, outcome, detail)
    if (where := _in_option_file(command, entry.rivals)) is not None:
        return command, _change(entry, text, "yours", where)
    return replace(command, argv=(*command.argv, *spelling)), _change(entry, text, "made", "it was not given")


def _spelling(entry: Entry, facts: Facts) -> tuple[str, ...] | str:
    """Return the words in the vocabulary of the SGLang at hand, or why there are none."""
    if not _is_sglang(facts):
        return "no SGLang launcher is in the command, so hangdoc cannot add an option to it"
    assert facts.engine is not None
    known = facts.engine.options
    if known is None:
        return entry.words[-1]  # the oldest spelling: later versions keep taking it, with a warning
    for words in entry.words:
        if all(option in known for option, _ in _pairs(words)):
            return words
    return f"SGLang {facts.engine.version or 'as installed'} does not know {entry.words[0][0].partition('=')[0]}"


def _is_sglang(facts: Facts) -> bool:
    return facts.engine is not None and facts.engine.name == "sglang"


def _options(command: Command, engine: EngineCommand | None) -> Mapping[str, str]:
    return given_options(command.argv[0 if engine is None else engine.begin :])


def _pairs(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    yield from given_options(words).items()


def _given(rival: str, options: Mapping[str, str]) -> str:
    """Return how the user has spelled an option, in full or shortened; "" when he has not given it."""
    typed = (one for one in options if one == rival or (len(one) > SHORTEST_ABBREVIATION and rival.startswith(one)))
    return next(typed, "")


def _says(pair: tuple[str, str], options: Mapping[str, str]) -> bool:
    option, value = pair
    return options.get(_given(option, options)) == value if value else bool(_given(option, options))


def _shown(option: str, options: Mapping[str, str]) -> str:
    value = options[option]
    return f"{option} {value}" if re.fullmatch(r"[\w.-]{1,32}", value) else option


def _in_option_file(command: Command, rivals: tuple[str, ...]) -> str | None:
    """Say whether a file of options may decide it; None when there is no such file or it does not name them."""
    name = given_options(command.argv).get(OPTION_FILE)
    if not name:
        return None
    try:
        text = (command.cwd / Path(name)).read_text(errors="replace")
    except OSError as error:
        return f"the options in {name} cannot be read ({error.strerror}), and what stands there wins"
    for rival in rivals:
        key = rival.removeprefix("--").replace("-", "[-_]")
        if re.search(rf"^\s*{key}\s*:", text, re.MULTILINE):
            return f"your own {rival.removeprefix('--')} in {name} wins"
    return None


def _change(entry: Entry, text: str, outcome: Outcome, detail: str) -> Change:
    place: Place = "environment" if entry.variable else "command"
    return Change(place, text, outcome, entry.reason, entry.source, detail)
