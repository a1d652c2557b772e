"""Run as a script by its path: takes limits and CPUs over, then becomes the program; imports the standard library only.

Arguments: a JSON object {"limits": {NAME: [soft, hard]}, "cpus": [N, ...]}, then the program and its
arguments. When the program cannot be run, the reason goes to standard error and the exit code is CANNOT_EXECUTE.
"""

import json
import os
import resource
import sys
from collections.abc import Callable

CANNOT_EXECUTE = 126
"""What a shell ends with, too."""


def attempt(what: str, act: Callable[..., None], *arguments: object) -> None:
    """Take one thing over; when the kernel refuses it, the log says so and the program is started all the same."""
    try:
        act(*arguments)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"hangdoc: {what} could not be taken over: {error}\n")


def main() -> None:
    """Become the program."""
    order = json.loads(sys.argv[1])
    argv = sys.argv[2:]
    for name, (soft, hard) in order["limits"].items():
        attempt(name, resource.setrlimit, getattr(resource, name), (soft, hard))
    if order["cpus"]:
        attempt("the binding to CPUs", os.sched_setaffinity, 0, order["cpus"])
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - it is what this program is for
    except OSError as error:
        sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
        sys.exit(CANNOT_EXECUTE)


if __name__ == "__main__":
    main()
