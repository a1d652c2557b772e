"""What the launch's HTTP server adds: counters that rise are work; a silent server says something of itself alone."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Outcome, Present, Unread
from hangdoc.features.features import Features
from hangdoc.features.http import FROZEN_S, HttpState
from hangdoc.model.reading import Known, Missing


def http_answers(case: Case) -> Outcome:
    """Its HTTP server answered when it was asked for the model, which takes no scheduler."""
    state = _state(case.features)
    if isinstance(state, Unread):
        return state
    if state is not None and state.answers:
        return Present(f"its HTTP server answers on port {state.port}")
    return Absent("no answer of its HTTP server was read")


def http_is_silent(case: Case) -> Outcome:
    """The process that serves HTTP listens and does not answer, or it is not known whether it does.

    It says nothing of the ranks. A launch whose port is not known is not asked, and then nothing is missing.
    """
    state = _state(case.features)
    if isinstance(state, Unread):
        return state
    if state is None or state.answers:
        return Absent("nothing says that its HTTP server is silent")
    if state.silent:
        return Present(f"its HTTP server (pid {state.listener_pid}) listens on port {state.port} and does not answer")
    return Unread("whether its HTTP server answers")


def counters_rise(features: Features) -> Absent | Unread | None:
    """Look for tokens and requests that were counted meanwhile: they are progress, whatever the ranks show.

    A server without counters lacks no reading; one that was started with them does when they could not be read.
    """
    state = _state(features)
    if state is None:
        return None
    expected = features.launch.engine == "vllm" or features.launch.settings.get("enable_metrics") == "true"
    if isinstance(state, Unread):
        return state if expected else None
    if isinstance(state.moved, Missing):
        unread = Unread.of(state.moved, "whether its HTTP server counts tokens")
        return unread if expected and state.moved.reason == "not-taken" else None
    return Absent(f"its HTTP server counted {state.moved.value:,} tokens and requests") if state.moved.value else None


def requests_stand(case: Case) -> Outcome:
    """Supporting: requests run all the while, and no token was counted for any of them."""
    state = _state(case.features)
    if isinstance(state, Unread):
        return state
    if state is not None and state.frozen_s >= FROZEN_S:
        return Present(f"its HTTP server has counted no token for {state.frozen_s:.0f} s while requests run")
    return Absent("its HTTP server does not show requests that stand")


def _state(features: Features) -> HttpState | Unread | None:
    http = features.http
    return http.value if isinstance(http, Known) else Unread.of(http, "what its HTTP server answers")
