"""What the launch's HTTP server answered, and whether its counters went on."""

from __future__ import annotations

from dataclasses import dataclass

from hangdoc.features.index import Index, Window
from hangdoc.model.http import Http, ServerMetrics
from hangdoc.model.reading import Known, Missing, Reading

PROBE = "http"

SILENCES = 2
"""Questions in a row without an answer, 10 s apart, from which a server counts as silent: one may fall into a pause."""

NEWEST_S = 60.0
"""Age from which an answer says nothing of now; twice the pause between questions while a launch is well. Arbitrary."""

NO_COUNTER = Missing(PROBE, "unsupported", "the server publishes no counter of tokens")

_TOO_OLD = Missing(PROBE, "not-taken", "the counters were not read in this window")

KEPT = 12
"""Readings that are looked at: a minute of questions. A long observation keeps as many of the rounds it lets go."""

FROZEN_S = 30.0
"""How long counters have to stand, with requests running all the while, before that says anything: SGLang's scheduler
counts tokens once in 40 steps, which slow models take some 10 s for. Otherwise arbitrary."""


@dataclass(frozen=True)
class HttpState:
    """The server up to the end of a window; old readings beside the newest count as far as a field says.

    answers: the last question got a whole answer with a status under 500; silent: the last SILENCES questions got none
    although a member listens; running, waiting: requests at the last reading; moved: tokens and finished requests
    counted between the last two readings, the newest of the window; frozen_s: for how long requests have been running
    while no counter moved.
    """

    port: int
    listener_pid: int | None
    answers: bool
    silent: bool
    running: Reading[int]
    waiting: Reading[int]
    moved: Reading[int]
    frozen_s: float


def http_state(index: Index, window: Window) -> Reading[HttpState | None]:
    """Return what the server's readings up to the end of a window say; Known(None): nobody was asked."""
    if not index.was_taken(PROBE):
        return Known(None)
    whole = Window(0, window.last, 0, window.end_ns)
    until_now = index.known(PROBE, None, Http, whole)[-KEPT:]
    if not until_now or window.end_ns - until_now[-1][0] > NEWEST_S * 1e9:
        return index.missing(PROBE, None, whole)
    taken_ns, newest = until_now[-1]
    counted = [(at_ns, one.metrics.value) for at_ns, one in until_now if isinstance(one.metrics, Known)]
    return Known(
        HttpState(
            port=newest.port,
            listener_pid=newest.listener_pid,
            answers=_answers(newest),
            silent=len(until_now) >= SILENCES and all(_is_silent(one) for _, one in until_now[-SILENCES:]),
            running=_newest(newest, "running"),
            waiting=_newest(newest, "waiting"),
            moved=_moved(newest, [metrics for _, metrics in counted[-2:]]) if taken_ns >= window.start_ns else _TOO_OLD,
            frozen_s=_frozen_s(counted),
        )
    )


def _answers(one: Http) -> bool:
    return bool(one.replies) and all(
        reply.outcome == "answered" and reply.status is not None and reply.status < 500 for reply in one.replies
    )


def _is_silent(one: Http) -> bool:
    return any(reply.outcome == "silent" for reply in one.replies)


def _newest(one: Http, field: str) -> Reading[int]:
    if isinstance(one.metrics, Missing):
        return one.metrics
    found: Reading[int] = getattr(one.metrics.value, field)
    return found


def _moved(newest: Http, last: list[ServerMetrics]) -> Reading[int]:
    """Return what was counted between two readings, by the counters that both have."""
    if isinstance(newest.metrics, Missing):
        return newest.metrics
    if len(last) < 2:
        return Missing(PROBE, "not-taken", "the counters were read only once")
    before, after = last
    pairs = ((before.tokens, after.tokens), (before.finished, after.finished))
    both = [(then.value, now.value) for then, now in pairs if isinstance(then, Known) and isinstance(now, Known)]
    if not both:
        return NO_COUNTER
    return Known(max(0, sum(now - then for then, now in both)))


def _counted(metrics: ServerMetrics) -> Reading[int]:
    """Add up what only grows: tokens, and requests that ended."""
    known = [one.value for one in (metrics.tokens, metrics.finished) if isinstance(one, Known)]
    return Known(sum(known)) if known else NO_COUNTER


def _frozen_s(counted: list[tuple[int, ServerMetrics]]) -> float:
    """Return for how long, back from the last reading, requests ran while no counter moved; 0 when none run."""
    frozen_ns = 0
    for at_ns, metrics in reversed(counted):
        runs = isinstance(metrics.running, Known) and metrics.running.value > 0
        totals = _counted(metrics)
        if not runs or isinstance(totals, Missing) or totals != _counted(counted[-1][1]):
            break
        frozen_ns = counted[-1][0] - at_ns
    return frozen_ns / 1e9
