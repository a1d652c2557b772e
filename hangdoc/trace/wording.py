"""Redaction of sentences: words that hangdoc and the kernel use stay, every other word becomes a token."""

from __future__ import annotations

import re

from hangdoc.trace import names
from hangdoc.trace.tokens import Tokens, is_token

_WORD = re.compile(r"""([("'`\[]*)(.*?)([)"'`\],.:;!?]*)""", re.DOTALL)
_PLAIN = re.compile(
    r"\d{1,20}(?:[.,]\d{1,9})?(?:%|s|ms|us|ns|m|h|x|B|KB|MB|GB|KiB|MiB|GiB|Hz)?"
    r"|[-+=>|/*#<&]{1,3}|%|-[A-Za-z]"
    r"|/proc(?:/(?:self|\d{1,10}|PID)(?:/task(?:/\d{1,10}|/TID)?)?(?:/[a-z_]{1,16}){0,2})?",
    re.ASCII,
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OF_BUFFERS = _words(
    """
    bases buffers build builds c c-stderr c-stdout characters dictionary entries export faster free-threaded freed glibc
    hold keep keeps length library makes objects plain prints sense stderr stdout streams structure types
    """
)

_WORDS_OF_LINKS = _words(
    "cgroup.freeze echo eventfd fifo flock inode lease locks nobody ofdlck peers posix thawed unix zmq"
)
"""What the links probe says of a wait."""

_WORDS_OF_COLLECTIVES = _words("addresses peer")
"""What the log lines of collectives say beyond the other words."""

_OF_HTTP = _words("enable entered http metrics publish")
"""What the http probe says of a server that does not answer."""

_WORDS_OF_SURROUNDINGS = _words("frames room shared somebody space stands")
"""What the probes lock-files and surroundings say, and the table of log lines of shared memory."""

_OF_RAS = _words(
    "cuda-gdb cuda_enable_user_triggered_coredump cudacore dumps kernel.dmesg_restrict nccl_ras_addr ras relaunch"
    " triggered"
)
"""What the ras and gpu probes say of a launch or of a log that they cannot ask."""

_WORDS_OF_LOGS = _words(
    """
    addresses api application assertion assigned autotuned backend block bs cancelled capturing channels check cold
    compiling counts custom enginecore enqueued failures initializing input job lists llm max_total_num_tokens
    oomkilled ops peer registering remote server_args settings shared soft space starts stayed terminate torch.compile
    vain world_size wrote zone
    """
)
"""What stands in the engines' tables of log lines."""

VOCABULARY = _OF_BUFFERS | _words(
    """
    a able aborted about above absent access accounted acquire acquired acquiring added address after again against
    ago all all_gather all_reduce allocated allow allowed almost already also always an and another answer answered
    answers any anything appears are argument arguments as ask asked asks at attach attached autotune avail
    available away back bad bar barrier batch batches be because been before began begin begins begun behind being
    belong belongs below beside between beyond big bind blocked boot boottime both broadcast broken budget buffer
    bus busy but by bytes cache call called calls came can cannot cap-add cap_perfmon cap_sys_ptrace capture
    captured cgroup chain change changed changes channel checked checkpoint checkpoints child children clean clock
    clock_boottime clocks closed cmdline code collective comm command compare compile compiled compiler complete
    completed connect connected connectfullmesh connecting connection container container's contains context copied
    copy core cores could count counted counter counters counts cpu crash crashed cuda cudaerror current cut cycle
    dead deadline deadlock debug decode deepgemm deleted demo denied descends descriptor descriptors detokenizer
    device devices did died differ different directory disk dist distributed dmesg do docker does done double down
    download downloaded downloading driver dtype dump dumps during e.g eacces each earlier early einval elapsed else
    empty end ended ends engine enodev enoent enough entry environment eperm epoll errno error esrch etimedout
    events every everything exception executable existing exists exit exited exiting exits expected explanation
    failed fails failure far fatal fault faults fd fdinfo fds few fewer field fields file files find finished
    finishing fired first fit fits flashinfer flush flushed folder follow followed for foreground format found free
    freezer from frozen full function functions further futex gather gave gb gdb get gil give given gives gloo go
    goes gone got gpu gpu-memory gpus gracefully graph graph-capture graphs group growth had half handle hang
    hangdoc hangs has have header health held helper helpers here hides higher hit holder holds home host hosts hour
    how hundred hundreds hung hypothesis hz i.e i/o id idle if ignored illegal import imported imports in in-use
    incomplete index init initialized inside install installed instead instruction interpreter interrupted into
    invalid io is it its itself jiffies jit join joined json keep keeps kept kernel kernel.yama.ptrace_scope kill
    killed killer kind know known knows kv kv-cache kworker lacks large last last-line later launch launched
    launcher launches leader least leave left less let lets level libnvidia-ml.so library likely limit line lines
    link list listed listening listens little load loaded loader loading loads lock lock-file locked log long longer
    look looked machine main main-thread maintainers make making many map mapped mapping maps match matches may mb
    mem member members memory memory-pool message mib middle milestone milestones million minute minutes mismatch
    missing mode model module more most mount mounted moved moves ms much multiple multiprocessing must name named
    names namespace namespaces native native-only nccl necessary needs neither network never new next nice no node
    nodes nonblocking none nor not nothing now ns number nvidia nvidia-smi nvlink nvml nvrm o(1) object observation
    observed of off offered offline old old-style older oldest on once one only oom open opened operation option or
    order os other others out output over own owned owner packages page pages parallel parent parse parsed part pass
    path pending per perhaps permission permitted phase pid pids pip pipe pipes pipx place please point pool port
    ports position possible post power prefill present print printed printing prints probe probes proc process
    process_vm_readv processes program progress protocol ptrace ptrace_scope ptraced py-spy pynvml python pytorch
    queue queued raised ran rank ranks rate reach reached read readable reader reading readings reads ready received
    recognised recognized record recorded reduce refused refuses regular release released releasing rendezvous reply
    report request requests requests/s required resource restarted restricted resume resumed retried retries return
    returned right rights roll root round rounds row rule run running runs s safetensors same sample samples saw say
    says scatter schedstat schedstats scheduler sec second seconds security see seen segmentation send sent server
    session set several sglang shard shards shares should show shown shows shut shutting sigabrt sigcont sigkill
    signal sigquit sigstop sigterm silent since single size sleep sleeping sleeps slice slices slow small smaps so
    socket sockets some something soon spawn spawned speed stack stacks stand standard start started starting
    startup stat state statm status stay steps still stop stopped stopping stops store strace stream subprocess such
    sudo supported suspended swapper switches sys sys_ptrace syscall sysctl system systemd table tail take taken takes
    target task tasks tcp tcpstore tell terminated text than that the their them then there these they thing this
    those thousand thread threads through throughput ticks time timed timeout times title to token tokenizer tokens
    tokens/s too took tool torch torchrun total trace traceback traced tracer traces tree tried truncated try twice
    two type unavailable uncaught uncompressed undecodable under understood undetermined unexpected unknown unless
    unreadable unsupported until up update us usable usage use used useful user users uses using utf-8 utilisation
    utilization uvicorn value values verdict version very vllm vs wait waited waiting waits wall warm-up warmup was
    watch watchdog watched way wchan weight weights went were what when where whether which while who whole whose
    why wide window with within without word words work worker workers works world world-readable would wrapper
    write writer writes writing written wrong xid yama yet yields you your yours zero zombie
    """
).union(_OF_HTTP, _OF_RAS, _WORDS_OF_LINKS, _WORDS_OF_COLLECTIVES, _WORDS_OF_SURROUNDINGS, _WORDS_OF_LOGS)
"""The words of messages that this project and the kernel write. A name that is none of them cannot get through."""


def sentence(tokens: Tokens, text: str) -> str:
    """Return the sentence with a token for each word that is neither known nor a number."""
    return re.sub(r"\S+", lambda match: _word(tokens, match.group()), text)


def _word(tokens: Tokens, word: str) -> str:
    if _is_known(word):
        return word
    match = _WORD.fullmatch(word)
    assert match is not None  # each of its parts may be empty
    before, core, after = match.groups()
    if not core or _is_known(core):
        return word
    kept = names.path(tokens, core) if "/" in core else tokens.of(core, "text")
    return before + kept + after


def _is_known(word: str) -> bool:
    if is_token(word) or _PLAIN.fullmatch(word):
        return True
    plain = word.lower().removeprefix("--").removesuffix("'s")
    return plain in VOCABULARY or all(
        part in VOCABULARY or re.fullmatch(r"\d{1,20}", part, re.ASCII) for part in re.split("[-/=]", plain)
    )
