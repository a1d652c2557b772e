# Two commands set everything up, from a bare clone with Python 3.11 or newer and make:
#   make demo    install hangdoc here and let it diagnose a small sick launch
#   make test    everything, a real SGLang on the CPU included (downloads it once: 2 GB, kept in .cache/sglang)

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed.stamp
DEV_INSTALLED := $(VENV)/dev-installed.stamp
# 3.11 first: SGLang's environment needs exactly that one. Each is run, because a name on PATH may be an empty shim.
PYTHONS := python3.11 python3.12 python3.13 python3
FIND_PYTHON := for python in $(PYTHONS); do \
	"$$python" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && break; \
	python=; done
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# Most tests wait for processes that they look at: twice as many workers as cores, 8 at most (tests/scheduling.py says
# what runs beside what). WORKERS=0 runs one test after the other, in one process.
WORKERS := $(shell cores=$$(nproc); echo $$((cores < 4 ? 2 * cores : 8)))
PYTEST := $(BIN)/python -m pytest -n $(WORKERS)

# What `make accuracy` looks at: see python -m tests.accuracy --help. It takes about an hour on two cores.
ACCURACY := --rounds 3 --load both --sglang --healthy 50 --table docs/accuracy.md

.PHONY: help demo test test-fast lint docs bench bench-following bench-logs bench-regress accuracy accuracy-logs fuzz
.PHONY: losses soak wheel clean
help:
	@sed -n 's/^#   //p' Makefile

demo: $(INSTALLED)
	@$(BIN)/hangdoc demo

# The servers' environment is fetched while the small tests run: nobody needs it before, and who does waits for it.
test: lint
	@$(BIN)/python tests/sglang/provision.py & $(PYTEST); code=$$?; wait; exit $$code

test-fast: $(DEV_INSTALLED)
	@$(PYTEST) -m 'not sglang and not slow'

lint: $(DEV_INSTALLED)
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

docs: $(DEV_INSTALLED)
	@$(BIN)/python docs/generate.py

bench: $(DEV_INSTALLED)
	@for benchmark in snapshot waits links buffers merge; do $(BIN)/python benchmarks/$$benchmark.py || exit; done

accuracy: $(DEV_INSTALLED)
	@$(BIN)/python -m tests.accuracy $(ACCURACY)

bench-logs: $(DEV_INSTALLED)
	@$(BIN)/python benchmarks/logscan.py

bench-regress: $(DEV_INSTALLED)
	@$(BIN)/python benchmarks/regress.py

bench-following: $(DEV_INSTALLED)
	@$(BIN)/python benchmarks/following.py

accuracy-logs: $(DEV_INSTALLED)
	@$(BIN)/python tests/corpus/score.py

# Each sample of each recording is left out, and each two of a probe: `make test` tries a tenth of them.
losses: $(DEV_INSTALLED)
	@HANGDOC_EVERY_LOSS=1 $(PYTEST) -k any_sample_and_any_two tests/properties

# A million inputs, coverage-guided where atheris can be had (else by mutation alone); FUZZ=10000 for a short one.
FUZZ := 1000000
fuzz: $(DEV_INSTALLED)
	-@$(BIN)/python -m pip --disable-pip-version-check --quiet install --group fuzz
	@$(BIN)/python tests/fuzz/logs.py --inputs $(FUZZ) --jobs $$(nproc)

# How long `make soak` watches a healthy server, in seconds.
SOAK_S := 3600
soak: $(DEV_INSTALLED)
	@$(BIN)/python tests/sglang/provision.py
	@$(BIN)/python -m tests.sglang.soak --seconds $(SOAK_S)

wheel: $(DEV_INSTALLED)
	@$(PIP) wheel --no-deps --wheel-dir dist .

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@$(FIND_PYTHON); \
	if [ -z "$$python" ]; then \
		echo "make: no Python 3.11, 3.12 or 3.13 with the venv module on PATH (Debian: apt install python3-venv)" >&2; \
		exit 1; \
	fi; \
	rm -rf $(VENV) && "$$python" -m venv $(VENV)

# pip is renewed because older ones know no dependency groups.
$(INSTALLED): pyproject.toml $(BIN)/python
	@$(PIP) install 'pip>=25.1'
	@$(PIP) install --editable .
	@touch $@

$(DEV_INSTALLED): $(INSTALLED)
	@$(PIP) install --group dev
	@touch $@
