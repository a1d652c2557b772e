"""Read a launcher's options from its command line."""

from __future__ import annotations

from hangdoc.model.engine import Option

OPTION_FILES = ("--config",)
"""Options whose value is a file with more options: what is not on the command line is then unknown, not default."""


def read_settings(argv: tuple[str, ...], options: tuple[Option, ...]) -> dict[str, str]:
    """Return the value of each option: as given (the last one counts), otherwise its default.

    >>> tp = Option("tp_size", ("--tp-size", "--tp"), "1")
    >>> read_settings(("python", "--tp-size=4", "--tp", "8"), (tp,)), read_settings((), (tp,))
    ({'tp_size': '8'}, {'tp_size': '1'})
    >>> read_settings(("python", "--config", "file.yaml"), (tp,))
    {}
    """
    by_flag = {flag.replace("_", "-"): option for option in options for flag in option.flags}
    has_file = any(word.partition("=")[0] in OPTION_FILES for word in argv)
    values = {o.name: o.default for o in options if o.default is not None and not has_file}
    for position, word in enumerate(argv):
        flag, equals, value = word.partition("=")
        option = by_flag.get(flag.replace("_", "-"))
        if option is None:
            continue
        if option.is_switch:
            values[option.name] = "true"
        elif equals:
            values[option.name] = value
        elif position + 1 < len(argv):
            values[option.name] = argv[position + 1]
    return values
