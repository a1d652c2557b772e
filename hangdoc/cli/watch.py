"""`hangdoc watch`: diagnose a live launch, once or for as long as it takes."""

from __future__ import annotations

import typer

from hangdoc.cli import observing
from hangdoc.cli import watch_options as options
from hangdoc.cli.command import command_of
from hangdoc.cli.good_starts import GoodStarts
from hangdoc.cli.handed import handed_of
from hangdoc.cli.options import HtmlFile, Json, Markdown, NoColor, NoRedact, Patience, Pid, Port


def watch(
    context: typer.Context,
    pid: Pid = None,
    port: Port = None,
    once: observing.Once = False,
    window: observing.Least = 5.0,
    max_window: observing.Most = 30.0,
    until: options.Until = None,
    timeout: options.Timeout = None,
    exec_: options.Exec = False,
    record: options.RecordTo = None,
    record_limit: options.RecordLimit = 512,
    on_hang: options.OnHang = None,
    state: options.State = None,
    metrics_port: options.MetricsPort = None,
    patience: Patience = None,
    http_generate: observing.HttpGenerate = False,
    native: observing.Native = False,
    cuda_coredump: observing.Coredump = False,
    baseline: GoodStarts = None,
    html: HtmlFile = None,
    markdown: Markdown = False,
    no_redact: NoRedact = False,
    as_json: Json = False,
    no_color: NoColor = False,
) -> int:
    """Say what a launch is doing, who has to move and why.

    Any process of the launch finds all of it. Without --once the launch is
    followed: one line at each change, a whole report at the end.

    \b
    Examples:
      hangdoc watch 4711 --once --html stuck.html
      hangdoc watch --port 30000 --until ready --timeout 900
      hangdoc watch 4711 --until hang --record evidence/ --on-hang ./page-me
      hangdoc watch --exec --record evidence/ --state /run/hangdoc/state.json \\
        -- python -m sglang.launch_server --model-path ...

    \b
    Exit codes: 0 nothing hangs, 1 it hangs or crashed, 2 wrong use,
    3 not to be told, 4 cannot be observed. With --exec that of the launch.
    """
    handed = handed_of(html, markdown=markdown, as_json=as_json, once=once)
    handed.check_redaction(no_redact=no_redact, is_recorded=record is not None)
    named, ends = not (pid is None and port is None), not (until is None and timeout is None)
    unattended = not (on_hang is None and state is None and metrics_port is None)
    command = command_of(context)
    options.check(command, is_exec=exec_, once=once, unattended=unattended, named=named or as_json, ends=ends)
    span = observing.span_of(window, max_window)
    wish = {"http_generate": http_generate, "no_redact": no_redact, "native": native, "coredump": cuda_coredump}
    setting = observing.setting_of(span, patience, baseline, **wish)
    if once:
        from hangdoc.cli.recorded import Shown, watch_once

        return watch_once(pid, port, setting, record, span, Shown(as_json, no_color, handed, no_redact))
    from hangdoc.cli.supervised import start_launch
    from hangdoc.cli.unattended import follow_launch
    from hangdoc.cli.watch_wishes import Wishes
    from hangdoc.observe.follow import Goal

    address = options.address_of(metrics_port)
    wishes = Wishes(record, record_limit << 20, on_hang, state, address, setting, as_json, no_color)
    if exec_:
        return start_launch(command, wishes, span.most_s)
    return follow_launch(pid, port, wishes, Goal(until, timeout, patience_s=span.most_s))
