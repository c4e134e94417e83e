# Everything here works on a machine that has only Python (>= 3.11) and make.
PYTHON  ?= python3
VENV    ?= .venv
BIN     := $(VENV)/bin
STAMP   := $(VENV)/.installed
RUNTIME := $(VENV)/.runtime
RAY     := $(VENV)/.ray
LOWEST  := .venv-lowest

.DEFAULT_GOAL := help
.PHONY: help up test test-coverage test-slow test-ui test-lowest controlplane test-cluster test-cluster-versions conformance bench check lint types layers format lock clean

help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-21s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# What `make up` needs is a part of what the tests need, and there in a few seconds: uv does it when the machine has
# it, pip otherwise. Both read the same hashed lock files: requirements.lock is what the container image holds,
# requirements-up.lock has the packages of the extras `up`, `sim` and `ui` besides, requirements-dev.lock those for development too.
UV      := $(shell command -v uv 2> /dev/null)
CREATE  := $(if $(UV),$(UV) venv --quiet --seed --allow-existing --python $(PYTHON),$(PYTHON) -m venv)
INSTALL := $(if $(UV),$(UV) pip install --quiet --python $(BIN)/python,$(BIN)/python -m pip install --quiet)

$(RUNTIME): requirements-up.lock requirements-build.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Moorage needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; set PYTHON=") if sys.version_info < (3, 11) else None'
	$(CREATE) $(VENV)
	$(INSTALL) --require-hashes -r requirements-up.lock -r requirements-build.lock
	$(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(STAMP): $(RUNTIME) requirements-dev.lock
	$(INSTALL) --require-hashes -r requirements-dev.lock
	@touch $@

# Ray is large, and only one slow test needs it.
$(RAY): $(STAMP) requirements-ray.lock
	$(INSTALL) --require-hashes -r requirements-ray.lock
	@touch $@

up: $(RUNTIME) ## Create the environment, install, and start a cluster on this machine (Ctrl-C stops it)
	$(BIN)/moorage up

test: $(STAMP) ## Create the environment and run all tests that need nothing outside
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m "not slow and not cluster"

test-coverage: $(STAMP) ## The same tests with coverage, per package; fails below the floor of tools/coverage_by_package.py
	rm -rf $(VENV)/coverage && mkdir -p $(VENV)/coverage
	$(BIN)/coverage run -m pytest -q -n auto --dist worksteal -m "not slow and not cluster"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage json --quiet -o $(VENV)/coverage/report.json
	$(BIN)/python tools/coverage_by_package.py $(VENV)/coverage/report.json

test-slow: $(RAY) ## Run the slower tests (long property runs, package installs)
	$(BIN)/python -m pytest -q -n auto --dist loadfile -m "slow and not cluster and not ui"

test-ui: $(STAMP) ## Drive the pages of `moorage ui` in Chromium; without one (apt-get install chromium) they are skipped
	$(BIN)/python -m pytest -q -m ui tests/web/browser

# A second environment with the lowest versions of the direct dependencies that pyproject.toml allows. The extra `ui` is
# left out: NiceGUI needs a newer Starlette than the lowest. Deprecation warnings of the old versions do not fail a test.
LOWEST_TOOLS := pytest pytest-xdist hypothesis hatchling editables
LOWEST_TESTS := tests/api tests/cli tests/client tests/config tests/embedded/apiserver tests/embedded/catalog \
  tests/endpoints tests/extender tests/serving tests/snapshots tests/store tests/telemetry tests/web/sources \
  tests/web/test_guard.py

$(LOWEST)/.installed: pyproject.toml tools/lowest_versions.py
	$(CREATE) $(LOWEST)
	$(PYTHON) tools/lowest_versions.py up sim parquet otel > $(LOWEST)/lowest.txt
	$(subst $(BIN),$(LOWEST)/bin,$(INSTALL)) -r $(LOWEST)/lowest.txt $(LOWEST_TOOLS)
	$(subst $(BIN),$(LOWEST)/bin,$(INSTALL)) --no-deps --no-build-isolation -e .
	@touch $@

test-lowest: $(LOWEST)/.installed ## Run fast tests with the lowest versions of the dependencies
	$(LOWEST)/bin/python -m pytest -q -n auto --dist worksteal -W default::DeprecationWarning -p no:cacheprovider \
	  -m "not slow and not cluster and not ui" $(LOWEST_TESTS)

controlplane: ## Build a real control plane (Go; minutes the first time)
	@tools/controlplane/build > /dev/null || test $$? -eq 3

test-cluster: $(STAMP) controlplane ## Run the tests that need a real control plane
	$(BIN)/python -m pytest -q -m "cluster and not versions" tests/cluster tests/kubectl

test-cluster-versions: $(STAMP) ## Run against older API servers, and compare with an older kube-scheduler (builds them first)
	$(BIN)/python -m pytest -q -m versions tests/cluster

# The families of plugins.jsonl.gz whose plugins are in moorage.contrib.
PLUGIN_FAMILIES := allocatable|podstate|qos|load-target|load-variation|load-overcommit|load-power|gang|quota|toleration|syscalls|network|topological|numa-leastallocated|numa-mostallocated|numa-balancedallocation|numa-leastnumanodes

# Recorded answers of kube-scheduler: version and set.
RECORDED := 1.37:small-1.37 1.37:large-1.37 1.37:more-1.37 \
  1.36:small 1.36:large 1.36:small-1.36-new 1.36:large-1.36-new 1.36:more-1.36

conformance: $(STAMP) ## Compare with the answers of kube-scheduler and scheduler-plugins (needs ../shared/conformance)
	@test -d ../shared/conformance || { echo "skipped: there is no ../shared/conformance beside this checkout"; exit 0; }; \
	for answers in $(RECORDED); do \
	  version=$${answers%%:*}; set=$${answers#*:}; echo "kube-scheduler $$version, $$set:"; \
	  $(BIN)/moorage evaluate --emulated-version=$$version ../shared/conformance/$$set.jsonl.gz > $(VENV)/$$set.verdicts && \
	  $(BIN)/python ../shared/conformance/compare.py ../shared/conformance/$$set.jsonl.gz $(VENV)/$$set.verdicts || exit 1; \
	done; \
	gzip -dc ../shared/conformance/plugins.jsonl.gz | grep -E '"family":"($(PLUGIN_FAMILIES))"' > $(VENV)/plugins.jsonl && \
	$(BIN)/python -m tests.conformance.plugin_cases $(VENV)/plugins.jsonl > $(VENV)/plugins.verdicts && \
	$(BIN)/python ../shared/conformance/compare_plugins.py $(VENV)/plugins.jsonl $(VENV)/plugins.verdicts && \
	echo "upgrade preview:" && $(BIN)/python -m tests.conformance.upgrade_cases ../shared/conformance

bench: $(STAMP) ## Measure the engine on this machine, all workloads
	$(BIN)/moorage bench engine
	$(BIN)/moorage bench engine --workloads perf

# CI measures coverage while it tests: `make check TESTS=test-coverage`.
TESTS ?= test

check: lint types layers $(TESTS) ## Everything that must hold before a commit

lint: $(STAMP) ## Formatting and lint rules
	$(BIN)/ruff format --check src tests perf
	$(BIN)/ruff check src tests perf

types: $(STAMP) ## Static types, strict
	$(BIN)/mypy

layers: $(STAMP) ## The import contract between packages
	$(BIN)/lint-imports

format: $(STAMP) ## Rewrite files in the project's format
	$(BIN)/ruff format src tests perf
	$(BIN)/ruff check --fix src tests perf

lock: ## Resolve the dependencies anew into the hashed lock files
	$(BIN)/pip-compile --quiet --strip-extras --generate-hashes --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-header --output-file requirements.lock pyproject.toml
	$(BIN)/pip-compile --quiet --strip-extras --generate-hashes --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-header --extra up --extra sim --extra ui --output-file requirements-up.lock pyproject.toml
	$(BIN)/pip-compile --quiet --strip-extras --generate-hashes --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-header --only-build-deps --build-deps-for editable --output-file requirements-build.lock pyproject.toml
	$(BIN)/pip-compile --quiet --strip-extras --generate-hashes --allow-unsafe --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-header --extra up --extra sim --extra ui --extra otel --extra dask --extra parquet --extra dev --output-file requirements-dev.lock pyproject.toml
	$(BIN)/pip-compile --quiet --strip-extras --generate-hashes --allow-unsafe --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-header --extra ray --constraint requirements-dev.lock --output-file requirements-ray.lock pyproject.toml

clean: ## Remove the environments and caches
	rm -rf $(VENV) $(LOWEST) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist
