"""Redaction of sentences: words that hangdoc and the kernel use stay, every other word becomes a token."""

from __future__ import annotations

import re

from hangdoc.trace import names
from hangdoc.trace.tokens import Tokens, is_token

_WORD = re.compile(r"""([("'`\[]*)(.*?)([)"'`\],.:;!?]*)""", re.DOTALL)
_PLAIN = re.compile(
    r"[\d]{1,20}(?:[.,]\d{1,9})?(?:%|s|ms|us|ns|m|h|x|B|KB|MB|GB|KiB|MiB|GiB|Hz)?"
    r"|[-+=>|/*#<&]{1,3}|-[A-Za-z]"
    r"|/proc/(?:self|\d{1,10}|PID)(?:/task(?:/\d{1,10}|/TID)?)?(?:/[a-z_]{1,16}){0,2}",
    re.ASCII,
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


VOCABULARY = _words(
    """
    a able about above access accounted added after again against all allow allowed almost already also always an
    and another answer answered any anything appears are argument as ask asked asks at attach attached available
    away back bad bar barrier batch batches be because been before began begin begins behind being below beside
    between beyond big blocked both broken budget buffer busy but by bytes call called calls came can cannot capture
    captured chain change changed changes channel checked checkpoint child children clean clock clocks closed code
    collective command compile compiled compiler complete completed connected connection contains container copied
    copy core cores count counted counters counts cpu crash crashed cuda current cut dead deadline debug decode
    deleted denied descends descriptor descriptors detokenizer device devices did died differ different directory
    disk distributed do does done down driver dump dumps during each earlier early else empty end ended ends engine
    enough entry environment epoll error errno events every everything exception executable existing exists exit
    exited exits expected failed failure fault field fields file files find finished fired first flush flushed
    folder follow followed for format found foreground free from full function functions further futex gave gb get
    given gives gloo go goes gone gpu gpus graph graphs group had half handle hang hangdoc hangs has have header
    health held here higher holds host hour hung i/o id idle if ignored import imported imports in incomplete index
    init initialized inside install installed instead interpreter interrupted into invalid io is it its itself join
    joined keep keeps kept kernel kill killed kind know known knows lacks large last later launch launched launcher
    leader least leave left less level library likely limit line lines link list listed listening listens load
    loaded loading loads lock locked log long longer looked main make making many map mapped mapping maps match
    matches may mb member members memory message mib middle milestone minute minutes missing mode model module more
    most mounted moved moves much must name named names namespace native nccl necessary needs network never new next
    no node nodes none not nothing now number nvidia nvml object of off offered old older on once one only open
    opened operation option or order os other others out output over own owned owner packages page pages parent
    parse parsed part pass path pending per perhaps permission permitted phase pid pids pip pipe pipes pipx place
    please point pool port ports position possible prefill print printed printing prints probe probes proc process
    processes progress protocol ptrace py-spy pynvml python queue queued raised ran rank ranks rate reach reached
    read reader readable reading readings reads ready received record recorded refused reply report request requests
    required resource restarted restricted retried retries return returned root round rounds row rule run running
    runs safetensors same sample samples saw say says scheduler schedstat second seconds see seen send sent server
    session set several sglang shard shards should show shown shows shut signal silent since size sleep sleeping
    sleeps slice slices slow small so socket sockets some something soon spawn spawned stack stacks stand started
    startup stat state status still stop stopped stops stream subprocess such sudo supported sys system table tail
    take taken takes target tcp than that the their them then there these they thing this those thread threads
    through throughput time timed timeout title to token tokenizer tokens too took tool torch torchrun total traced
    tracer traces trace tree tried truncated try twice two unavailable uncompressed undecodable under unexpected
    unknown unless unreadable unsupported until update up usable usage use used useful user uses utf-8 uvicorn value
    values verdict version very vllm wait waited waiting waits wall warm-up warmup was watch watchdog way weight
    weights went were what when where whether which while who whole whose why wide window with within without word
    words work worker workers works world would wrapper write writer writes writing written wrong yama yet yields
    you your zero zombie cap_sys_ptrace cap_perfmon eacces eperm esrch enoent enodev einval etimedout ptrace_scope
    kernel.yama.ptrace_scope process_vm_readv libnvidia-ml.so nvidia-smi pytorch world-readable o(1) e.g i.e vs
    """
)
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
    if is_token(word) or word.lower() in VOCABULARY or _PLAIN.fullmatch(word):
        return True
    parts = word.lower().removeprefix("--").split("-")
    return all(part in VOCABULARY or part.isdecimal() for part in parts)
