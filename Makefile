# make run    set up and run the main job      make lint    style and types
# make test   set up, lint and test            make bench   benchmarks against peers, one table
# make mutants   whether the tests of src/uqno/conformal notice changes made to it (an hour)
# make fuzz     what a stop or a power cut at any moment leaves of every command (long)
# make results   copy what is kept of finished runs (runs/TASK-standard-seed-N) to results/
.PHONY: run test fuzz faults mutants lint bench results constraints clean
.DELETE_ON_ERROR:
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

run: .venv/installed
	$(BIN)/uqno run darcy --preset quick

test: lint
	$(BIN)/python -m pytest -n auto --cov --cov-report=
	$(BIN)/coverage report
	@echo 'Lines and branches of src/uqno/conformal, all of which must be tested:'
	$(BIN)/coverage report --include='src/uqno/conformal/*' --fail-under=100

mutants: .venv/installed-dev
	$(PIP) install -q -c constraints.txt -e '.[mutants]'
	rm -rf mutants
	$(BIN)/mutmut run --max-children 2 >mutants.log
	$(BIN)/python -m tests.conformal.mutants

# Long: a few minutes a command. Every disk that a stop or a power cut leaves (tests/faults).
fuzz: faults

faults: .venv/installed-dev
	$(BIN)/python -m tests.faults

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/installed-dev
	$(BIN)/python -m benchmarks

# The small part of finished runs that is kept under version control, and the README's tables of it.
results: .venv/installed-dev
	for run in runs/*-standard-seed-*; do \
	  test -f $$run/results.json || continue; \
	  name=$$(basename $$run); kept=results/$${name%-seed-*}/seed-$${name##*-}; mkdir -p $$kept; \
	  cp $$run/results.json $$run/scores.npz $$run/table.md $$kept/; \
	  test -f results/$${name%-seed-*}/band.png || cp $$run/figures/*.png results/$${name%-seed-*}/; \
	done
	$(BIN)/python -m tests.readme

# Each stamp is written last, so an interrupted set-up starts again and a finished one is skipped.
.venv/created:
	@$(PYTHON) -c 'import sys; v = sys.version.split()[0]; sys.version_info >= (3, 11) or sys.exit(f"uqno needs Python 3.11 or newer, this is {v}: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	@touch $@

.venv/installed: .venv/created pyproject.toml constraints.txt
	$(PIP) install -q -c constraints.txt -e .
	@touch $@

.venv/installed-dev: .venv/created pyproject.toml constraints.txt
	$(PIP) install -q -c constraints.txt -e '.[dev,neuralop,mesh]'
	@touch $@ .venv/installed

# Today's newest versions of everything, in a throw-away environment.
constraints:
	$(PYTHON) -m venv .venv/fresh && .venv/fresh/bin/pip install -q torch==2.13.0 '.[dev,mutants,neuralop,mesh]'
	(head -n 2 constraints.txt; .venv/fresh/bin/pip freeze | grep == | sed 's/+cpu//' | grep -v '^uqno' | sort -f) > constraints.new
	mv constraints.new constraints.txt && rm -rf .venv/fresh

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage mutants mutants.log
