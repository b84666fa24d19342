# Every target does its own set-up: a machine needs python3 (3.11 or newer) and make.
PYTHON ?= python3
BIN := .venv/bin
DEMO := .demo/traces.duckdb

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint check notebook bench clean

help:
	@echo "make demo      the main job on data/samples: what each stop and restore threw away"
	@echo "make test      the tests"
	@echo "make test-all  the tests and the long ones"
	@echo "make check     ruff, mypy, tests (SQL comments among them)"
	@echo "make notebook  Jupyter with the notebooks"
	@echo "make bench     the measurements"
	@echo "make clean     everything made here goes"

# A stamp file says what is installed; a changed pyproject.toml makes it stale.
.venv/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "make: $(PYTHON) is Python %d.%d, 3.11 or newer is needed: make PYTHON=..." % sys.version_info[:2])'
	$(PYTHON) -m venv .venv
	@touch $@

.venv/.demo: pyproject.toml | .venv/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/.dev: pyproject.toml | .venv/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@ .venv/.demo

.venv/.notebook: pyproject.toml | .venv/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[notebook]"
	@touch $@ .venv/.demo

demo: .venv/.demo
	@mkdir -p .demo
	$(BIN)/rtrace waste data/samples --db $(DEMO)
	@echo
	$(BIN)/rtrace sql "SELECT experiment, run, lost_attempts, thrown_away_s, never_saved_s, naive_s FROM cut_time_waste ORDER BY experiment, restore_t" --db $(DEMO)
	@echo
	@echo "pr-example is the example of NeMo-RL's PR #5048: dispatched at 12, cut at 40, thrown away: 28 s."
	@echo "Next: $(BIN)/rtrace show attempt_spans --db $(DEMO) --experiment pr-example, or make notebook"

test: .venv/.dev
	$(BIN)/python -m pytest

test-all: .venv/.dev
	$(BIN)/python -m pytest -m "slow or not slow"

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/mypy

check: lint test

notebook: .venv/.notebook
	$(BIN)/jupyter lab --notebook-dir=notebooks

bench: .venv/.dev
	@for script in tests/bench/bench_*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

clean:
	rm -rf .venv .demo .bench dist build
