# `make demo` and `make test` need only python3 (3.11+), make and a package registry.
# `make demo TORCH=cpu` takes torch without libraries for a GPU from PyTorch's own index.
# `make demo HASHES=no` installs packages by version alone, from an index with builds of its own.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(PYTHON) tools/install.py $(VENV)
OPTIONS := $(if $(TORCH),--torch $(TORCH)) $(if $(filter no,$(HASHES)),--no-hashes)

.PHONY: demo test test-all lint site clean

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

# The documentation, in site/: open site/index.html. Broken links and references are errors.
site: $(VENV)/installed-dev
	$(BIN)/python -m mkdocs build --strict --quiet

# Installed once; again when what is to be installed changes.
$(VENV)/installed: pyproject.toml constraints.txt
	@$(INSTALL) '.[train,heic]' $(OPTIONS)
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed
	@$(INSTALL) '.[dev]' $(OPTIONS)
	@touch $@

clean:
	rm -rf $(VENV) demo site
