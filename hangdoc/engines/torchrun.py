"""torchrun, torch 2.x: the elastic agent and its workers; a worker's rank is in its environment, not its title."""

from __future__ import annotations

import re

from hangdoc.engines._torch import LINES, nccl_limits
from hangdoc.model.engine import Engine, LogLine, Option, Title

TITLES = (
    # The name that the agent's main thread gives itself; only looked at when the command line is unreadable or empty.
    Title(re.compile(r"^pt_elastic$"), "launcher"),
)

OPTIONS = (
    Option("nproc_per_node", ("--nproc-per-node",), "1"),
    Option("nnodes", ("--nnodes",), "1:1"),
    Option("node_rank", ("--node-rank",), "0"),
    Option("port", ("--master-port",), "29500"),
    Option("standalone", ("--standalone",), "", is_switch=True),
)

LOG_LINES = (
    LogLine(
        "agent-starts",
        "milestone",
        re.compile(
            r"Starting elastic_operator|starting workers for entrypoint|Setting "
            r"OMP_NUM_THREADS environment variable"
        ),
        "torchrun starts",
        "launch",
    ),
    LogLine(
        "restarts",
        "milestone",
        re.compile(r"will restart worker group|restart_count=[1-9]"),
        "torchrun starts the workers again",
        "launch",
    ),
    LogLine("rendezvous-begin", "milestone", re.compile(r"Rendezvous'ing worker group"), "rendezvous", "rendezvous"),
    LogLine(
        "rendezvous-end", "milestone", re.compile(r"Rendezvous complete for workers"), "rendezvous complete", "launch"
    ),
    *LINES,
)

ENGINE = Engine(
    name="torchrun",
    launchers=(
        re.compile(r"(?:^|/)torchrun(?:\s|$)"),
        re.compile(r"^-m\s+torch\.distributed\.(?:run|launch|elastic\.\S+)(?:\s|$)"),
        re.compile(r"(?:^|/)torch/distributed/(?:run|launch)\.py(?:\s|$)"),
        re.compile(r"(?:^|/)accelerate\s+launch(?:\s|$)"),
        re.compile(r"^-m\s+accelerate\.commands\.launch(?:\s|$)"),
    ),
    distribution="torch",
    titles=TITLES,
    options=OPTIONS,
    log_lines=LOG_LINES,
    limits=nccl_limits(),
)
