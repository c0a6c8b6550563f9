# make run    set up and run the main job      make lint    style and types
# make test   set up, lint and test            make bench   benchmarks against peers, one table
# make mutants   whether the tests of src/uqno/conformal notice changes made to it (an hour)
# make hashes    requirements*.txt anew, after a change of pyproject.toml or constraints.txt
# make results   copy what is kept of finished runs (runs/TASK-standard-seed-N) to results/
# make fuzz   hostile arguments, commands and files, stops at every file operation, power cuts and
#             kills against the documented errors and the undisturbed results (an hour or two)
.PHONY: run test fuzz faults mutants lint bench results constraints hashes clean
.DELETE_ON_ERROR:
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
HASHED = $(PIP) install -q --require-hashes --no-deps --only-binary :all:
define OURSELVES
$(PIP) install -q --only-binary :all: -c constraints.txt torch
$(PIP) install -q --no-deps --no-build-isolation -e .
endef
COMPILE = .venv/fresh/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes \
  --no-header --no-annotate -c constraints.txt
HEAD := \# Made by 'make hashes' from constraints.txt, for
# Lines of a file of requirements: all but torch and what it brings; those that another has not.
OTHERS := /^[a-z]/ {keep = !/^(torch|triton|nvidia-|cuda-)/} keep
NEW := NR == FNR {there[$$1] = 1; next} /^[a-z]/ {keep = !($$1 in there)} keep

run: .venv/installed
	$(BIN)/uqno run darcy --preset quick

test: lint
	$(BIN)/python -m pytest -n auto --cov --cov-report=
	$(BIN)/coverage report
	@echo 'Lines and branches of src/uqno/conformal, all of which must be tested:'
	$(BIN)/coverage report --include='src/uqno/conformal/*' --fail-under=100

fuzz: .venv/installed-dev faults
	$(BIN)/python -m tests.fuzz --cases 1 --seed 0 --minutes 60
	$(BIN)/python -m tests.kills

mutants: .venv/installed-dev
	rm -rf mutants
	$(BIN)/mutmut run --max-children 2 >mutants.log
	$(BIN)/python -m tests.conformal.mutants

# Every disk that a stop or a power cut leaves of each command.
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

# Every file that pip takes has a hash in requirements*.txt, and none is built here. torch alone is taken
# by its version, with what its build for this platform needs besides; then this package itself.
.venv/installed: .venv/created pyproject.toml constraints.txt requirements.txt
	$(HASHED) -r requirements.txt
	$(OURSELVES)
	@touch $@

.venv/installed-dev: .venv/created pyproject.toml constraints.txt requirements.txt requirements-dev.txt
	$(HASHED) -r requirements.txt -r requirements-dev.txt
	$(OURSELVES)
	@touch $@ .venv/installed

# Today's newest versions of everything, in a throw-away environment, and the hashes of their files.
constraints:
	$(PYTHON) -m venv .venv/fresh
	.venv/fresh/bin/pip install -q torch==2.13.0 hatchling editables '.[dev,mutants,neuralop,mesh]'
	(head -n 2 constraints.txt; .venv/fresh/bin/pip freeze --all | grep == | sed 's/+cpu//' | grep -v '^uqno\|^pip=' | sort -f) > constraints.new
	mv constraints.new constraints.txt && rm -rf .venv/fresh
	$(MAKE) hashes

# requirements*.txt from constraints.txt: the hashes of all files of each version, for every platform.
hashes:
	$(PYTHON) -m venv .venv/fresh && .venv/fresh/bin/pip install -q uv
	printf 'hatchling\neditables\n' > .venv/fresh/build.in
	$(COMPILE) -o .venv/fresh/run.txt pyproject.toml .venv/fresh/build.in
	$(COMPILE) -o .venv/fresh/all.txt --all-extras pyproject.toml .venv/fresh/build.in
	(echo "$(HEAD)" 'make run'; awk '$(OTHERS)' .venv/fresh/run.txt) > requirements.txt
	(echo "$(HEAD)" 'make test, beside requirements.txt'; \
	  awk '$(OTHERS)' .venv/fresh/all.txt | awk '$(NEW)' requirements.txt -) > requirements-dev.txt
	rm -rf .venv/fresh

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage mutants mutants.log
