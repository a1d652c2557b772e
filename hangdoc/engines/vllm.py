"""vLLM, 0.6 to 0.12: how its processes are named; titles as its own set_process_title builds them."""

from __future__ import annotations

import re

from hangdoc.model.engine import Engine, Option, Title

_RANK = (
    r"(?:_DP(?P<dp>\d+))?(?:_PP(?P<pp>\d+))?(?:_PCP(?P<pcp>\d+))?(?:_TP(?P<tp>\d+))?(?:_DCP(?P<dcp>\d+))?"
    r"(?:_EP(?P<ep>\d+))?"
)

# The prefix is VLLM_PROCESS_NAME_PREFIX, "VLLM" unless somebody changes it. Titles exist since 0.10; before, forked
# children carry the launcher's own command line and spawned ones that of spawn_main.
TITLES = (
    Title(re.compile(r"^VLLM::APIServer(?:_\d+)?$"), "tokenizer"),
    Title(re.compile(r"^VLLM::DPCoordinator"), "router"),
    Title(re.compile(r"^VLLM::(?:DP)?EngineCore(?:_(?:DP)?(?P<dp>\d+))?$"), "scheduler"),
    Title(re.compile(r"^VLLM::EngineCor"), "scheduler"),
    Title(re.compile(rf"^VLLM::(?:Vllm)?Worker{_RANK}$"), "worker"),
    Title(re.compile(r"^VLLM::(?:Vllm)?Worker"), "worker"),
)

OPTIONS = (
    Option("tp_size", ("--tensor-parallel-size", "-tp"), "1"),
    Option("pp_size", ("--pipeline-parallel-size", "-pp"), "1"),
    Option("dp_size", ("--data-parallel-size", "-dp"), "1"),
    Option("nnodes", ("--nnodes", "-n"), "1"),
    Option("node_rank", ("--node-rank", "-r"), "0"),
    Option("port", ("--port",), "8000"),
)

ENGINE = Engine(
    name="vllm",
    launchers=(
        re.compile(r"(?:^|[\s/])vllm\s+serve(?:\s|$)"),
        re.compile(r"^-m\s+vllm\.entrypoints\.(?:openai\.api_server|api_server|cli\.main)(?:\s|$)"),
        re.compile(r"(?:^|/)vllm/entrypoints/(?:openai/)?api_server\.py(?:\s|$)"),
    ),
    distribution="vllm",
    titles=TITLES,
    options=OPTIONS,
)
