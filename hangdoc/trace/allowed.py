"""The allow-lists of redaction: everything a trace may say in words of the outside world."""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MACHINES = frozenset({"x86_64", "aarch64", "arm64", "armv7l", "i686", "ppc64le", "riscv64", "s390x"})
"""platform.machine()."""

RANK_DIMENSIONS = _words(
    "tp pp dp ep cp sp dcp pcp attn_tp attn_dp attn_cp moe_tp moe_ep moe_dp node local local_rank rank world"
)

PUBLIC_TREES = (
    r"sglang/(?:srt|lang|jit_kernel|multimodal_gen|cli|benchmark|profiler)",
    r"sglang/(?:__init__|launch_server|bench_\w{1,30}|check_env|global_config|utils|version)\.py",
    r"vllm/(?:v1|attention|compilation|config|core|device_allocator|distributed|engine|entrypoints|executor|inputs)",
    r"vllm/(?:lora|model_executor|multimodal|platforms|plugins|profiler|ray|reasoning|transformers_utils|utils|worker)",
    r"torch/(?:distributed|nn|utils|multiprocessing|cuda|autograd|fx|jit|_\w{2,20}|(?:_\w+|serialization|storage)\.py)",
    r"torchvision/(?:ops|models|transforms)",
    r"transformers/(?:models|utils|generation|\w{1,40}\.py)",
    r"triton/(?:runtime|compiler|backends|language)",
    r"flashinfer/(?:jit|comm|fused_moe|\w{1,40}\.py)",
    r"zmq/(?:sugar|backend|asyncio|eventloop|_future\.py)",
    r"uvicorn/(?:server|main|config|_subprocess|protocols|lifespan|loops|supervisors)(?:\.py)?",
    r"uvloop/(?:loop\.pyx|__init__\.py|handles|sslproto\.pyx)",
    r"tvm_ffi/(?:cpp|utils)/\w{1,40}\.py",
    r"filelock/(?:_\w{1,20}/){1,2}\w{1,40}\.py",
    r"(?:safetensors|filelock|tqdm|starlette|fastapi|anyio(?:/_backends)?|xgrammar|huggingface_hub)/\w{1,40}\.py",
    r"ray/(?:_private|_raylet\.pyx|util|dag|experimental)",
)
"""Directories and files that only these packages have, for copies outside site-packages: `pip install --target`, an
editable install as in the sglang image, the paths that Cython compiles in. Regular expressions."""

LIBRARIES = (
    "libc",
    "libpthread",
    "libcuda",
    "libcudart",
    "libcublas",
    "libcudnn",
    "libnccl",
    "libnvidia-ml",
    "libtorch",
    "libc10",
    "libgloo",
    "libgomp",
    "libzmq",
    "libuv",
    "libpython3",
    "libstdc\\+\\+",
    "ld-linux",
)
"""How the names of shared libraries begin that native frames lie in. Regular expressions."""

GPU_WORDS = (
    "NVIDIA|AMD|Intel|Tesla|GeForce|Quadro|Instinct|Radeon|GRID|MIG|RTX|GTX|TITAN|PRO|Ti|SUPER|Laptop|GPU|Ada",
    "Generation|Blackwell|Hopper|Server|Workstation|Max-Q|Edition|PCIe|NVL|SXM|HBM\\d\\w?|Graphics|Device|Thor|Orin",
    "[A-Z]{1,3}\\d{1,4}[A-Za-z]{0,2}(?:-(?:SXM\\d?|PCIE|PCIe|NVL|\\d{1,3}GB?|\\d{1,2}[CQ]))*|\\d{1,4}(?:GB|g\\.\\d{1,3}gb)?",
)
"""Words of the names that NVML gives ("NVIDIA A100-SXM4-80GB"). Regular expressions."""

PROGRAM = re.compile(
    r"python(?:\d(?:\.\d{1,2}t?)?)?|torchrun|sglang|vllm|ray|uv|uvx|(?:ba|da|z)?sh|env|nohup|tini|numactl|taskset"
    r"|hangdoc|py-spy|nvcc|cicc|ptxas|ninja|cmake|make|(?:gcc|g\+\+|clang|clang\+\+)(?:-\d{1,2})?|c\+\+|cc1|cc1plus",
    re.ASCII,
)

SUBCOMMANDS = frozenset({"serve", "run", "start"})

MODULES = (
    "sglang",
    "sglang_router",
    "vllm",
    "torch",
    "multiprocessing",
    "uvicorn",
    "ray",
    "hangdoc",
)
"""Packages whose modules may be named after -m."""

PYTHON_OPTIONS = _words("-m -c -u -B -E -I -O -OO -P -S -s -q -v --multiprocessing-fork")

VALUE_OPTIONS = _words(
    """
    tp tp-size tensor-parallel-size pp pp-size pipeline-parallel-size dp dp-size data-parallel-size ep ep-size
    expert-parallel-size cp-size attn-cp-size moe-dp-size moe-dense-tp-size data-parallel-size-local
    data-parallel-rank data-parallel-start-rank dcp-size decode-context-parallel-size nnodes node-rank
    nproc-per-node local-rank rank world-size max-restarts rdzv-backend standalone headless port nccl-port
    master-port data-parallel-rpc-port metrics-port dist-timeout watchdog-timeout soft-watchdog-timeout
    attention-backend prefill-attention-backend decode-attention-backend mm-attention-backend sampling-backend
    grammar-backend moe-a2a-backend moe-runner-backend fp8-gemm-backend distributed-executor-backend deepep-mode
    dtype quantization kv-cache-dtype device load-format mem-fraction-static gpu-memory-utilization max-model-len
    max-total-tokens max-running-requests max-queued-requests max-prefill-tokens chunked-prefill-size context-length
    max-num-seqs max-num-batched-tokens page-size block-size swap-space cpu-offload-gb cuda-graph-max-bs
    cuda-graph-bs torch-compile-max-bs num-continuous-decode-steps schedule-policy schedule-conservativeness
    random-seed seed stream-interval base-gpu-id gpu-id-step speculative-algorithm speculative-num-steps
    speculative-eagle-topk speculative-num-draft-tokens speculative-attention-mode disaggregation-mode
    disaggregation-transfer-backend load-balance-method tokenizer-worker-num api-server-count log-level
    log-level-http mm-feature-transport trust-remote-code sleep-on-idle skip-server-warmup log-requests-level
    decode-log-interval enable-metrics ep-num-redundant-experts
    """
)
"""Options whose values stay when they are numbers, booleans or one of VALUES."""

VALUES = _words(
    """
    auto true false none yes no on off default half float16 fp16 bfloat16 bf16 float float32 fp32 fp8 fp8_e4m3
    fp8_e5m2 fp4 fp4_e2m1 int8 int4 w8a8_int8 w8a8_fp8 w4afp8 awq awq_marlin gptq gptq_marlin bitsandbytes gguf
    marlin modelopt modelopt_fp8 modelopt_fp4 mxfp4 compressed-tensors cuda cpu hip rocm xpu hpu npu tpu mps
    safetensors pt npcache dummy sharded_state layered remote runai_streamer triton flashinfer fa2 fa3 fa4 flashmla
    cutlass cutlass_mla trtllm_mla trtllm_mha torch_native flex_attention flash_attn flash_attn_mla aiter wave
    intel_amx ascend nsa dsa deep_gemm deepep mooncake nixl pytorch xgrammar outlines llguidance mp ray uni
    external_launcher c10d static etcd etcd-v2 low_latency normal lpm random fcfs dfs-weight lof priority
    round_robin shortest_queue minimum_tokens eagle eagle3 nextn standalone ngram prefill decode null debug info
    warning warn error critical trace
    """
)

ADDRESS_OPTIONS = _words(
    "host dist-init-addr nccl-init-addr master-addr rdzv-endpoint data-parallel-address init-method"
)
"""Options whose value is a host, perhaps with a port."""

NAMED_OPTIONS = _words(
    """
    model model-path tokenizer tokenizer-path tokenizer-mode served-model-name revision chat-template download-dir
    model-impl model-loader-extra-config json-model-override-args hf-overrides lora-paths lora-modules
    speculative-draft-model-path speculative-draft-model-quantization speculative-config compilation-config
    tool-call-parser reasoning-parser api-key admin-api-key log-dir file-storage-path file-storage-pth
    crash-dump-folder preferred-sampling-params kv-transfer-config init-expert-location disaggregation-ib-device
    ssl-keyfile ssl-certfile rdzv-id rdzv-conf log-file config enable-trace otlp-traces-endpoint extra-metric-labels
    custom-weight-loader
    """
)
"""Options that stay although their values never do, so that a reader sees which value a token stands for."""
