# Two commands do everything on a machine that has only Python 3.11 or newer: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
# One stamp per state of the dependencies: a finished set-up is not repeated, a half-made one is made anew.
KEY := $(shell cat pyproject.toml constraints.txt | cksum | cut -d' ' -f1)
INSTALLED := .venv/installed-$(KEY)
INSTALLED_DEV := .venv/installed-dev-$(KEY)
INSTALLED_LOWEST := .venv-lowest/installed-$(shell cat pyproject.toml lowest.txt | cksum | cut -d' ' -f1)
# Tests run in parallel workers with one torch thread each.
TEST_ENV := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
WORKERS ?= 2
# The browser in which the page is tried; the variable CHROMIUM of the environment names another.
CHROMIUM_FOUND := command -v "$$CHROMIUM" || command -v chromium || command -v chromium-browser || command -v google-chrome

.PHONY: demo test page-test lint bench slow-test lowest-test journeys docs clean

demo: $(INSTALLED)
	$(BIN)/recurra demo

test: lint
	$(TEST_ENV) $(BIN)/pytest -n $(WORKERS) --timeout 60 --durations 10 -m "not slow"
	@{ $(CHROMIUM_FOUND); } > /dev/null || \
	  echo "The page was not tried: there is no chromium here. As root on Debian, make page-test installs it."

page-test: $(INSTALLED_DEV)
	@{ $(CHROMIUM_FOUND); } > /dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null && echo "Installing chromium, once" && \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium > /dev/null; } || \
	  { echo "The page is tried in chromium, and there is none here: install it, or say where it is by CHROMIUM=..."; exit 1; }
	$(TEST_ENV) $(BIN)/pytest --timeout 60 --durations 5 tests/page

lint: $(INSTALLED_DEV)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(INSTALLED)
	$(BIN)/recurra bench

# What `make test` does not do: long tests, and properties with three times as many examples, which are new each time.
slow-test: $(INSTALLED_DEV)
	$(TEST_ENV) HYPOTHESIS_PROFILE=slow $(BIN)/pytest -n $(WORKERS) --durations 10 -m "slow or hypothesis"

# The tests with the lowest versions of all dependencies, in an environment of their own; the linters need later ones.
lowest-test: $(INSTALLED_LOWEST)
	$(TEST_ENV) .venv-lowest/bin/pytest -n $(WORKERS) --timeout 120 --durations 10 -m "not slow"

# Seven newcomers, each with the commands they would type; `python benchmarks/journeys.py --source DIR` tries another checkout.
journeys: $(INSTALLED)
	$(BIN)/python benchmarks/journeys.py

docs: $(INSTALLED)
	$(BIN)/python docs/draw.py
	$(BIN)/python docs/draw_unrolled.py
	$(BIN)/python docs/write_settings.py

clean:
	rm -rf .venv .venv-lowest

$(INSTALLED):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "recurra needs Python 3.11 or newer, but $(PYTHON) is $$($(PYTHON) --version). Set PYTHON=..."; exit 1; }
	rm -rf .venv
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[plot,serve]'
	touch $@

$(INSTALLED_DEV): $(INSTALLED)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

$(INSTALLED_LOWEST):
	rm -rf .venv-lowest
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/pip install --quiet --disable-pip-version-check --constraint lowest.txt \
	  --editable '.[serve,metrics,data,image,plot,tensorboard]' pytest pytest-xdist pytest-timeout hypothesis playwright
	touch $@
