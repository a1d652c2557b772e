"""Redaction of log lines: keys, prompts, paths, addresses and names become tokens, what the diagnosis reads stays.

A log is free text of an engine, so no allow-list can keep what is wanted of it; here what is known to be private goes.
That is weaker than what a recording does, and the command's help says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from hangdoc.trace import allowed, names, secrets
from hangdoc.trace.tokens import Tokens

LONGEST_LINE_BYTES = 1 << 20
"""A longer line is left out, because it cannot be looked through in bounded memory. Arbitrary."""

_STRONG = (
    r"(?:api|access|account|private|secret|signing|encryption)[-_]?key|secret|passw(?:or)?d|passphrase|passwd|pwd|credential"
    r"|cookie"
)
_WEAK = r"token|auth(?:orization)?|bearer"
_NAMED = "|".join(
    re.escape(name).replace(r"\-", "[-_]") for name in sorted(allowed.NAMED_OPTIONS | allowed.ADDRESS_OPTIONS)
)
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_VALUE = rf"""(?:{_QUOTED}|[^\s,;)\]}}'"]+)"""
_NOTHING = re.compile(r"""['"]?(?:None|null|True|False|true|false|)['"]?""")
_NUMBER = re.compile(r"""['"]?[-+]?\d+(?:\.\d+)?(?:[eE]-?\d+)?%?['"]?""")

_PROMPT = re.compile(
    r"""(\b(?:obj|prompt|prompts|text|messages|content|input_ids|prompt_token_ids|output_text|out|body)['"]?\s*[=:]\s*)"""
    r"""(?=['"\[{<(]|[^\W\d_]|\d+[ -]\S|b['"])(.*)""",
    re.DOTALL,
)
"""What requests and answers are called where engines print them; it goes to the end of the line."""

_OF_REQUESTS = re.compile(
    r"Receive: |Finish: |Received request|Generated response|request body|Request body|GenerateReqInput|ChatCompletion"
    r"|EmbeddingReqInput|prompt['\"]?\s*[=:]|messages['\"]?\s*[=:]|\b(?:text|content)['\"]?\s*:\s"
)
_BEARER = re.compile(r"(\b(?:[Bb]earer|BEARER)\s+|\b[Bb]asic\s+(?=\S*[A-Z0-9+/=]))([A-Za-z0-9._~+/=-]{6,})")
_KEYED = re.compile(
    rf"""((?<![\w.-])[\w.-]{{0,60}}?(?:{_STRONG}|{_WEAK})[\w.-]*['"]?)(\s*(?:[=:]>?|->)\s*|(?<=\w)\s+)({_VALUE})""",
    re.IGNORECASE,
)
_OPTION = re.compile(rf"""((?:--|\b)(?:{_NAMED})\b['"]?)(\s*[=:]\s*|\s+)({_VALUE})""")
_SENTENCE = re.compile(
    r"(\b(?:passw(?:or)?d|passphrase|secret|(?:api|access) key)\b(?: (?:for|of) (?:user )?(\S+))? is )"
    r"(?!(?:not|now|required|missing|set|unset|wrong|invalid|incorrect|empty|too|being|expired|None|no|the|an?)\b)(\S+)",
    re.IGNORECASE,
)
_LOGIN = re.compile(rf"""((?<![\w-])(?:-u|--(?:proxy-)?user)(?:\s+|=))(?=\S+:)({_QUOTED}|[^\s'":]+:[^\s'"]+)""")
_AT_MACHINE = re.compile(r"(?<![\w./<>:-])([A-Za-z_][\w.-]{0,40})@([A-Za-z0-9][\w.-]{0,80}):([~/][^\s#$'\"]*)")
"""What a shell's prompt and scp write."""

_WINDOWS_PATH = re.compile(r"""(?<![A-Za-z0-9])[A-Za-z]:\\{1,2}(?:[^\s\\'"<>|:]+\\{1,2})+[^\s\\'"<>|:,;)]*""")
_COLOUR = re.compile(r"(?:\x1b|\\x1b|\\e|\\033|\\u001b)\[[0-9;]*[A-Za-z]")
"""As bytes, or as escaped by what wrote the line."""

_BEGINS_A_RECORD = re.compile(r"\[?\d{4}-\d\d-\d\d|\[?(?:INFO|WARNING|ERROR|DEBUG|CRITICAL)\b|Traceback |\(\w+ pid=")
MOST_PROMPT_LINES = 500
"""Lines that an open quote takes at most. Arbitrary: an apostrophe must not swallow a log."""

_URL = re.compile(r"([a-z][a-z0-9+.-]{1,15}://)([^\s/'\"<>,)\]}?#]*)([^\s'\"<>,)\]}]*)", re.IGNORECASE)
_QUERY = re.compile(r"(?<=[\w/])\?[^\s'\"]+")
_ROUTE = re.compile(r'("(?:GET|POST|PUT|DELETE|HEAD|OPTIONS|PATCH) /[^\s?"]*)')
_PATH = re.compile(
    r"(?<![\w/.:<>-])(?:~[\w.-]*|/[\w.+@%=~-]+)(?:/[\w.+@%=~-]+)+/?|(?<![\w/.:<>-])(?:/root|~)(?![\w/-])"
)
_QUOTED_PATH = re.compile(r"""(?<=['"])/[^'"\n]+(?=['"])""")
_SHAPES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile("|".join(f"(?:{shape})" for shape in secrets.KEY_SHAPES), re.DOTALL), "text"),
    (re.compile(secrets.EMAIL), "user"),
    (re.compile(secrets.MAC), "host"),
    (re.compile(secrets.IPV4), "host"),
    (re.compile(secrets.IPV6), "host"),
    (re.compile(secrets.HOST), "host"),
)
_DENSE = re.compile(r"(?<![\w+/.-])[A-Za-z0-9+/_-]{32,}={0,2}(?![\w/.-])")
_LEAST_DIGITS = 6
"""Long words of letters and so many digits are keys without a beginning of their own, or identifiers of requests; with
fewer they may be names in code. Arbitrary."""

_HOME_OF = re.compile(r"(?:/|\\{1,2})(?:home|Users)(?:/|\\{1,2})([A-Za-z][\w.-]{2,})")
_NOT_NAMES = frozenset(
    {"ubuntu", "user", "users", "root", "home", "admin", "runner", "python", "sglang", "vllm", "torch"}
)
"""Users that every machine has: as words they say nothing."""

_PEM_BEGIN, _PEM_END = re.compile("-----BEGIN [A-Z ]{3,40}-----"), re.compile("-----END [A-Z ]{3,40}-----")


class LogRedactor:
    """Redacts the lines of one log in their order. also: words that the caller wants gone: users, machines, projects.

    Users are learned from the homes that the log names, machines from their full names, and go from then on wherever
    they stand.
    """

    def __init__(self, also: Iterable[str] = ()) -> None:
        self.tokens = Tokens()
        self._names: dict[str, re.Pattern[str]] = {}
        self._in_key = False
        self._quote = ""
        self._prompt_lines = 0
        for word in also:
            self._learn(word, 1)

    def line(self, text: str) -> str:
        """Return what stays of a line, without its line feed."""
        if self._in_key or _PEM_BEGIN.search(text):
            self._in_key = not _PEM_END.search(text)
            return self.tokens.of(text, "text")
        if self._quote and not self._prompt_ends(text):
            return self.tokens.of(text, "text") if text else text
        text = _COLOUR.sub("", text)  # one inside a key would hide it
        for user in _HOME_OF.findall(text):
            self._learn(user)
        if _OF_REQUESTS.search(text):
            text = _PROMPT.sub(self._prompt, text)
        text = _BEARER.sub(lambda found: found[1] + self.tokens.of(found[2], "text"), text)
        text = _LOGIN.sub(lambda found: found[1] + self.tokens.of(found[2], "arg"), text)
        text = _SENTENCE.sub(self._sentence, text)
        text = _KEYED.sub(self._keyed, text)
        text = _OPTION.sub(self._option, text)
        text = _WINDOWS_PATH.sub(lambda found: self.tokens.of(found[0], "path"), text)
        text = _AT_MACHINE.sub(self._at_machine, text)
        text = _URL.sub(self._url, text)
        text = _QUERY.sub(lambda found: "?" + self.tokens.of(found[0], "text"), text)
        text = _QUOTED_PATH.sub(lambda found: self._path(found[0]) if "/" in found[0][1:] else found[0], text)
        text = "".join(part if number % 2 else _PATH.sub(lambda found: self._path(found[0]), part)
                       for number, part in enumerate(_ROUTE.split(text)))  # fmt: skip
        return self._shapes(text)

    def _prompt(self, found: re.Match[str]) -> str:
        """Take out what was asked or answered; an open quote goes on over the next lines."""
        value = found[2].removeprefix("b")
        if value[:1] in ("'", '"') and not re.match(_QUOTED, value):
            self._quote, self._prompt_lines = value[0], 0
        return found[1] + self.tokens.of(found[2], "text")

    def _prompt_ends(self, text: str) -> bool:
        """Say whether this line is no part of an open prompt any more; the one with the closing quote still is."""
        self._prompt_lines += 1
        if _BEGINS_A_RECORD.match(text) or self._prompt_lines > MOST_PROMPT_LINES:
            self._quote = ""
            return True
        if re.search(rf"(?<!\\){self._quote}", text):
            self._quote = ""
            self._prompt_lines = 0
        return False

    def _sentence(self, found: re.Match[str]) -> str:
        said = found[1]
        if found[2]:
            said = said.replace(found[2], self.tokens.of(found[2], "user"))
        return said + self.tokens.of(found[3], "arg")

    def _at_machine(self, found: re.Match[str]) -> str:
        user, host, path = found.groups()
        place = path if path in ("~", "/") else self.tokens.of(path, "path")
        return f"{self.tokens.of(user, 'user')}@{self.tokens.of(host, 'host')}:{place}"

    def _shapes(self, text: str) -> str:
        for shape, kind in _SHAPES:
            text = shape.sub(lambda found, kind=kind: self._shape(found[0], kind), text)  # type: ignore[misc]
        text = _DENSE.sub(lambda found: self._dense(found[0]), text)
        for name, pattern in self._names.items():
            text = pattern.sub(self.tokens.of(name, "user"), text)
        return text

    def _dense(self, word: str) -> str:
        is_key = sum(map(str.isdigit, word)) >= _LEAST_DIGITS and any(map(str.isalpha, word))
        return self.tokens.of(word, "text") if is_key else word

    def _shape(self, text: str, kind: str) -> str:
        if kind == "host":
            self._learn(text.split(".", 1)[0])
        return self.tokens.of(text, kind)  # type: ignore[arg-type]

    def _learn(self, name: str, least: int = 4) -> None:
        if len(name) >= least and name.lower() not in _NOT_NAMES and not name.isdigit():
            self._names.setdefault(
                name, re.compile(rf"(?<![A-Za-z0-9<-]){re.escape(name)}(?![A-Za-z0-9])", re.IGNORECASE)
            )

    def _keyed(self, found: re.Match[str]) -> str:
        name, between, value = found[1], found[2], found[3]
        is_strong = re.search(_STRONG, name, re.IGNORECASE) is not None
        if between.isspace() and not name.startswith("-"):  # "secret sharing", "token usage": words, no option
            return found[0]
        if _NOTHING.fullmatch(value) or (
            not is_strong and (_NUMBER.fullmatch(value) or name.lower().endswith("tokens"))
        ):
            return found[0]
        return name + between + self._quoted(value, lambda inner: self.tokens.of(inner, "arg"))

    def _option(self, found: re.Match[str]) -> str:
        name, between, value = found[1], found[2], found[3]
        if (between.isspace() and not name.startswith("--")) or _NOTHING.fullmatch(value) or _NUMBER.fullmatch(value):
            return found[0]
        option = name.strip("-'\"").replace("_", "-")
        if not (name.startswith("--") or "=" in between or name.endswith(("'", '"'))):
            return found[0]  # "model: ..." in a sentence of the log
        if option in allowed.ADDRESS_OPTIONS:
            return name + between + self._quoted(value, lambda inner: names.address(self.tokens, inner))
        known = value.strip("'\"").lower() in allowed.VALUES
        return found[0] if known else name + between + self._quoted(value, lambda inner: self.tokens.of(inner, "arg"))

    @staticmethod
    def _quoted(value: str, rule: Callable[[str], str]) -> str:
        if len(value) > 1 and value[0] in "'\"" and value[-1] == value[0]:
            return f"{value[0]}{rule(value[1:-1])}{value[0]}"
        return rule(value)

    def _url(self, found: re.Match[str]) -> str:
        scheme, place, rest = found.groups()
        user, at, host = place.rpartition("@")
        kept = names.address(self.tokens, host) if host else ""
        is_own = kept == host or kept.split(":")[0] in ("localhost", "127.0.0.1", "0.0.0.0")  # noqa: S104 - text
        route = rest if is_own and "?" not in rest and not user else self.tokens.of(rest, "path")
        return scheme + (self.tokens.of(user, "user") + at if at else "") + kept + route

    def _path(self, path: str) -> str:
        return (
            names.frame_file(self.tokens, path)
            if path.endswith((".py", ".pyx", ".so"))
            else names.path(self.tokens, path)
        )


def redacted(pieces: Iterable[bytes], redactor: LogRedactor) -> Iterator[bytes]:
    """Yield the log's lines redacted, with the ends that they had (a progress bar's carriage return, too)."""
    rest, dropped = b"", 0
    for piece in pieces:
        *lines, rest = re.split(rb"(?<=[\n\r])", rest + piece)
        for line in lines:
            if dropped:
                yield b"<line of %d bytes left out>" % (dropped + len(line)) + line[-1:]
                dropped = 0
            else:
                yield _line(line, redactor)
        if dropped or len(rest) > LONGEST_LINE_BYTES:
            dropped, rest = dropped + len(rest), b""
    if dropped:
        yield b"<line of %d bytes left out>\n" % dropped
    elif rest:
        yield _line(rest, redactor)


def _line(line: bytes, redactor: LogRedactor) -> bytes:
    body = line.rstrip(b"\r\n")
    text = redactor.line(body.decode("utf-8", "replace"))
    return text.encode("utf-8", "replace") + line[len(body) :]
