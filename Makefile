# `make demo` and `make test` need only python3 (3.11+), make and a package registry.
# `make demo TORCH=cpu` takes torch without libraries for a GPU from PyTorch's own index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(PYTHON) tools/install.py $(VENV)
TORCH_OPTION := $(if $(TORCH),--torch $(TORCH))

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
	@$(INSTALL) '.[train,heic]' $(TORCH_OPTION)
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed
	@$(INSTALL) '.[dev]' $(TORCH_OPTION)
	@touch $@

clean:
	rm -rf $(VENV) demo site
