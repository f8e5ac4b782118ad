# make train          set up if needed, then learn Catch with V-trace in local processes
# make test           set up if needed, then the checks and the whole test suite
# make test-scale     several hosts, made of network namespaces (root, iproute2)
# make test-learning  the long learning runs
# make check          linter and types only
# make setup          make .venv (PYTHON=/path/to/python3.10 chooses the interpreter)
# make clean          remove caches and build products; .venv and runs stay

VENV   := .venv
STAMP  := $(VENV)/.installed
CONFIG ?= catch_vtrace
ARGS   ?=

.PHONY: train test test-scale test-learning check setup clean

train: $(STAMP)
	@$(VENV)/bin/seed-acme train --config=$(CONFIG) $(ARGS)

test: check
	$(VENV)/bin/python -m pytest $(ARGS)

test-scale: $(STAMP)
	$(VENV)/bin/python -m pytest -m scale --timeout=1800 $(ARGS)

test-learning: $(STAMP)
	$(VENV)/bin/python -m pytest -m learning --timeout=3600 $(ARGS)

check: $(STAMP)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy

setup: $(STAMP)

# The stamp is newer than what decides the installation, so a second run installs nothing.
$(STAMP): setup.py pyproject.toml constraints.txt
	@bash scripts/setup.sh $(VENV)
	@touch $@

clean:
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
