# Every target does its own set-up: a machine needs python3 (3.11 or newer) and make.
PYTHON ?= python3
BIN := .venv/bin
DEMO := .demo/traces.duckdb
INSTALL := python -m pip install --quiet --disable-pip-version-check

# Every Python from 3.11 on, the oldest first: $(PYTHON), those on the path, those of pyenv.
PYTHONS = $(shell for p in $(PYTHON) python3.11 python3.12 python3.13 python3.14 python3.15 \
	"$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/*/bin/python3; do "$$p" -c 'import ensurepip, sys; v = sys.version_info; \
	v >= (3, 11) and v.releaselevel == "final" and print("%d.%d.%d" % v[:3], sys.executable)' 2>/dev/null; \
	done | sort -V | cut -d" " -f2)
OLDEST_PYTHON ?= $(or $(firstword $(PYTHONS)),$(error no Python 3.11 or newer is here))
NEWEST_PYTHON ?= $(or $(lastword $(PYTHONS)),$(error no Python 3.11 or newer is here))
# The tests that meet DuckDB, pandas, pyarrow and matplotlib most in the time they take. make test-oldest VERSIONED=tests
# runs all, once `.venv-oldest/bin/pip install --constraint .venv-oldest/bounds.txt --editable ".[dev]"` is done.
VERSIONED ?= tests/views tests/export tests/plots tests/loading/test_take_apart.py tests/test_attach.py \
	tests/test_compare.py tests/test_traces.py
NOT_TO_BE_HAD := { echo "make: the versions to test on could not be installed, so nothing is tested: is the package index in reach?" >&2; exit 1; }

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-oldest test-newest lint check notebook bench clean

help:
	@echo "make demo      the main job on data/samples: what each stop and restore threw away"
	@echo "make test      the tests"
	@echo "make test-all  the tests and the long ones"
	@echo "make test-oldest, make test-newest  chosen tests on the lowest versions pyproject.toml admits, on the highest"
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
	$(BIN)/$(INSTALL) --editable .
	@touch $@

.venv/.dev: pyproject.toml | .venv/.made
	$(BIN)/$(INSTALL) --editable ".[dev]"
	@touch $@ .venv/.demo

.venv/.notebook: pyproject.toml | .venv/.made
	$(BIN)/$(INSTALL) --editable ".[notebook]"
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

test-oldest: .venv-oldest/.made
	.venv-oldest/bin/python -m pytest $(VERSIONED)

# An environment of its own: .venv is of $(PYTHON), which need not be the newest, and keeps what it once got. A new .venv of
# the newest Python would do as well.
test-newest: .venv-newest/.made
	.venv-newest/bin/$(INSTALL) --upgrade --upgrade-strategy eager --only-binary :all: --editable ".[test]" || $(NOT_TO_BE_HAD)
	@.venv-newest/bin/python --version
	.venv-newest/bin/python -m pytest $(VERSIONED)

# The lower bounds are written once, in pyproject.toml: "duckdb>=1.5.6,<3" is read as duckdb==1.5.6.
.venv-oldest/.made: pyproject.toml
	$(OLDEST_PYTHON) -m venv --clear .venv-oldest
	sed -n 's/^ *"\([A-Za-z0-9_-]*\)>=\([0-9.]*\).*/\1==\2/p' pyproject.toml | sort -u > .venv-oldest/bounds.txt
	.venv-oldest/bin/$(INSTALL) --only-binary :all: --constraint .venv-oldest/bounds.txt --editable ".[test]" || $(NOT_TO_BE_HAD)
	@echo "The oldest: $$(.venv-oldest/bin/python --version), $$(paste -sd' ' .venv-oldest/bounds.txt)"
	@touch $@

.venv-newest/.made:
	$(NEWEST_PYTHON) -m venv --clear .venv-newest
	@touch $@

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/mypy

check: lint test

notebook: .venv/.notebook
	$(BIN)/jupyter lab --notebook-dir=notebooks

bench: .venv/.dev
	@for script in tests/bench/bench_*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

clean:
	rm -rf .venv .venv-oldest .venv-newest .demo .bench dist build
