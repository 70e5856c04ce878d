# Two commands do everything on a machine that has only Python 3.11 or newer: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
# One stamp per state of the dependencies: a finished set-up is not repeated, a half-made one is made anew.
KEY := $(shell cat pyproject.toml constraints.txt | cksum | cut -d' ' -f1)
INSTALLED := .venv/installed-$(KEY)
INSTALLED_DEV := .venv/installed-dev-$(KEY)
# Tests run in parallel workers with one torch thread each.
TEST_ENV := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
WORKERS ?= 2

.PHONY: demo test lint bench slow-test docs clean

demo: $(INSTALLED)
	$(BIN)/recurra demo

test: lint
	$(TEST_ENV) $(BIN)/pytest -n $(WORKERS) --timeout 60 --durations 10 -m "not slow"

lint: $(INSTALLED_DEV)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(INSTALLED)
	$(BIN)/recurra bench

slow-test: $(INSTALLED_DEV)
	$(TEST_ENV) HYPOTHESIS_PROFILE=slow $(BIN)/pytest -n $(WORKERS) --durations 10

docs: $(INSTALLED)
	$(BIN)/python docs/draw.py
	$(BIN)/python docs/draw_unrolled.py
	$(BIN)/python docs/write_settings.py

clean:
	rm -rf .venv

$(INSTALLED):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "recurra needs Python 3.11 or newer, but $(PYTHON) is $$($(PYTHON) --version). Set PYTHON=..."; exit 1; }
	rm -rf .venv
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[plot]'
	touch $@

$(INSTALLED_DEV): $(INSTALLED)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@
