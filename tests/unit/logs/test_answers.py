"""A server that became ready and answers with nothing but errors is not healthy by its log."""

from __future__ import annotations

from pathlib import Path

import pytest

from hangdoc.diagnosis import diagnose
from hangdoc.engines.sglang import ENGINE
from hangdoc.logs.lines import events
from hangdoc.logs.read import Wishes, read

READY = "[2026-11-29 14:00:00] The server is fired up and ready to roll!\n"
LINE = '[2026-11-29 14:0{minute}:00] INFO:     10.0.0.1:5 - "{asked} HTTP/1.1" {status} x\n'
POST, HEALTH = "POST /v1/chat/completions", "GET /health"


def log_of(answers: list[tuple[str, int]]) -> str:
    return READY + "".join(
        LINE.format(minute=at % 9, asked=asked, status=status) for at, (asked, status) in enumerate(answers)
    )


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([(HEALTH, 503)] * 60, "the last 60 health checks in a row failed, 503"),
        ([("GET /health_generate", 503)] * 4, "the last 4 health checks in a row failed, 503"),
        ([(POST, 200), *[(POST, 500)] * 20], "the last 20 requests in a row failed, 500"),
        ([(POST, 503), (HEALTH, 200)] * 5, "the last 5 requests in a row failed, 503"),
        ([(POST, 500)], ""),
        ([(POST, 400)] * 20, ""),
        ([(HEALTH, 503)] * 60 + [(HEALTH, 200)], ""),
        ([*[(HEALTH, 503)] * 60, (POST, 200)], ""),
    ],
)
def test_nothing_but_errors(answers: list[tuple[str, int]], said: str, tmp_path: Path) -> None:
    """Errors in a row at the end make it undetermined, with their count; one that was survived does not."""
    log = tmp_path / "server.log"
    log.write_text(log_of(answers))
    found = diagnose(read([log], Wishes()), "log")
    assert found.verdict == ("undetermined" if said else "healthy")
    assert said in found.headline


def test_health_checks_are_no_progress() -> None:
    """While a launch is looked at, the health checks of others are no line by which it goes on."""
    assert not [*events(log_of([(HEALTH, 503), (HEALTH, 200)])[len(READY) :].encode(), ENGINE)]
