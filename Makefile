# The verbs of this project. On a fresh machine `make run` and `make test` need nothing but Python 3.11+ with venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check -qq
# uv takes a quarter of pip's time. Where it cannot be had, or cannot reach what pip is configured for, pip does it all.
UV     := UV_HTTP_RETRIES=0 UV_HTTP_TIMEOUT=20 $(BIN)/python -m uv pip install -q --python $(BIN)/python
install = $(UV) $(1) 2>/dev/null || $(PIP) install $(1)

# Files are spread over processes, most of them whole (tests/spread.py). The slow files come first (tests/conftest.py).
# Six processes on two cores, for a slow test waits for programs of its own most of the time.
SPREAD := -p tests.spread --forks 6
# Hundreds of processes and each run compile everything anew where this is set; rewriting assertions takes half a minute.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: status run test suite coverage check fmt image faults mutants bench bench-profile bench-scale bench-peers lock reference charts lock-images clean

run: $(VENV)/.base ## start the monitor on embedded defaults with sample traffic
	@$(BIN)/sidejudge demo $(ARGS)

test: $(VENV)/.dev ## everything that CI checks: style, types, architecture, the whole suite (TESTS=tests/scoring: a part of it)
	@$(MAKE) --no-print-directory -j 2 check suite

suite: $(VENV)/.dev ## the suite alone
	$(BIN)/python -m pytest $(SPREAD) -q $(TESTS)

coverage: $(VENV)/.dev ## the suite, and which lines and branches it never reaches
	$(BIN)/python -m pytest -n 4 --dist loadfile --cov --cov-report=term:skip-covered -q

check: $(VENV)/.dev ## style, types, layers (a minute at most)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fmt: $(VENV)/.dev ## format, and mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

image: $(VENV)/.dev ## build the image with buildah on a base of Debian's packages, run it and the one with a judge read-only (two minutes)
	IMAGE=1 $(BIN)/python -m pytest -q -n0 -o cache_dir=$(VENV)/.image tests/image/test_built.py tests/image/test_variants.py

MINUTES ?= 5
faults: $(VENV)/.dev ## kills, broken disks and hostile callers against a running monitor: make faults MINUTES=30 SEED=7 BUDGET="--slow-readers 300"
	$(BIN)/python -m tests.faults.campaign --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(BUDGET)

MOST ?= 100
mutants: $(VENV)/.dev ## change a room's code line by line, and print what no test notices: make mutants ROOM=scoring/verdict TESTS=tests/scoring/verdict
	@test -x .venv-mutants/bin/cosmic-ray || { $(PYTHON) -m venv .venv-mutants && .venv-mutants/bin/python -m pip -qq install "cosmic-ray==8.7.0"; }
	@$(BIN)/python -m tests.mutants $(ROOM) $(TESTS) --most $(MOST)

bench: $(VENV)/.dev ## ratios against a baseline measured in the same run
	@for file in tests/bench/bench_*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

bench-profile: $(VENV)/.dev ## where the time of one judged trace goes, stage by stage
	@$(BIN)/python tests/bench/bench_profile.py

bench-scale: $(VENV)/.dev ## how the cost of a fleet's status and of its series in Prometheus grows, as tables
	@$(BIN)/python -m tests.bench.bench_scale
	@$(BIN)/python -m tests.bench.bench_series

bench-peers: ## what bench_scoring and bench_traffic compare with, in an environment of its own (.venv-peers)
	@test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip -qq install "deepeval==4.3.1" "ragas==0.4.3" "langchain-community<0.4" "rotel==0.0.1a15"

status: $(VENV)/.dev ## simulate months of alerts and write docs/reference/status.md anew (a quarter of an hour)
	$(BIN)/python tests/simulation/judge_error.py
	$(BIN)/python tests/simulation/tables.py
	$(BIN)/python -m tests.simulation.metric_tables

reference: $(VENV)/.dev ## write the generated reference pages anew
	$(BIN)/python -m sidejudge.monitor.reference
	$(BIN)/python -m sidejudge.dashboards

charts: $(VENV)/.dev ## write what is generated under helm/ anew (needs Helm's engine: tests/helm/engine.lock)
	$(BIN)/python -m tests.helm.generate

LOCK := uv pip compile -q pyproject.toml $(UPGRADE) --universal --python-version 3.11 --generate-hashes --no-emit-index-url --custom-compile-command "make lock"

lock: $(VENV)/.dev ## lock what pyproject.toml asks for, with hashes, naming no index (UPGRADE=--upgrade: newer versions too)
	$(PIP) install uv
	$(BIN)/$(LOCK) -o .ci/requirements.lock
	$(BIN)/$(LOCK) --extra dev -c .ci/requirements.lock -o .ci/requirements-dev.lock
	$(MAKE) --no-print-directory lock-images

lock-images: ## what each variant of the image holds, in the versions that are developed with where there are such
	$(BIN)/$(LOCK) --extra fleet --extra grpc --extra otel -c .ci/requirements-dev.lock -o .ci/image/base.lock
	$(BIN)/$(LOCK) --extra fleet --extra grpc --extra otel --extra judge -c .ci/requirements-dev.lock -o .ci/image/judge.lock
	$(BIN)/$(LOCK) --extra fleet --extra grpc --extra otel --extra judge --extra checks --extra cel --extra langfuse -c .ci/requirements-dev.lock -o .ci/image/full.lock
	$(BIN)/$(LOCK) --extra fleet --extra grpc --extra otel --extra judge --extra checks --extra cel --extra langfuse --extra embeddings -c .ci/requirements-dev.lock -c .ci/image/torch.lock \
	  --no-emit-package torch -o .ci/image/embeddings.lock

clean: ## forget the environment and all caches
	rm -rf $(VENV) .venv-peers .venv-mutants .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage

$(VENV)/.base: .ci/requirements.lock pyproject.toml
	@echo "setting up $(VENV) (once) …"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install 'uv==0.13.9' 2>/dev/null || true
	@$(call install,--require-hashes -r .ci/requirements.lock)
	@$(call install,--no-deps --editable .)
	@touch $@

$(VENV)/.dev: $(VENV)/.base .ci/requirements-dev.lock
	@echo "setting up the development tools …"
	@$(call install,--require-hashes -r .ci/requirements-dev.lock)
	@touch $@
