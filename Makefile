# make train          set up if needed, then learn Catch with V-trace in local processes
# make test           set up if needed, then the checks and the quick tests
# make quick-tests    these tests alone
# make test-all       the same, and the slow tests: whole runs, kills, the docs site
# make coverage       the tests of test-all, and how many lines they reach
# make test-scale     several hosts, made of network namespaces (root, iproute2)
# make test-learning  the long learning runs, and faults that the tests must notice
# make results-quick  repeat the results that take minutes, and play the trained agents
# make check          linter and types only
# make docs           the pages and the API reference as a web site, in site/
# make wheel          wheels of the whole, of actors alone and of Launchpad, and sdist, in dist/; SEED_ACME_REPOSITORY=https://... names their home
# make actor-python   another Python for environments, in .venv-actor (PYTHON=python3.12 EXTRAS=envpool)
# make football       Google Research Football from source, for actors, in .venv-football
# make peers          other libraries, to be measured beside ours, in .venv-peers (PYTHON=python3.11)
# make setup          make .venv (PYTHON=/path/to/python3.11 chooses the interpreter, 3.11 or 3.10; CUDA=1 adds
#                     CUDA for an NVIDIA GPU, also to a .venv that is there)
# make clean          remove caches and build products; .venv and runs stay

VENV   ?= .venv
STAMP  := $(VENV)/.installed
CONFIG ?= catch_vtrace
EXTRAS ?=
# Where `make actor-python` makes it.
ACTOR_VENV ?= .venv-actor
ARGS   ?=

# Not empty where a package is missing or has another version (0.3 s). A stamp alone would
# stand for what was installed once.
WRONG = $(shell $(VENV)/bin/python scripts/check_installed.py constraints.txt > /dev/null 2>&1 \
                || echo wrong)
# Not empty where CUDA is asked for and not there. A run on the CPU that came first has left a stamp.
LACKS_CUDA = $(if $(CUDA),$(shell $(VENV)/bin/python -c \
  "from importlib import metadata; metadata.version('nvidia-cudnn-cu12')" > /dev/null 2>&1 \
  || echo lacks))

# What Launchpad's wheel is made from.
LAUNCHPAD := scripts/launchpad_wheel.py $(shell find launchpad_wheel -name '*.py')

# Our own modules are read by thousands of processes; compiling them each time costs a tenth of a
# short run.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: train test quick-tests test-all coverage test-scale test-learning results-quick check docs wheel setup actor-python football peers clean \
        installed-anew

train: $(STAMP)
	@$(VENV)/bin/seed-acme train --config=$(CONFIG) $(ARGS)

BY_FILE  := --dist=loadfile --no-loadscope-reorder --max-worker-restart=1
WORKERS  ?= 3
PARALLEL := -n $(WORKERS) $(BY_FILE)

# Three processes on two cores, because tests wait for runs and time limits a quarter of the time
# (ARGS=-n0: none beside this one, as a debugger needs it). A file's tests are in one of them: they
# share runs that take long to make.
test: check quick-tests

quick-tests: $(STAMP)
	$(VENV)/bin/python -m pytest $(PARALLEL) $(ARGS)

# All at once, because many a file has quick and slow tests of the same run. The slow files come first
# (tests/conftest.py), and the quick ones fill up what they leave.
test-all: check
	$(VENV)/bin/python -m pytest $(PARALLEL) -m 'not learning and not scale' $(ARGS)

coverage: $(STAMP)
	$(VENV)/bin/python -m pytest $(PARALLEL) -m 'not learning and not scale' \
		--cov --cov-report=term $(ARGS)

test-scale: $(STAMP)
	$(VENV)/bin/python -m pytest $(PARALLEL) -m scale $(ARGS)

test-learning: $(STAMP)
	$(VENV)/bin/python -m pytest -m learning --timeout=3600 -o faulthandler_timeout=0 $(ARGS)

# Ten minutes; runs/results_quick keeps the new runs.
results-quick: $(STAMP)
	$(VENV)/bin/python scripts/results_quick.py

check: $(STAMP)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	MYPYPATH=launchpad_wheel $(VENV)/bin/mypy --namespace-packages --explicit-package-bases --package courier

# Dead links are errors. The variable silences the theme's red warning of MkDocs 2, which cannot come
# in: setup.py and constraints.txt hold MkDocs below 2.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/python -m mkdocs build --strict

# From a clean start: what an earlier build left would be packed too. The wheel is built from the
# sdist.
wheel: $(STAMP)
	rm -rf build dist *.egg-info
	$(VENV)/bin/python -m build --no-isolation
	rm -rf build
	SEED_ACME_DISTRIBUTION=actor $(VENV)/bin/python -m build --no-isolation --wheel
	$(VENV)/bin/python scripts/launchpad_wheel.py dist

setup: $(STAMP)

actor-python: $(STAMP)
	@$(VENV)/bin/seed-acme actor-env $(ACTOR_VENV) $(if $(PYTHON),--python=$(PYTHON)) $(if $(EXTRAS),--extras $(EXTRAS))

football: $(STAMP)
	@bash scripts/football.sh

# Its PYTHON is not that of the project, which needs none here.
peers:
	@$(if $(PYTHON),PYTHON=$(PYTHON)) bash scripts/peers/install.sh

# The stamp is newer than what decides the installation, and what is installed is that, so a
# second run installs nothing.
.SECONDEXPANSION:
$(STAMP): setup.py pyproject.toml constraints.txt $(LAUNCHPAD) $$(if $$(WRONG)$$(LACKS_CUDA),installed-anew)
	@$(if $(filter actor-python,$(MAKECMDGOALS)),env -u PYTHON) bash scripts/setup.sh $(VENV)
	@touch $@

installed-anew:

clean:
	rm -rf build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
