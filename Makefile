# Everything a person, a hook or continuous integration runs. Needs Python 3.11+, make and git; asks nothing.
# `make` lists the targets. ARGS reaches the program behind a target: make up ARGS="--brokers 1".

PYTHON ?= python3
ARGS ?=
BIN := .venv/bin
# pytest's exit code where ARGS named files with no test for this pass.
NONE_SELECTED := [ $$? -eq 5 ]
# A stamp is newer than everything it was installed from, so a second run installs nothing.
RUNTIME := .venv/.installed-runtime
DEVELOP := .venv/.installed-develop
SOURCES_OF_RUNTIME := pyproject.toml tools/environment.py $(addprefix requirements/,bootstrap.txt runtime.txt build.txt)
SOURCES_OF_DEVELOP := $(SOURCES_OF_RUNTIME) $(addprefix requirements/,test.txt check.txt)

# An older Python would fail over a file's syntax; this says what is wrong instead.
define NEED_PYTHON
$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
  echo "tidings set-up: Python 3.11 or newer is needed, '$(PYTHON)' is not; name one: make PYTHON=python3.12 ..." >&2; \
  exit 1; }
endef

.DEFAULT_GOAL := help
.PHONY: help up test test-long check format bench compatibility lock programs clean
.DELETE_ON_ERROR:

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

up: $(RUNTIME) ## Start a cluster on this machine, from a fresh clone too (ARGS: options of `tidings up`)
	@exec $(BIN)/tidings up $(ARGS)

test: $(DEVELOP) programs ## Run the tests, at most 10 minutes on two cores (ARGS: options of pytest)
	$(BIN)/pytest -n 2 -m "not long and not serial" $(ARGS) || $(NONE_SELECTED)
	$(BIN)/pytest -m "serial and not long" $(ARGS) || $(NONE_SELECTED)

test-long: $(DEVELOP) programs ## Run the tests that take minutes, or need tools that few machines have
	$(BIN)/pytest -m long $(ARGS)

check: $(DEVELOP) ## Hold the rules: format, lint, types, imports between rooms, style
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m tools.tidy

format: $(DEVELOP) ## Format the code, and mend what the linter can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(DEVELOP) ## Measure Tidings beside Apache Kafka on this machine (ARGS: options of bench.compare)
	$(BIN)/python -m bench.compare $(ARGS)

compatibility: $(DEVELOP) programs ## Write docs/compatibility.md from what stock clients can do (needs Java, Maven, Node)
	$(BIN)/python -m tools.compatibility

lock: $(DEVELOP) ## Write requirements/ from pyproject.toml (ARGS="--upgrade" takes the newest)
	$(BIN)/python -m tools.lock $(ARGS)

clean: ## Remove the environment, the caches and what a build left; never a cluster's messages
	rm -rf .venv .cache build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests tools bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(RUNTIME): $(SOURCES_OF_RUNTIME)
	@$(NEED_PYTHON)
	@$(PYTHON) tools/environment.py runtime

$(DEVELOP): $(SOURCES_OF_DEVELOP)
	@$(NEED_PYTHON)
	@$(PYTHON) tools/environment.py develop

programs: $(DEVELOP)
	@$(BIN)/python tools/environment.py programs
