# `make demo` and `make test` need only python3 (3.11+), make and a package registry.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test test-all lint clean

demo: $(VENV)/installed
	@$(BIN)/python examples/demo.py

# One thread per test process: two that share the cores with each other are slower.
test: $(VENV)/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadgroup

# Also what trains models, kills processes or fetches packages (from npm, too).
test-all: $(VENV)/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadgroup -m ''

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Installed once; again when what is to be installed changes.
$(VENV)/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Sightline needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable '.[train]'
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(INSTALL) --editable '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) demo
