# Two commands do everything on a machine that has only Python 3.11 or newer: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
# One stamp per state of the dependencies: a finished set-up is not repeated, a half-made one is made anew.
KEY := $(shell cat pyproject.toml constraints.txt hashes.txt hashes-dev.txt | cksum | cut -d' ' -f1)
INSTALLED := .venv/installed-$(KEY)
INSTALLED_DEV := .venv/installed-dev-$(KEY)
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check
# A package is installed only from a wheel whose SHA-256 hash is in the file: tools that build others would come unverified.
INSTALL_VERIFIED := $(INSTALL) --require-hashes --no-deps --only-binary :all: --requirement
# The checkout itself, from what is installed: with --no-index nothing unverified is fetched for it.
INSTALL_CHECKOUT := $(INSTALL) --no-index --no-build-isolation --editable
INSTALLED_LOWEST := .venv-lowest/installed-$(shell cat pyproject.toml lowest.txt | cksum | cut -d' ' -f1)
INSTALLED_SITE := .venv-site/installed-$(shell cat pyproject.toml constraints.txt | cksum | cut -d' ' -f1)
INSTALLED_TRITON := .venv-triton/installed-$(shell cat pyproject.toml constraints.txt | cksum | cut -d' ' -f1)
INSTALLED_RAY := .venv-ray/installed-$(shell cat pyproject.toml constraints.txt | cksum | cut -d' ' -f1)
INSTALLED_TRACKERS := .venv-trackers/installed-$(shell cat pyproject.toml constraints.txt | cksum | cut -d' ' -f1)
INSTALLED_NOTEBOOK := .venv-notebook/installed-$(shell cat pyproject.toml constraints.txt | cksum | cut -d' ' -f1)
# Tests run in parallel workers with one torch thread each. Byte code is kept, also where the environment forbids it: each
# worker would rewrite the assertions of all files anew, and each of the processes that tests start would compile recurra.
TEST_ENV := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=
WORKERS ?= 2
# The browser in which the page is tried; the variable CHROMIUM of the environment names another.
CHROMIUM_FOUND := command -v "$$CHROMIUM" || command -v chromium || command -v chromium-browser || command -v google-chrome

.PHONY: demo test page-test lint bench slow-test triton-test gpu-test ray-test trackers-test notebook-test lowest-test journeys docs site \
  hashes wheels release-check tag clean

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
# Tests that measure times run after the others, one at a time.
slow-test: $(INSTALLED_DEV)
	$(TEST_ENV) HYPOTHESIS_PROFILE=slow $(BIN)/pytest -n $(WORKERS) --durations 10 -m "(slow or hypothesis) and not alone"
	$(TEST_ENV) $(BIN)/pytest -m alone

# Generated Triton, run on the CPU by Triton's interpreter, which works with numpy below 2.3: an environment of its own.
triton-test: $(INSTALLED_TRITON)
	$(TEST_ENV) TRITON_INTERPRET=1 .venv-triton/bin/pytest -n $(WORKERS) --timeout 120 --durations 10 \
	  tests/engines/test_graph_interpreted.py tests/engines/test_scan_interpreted.py tests/engines/test_newton_interpreted.py \
	  tests/engines/test_triton_source.py tests/products/test_cross_entropy.py \
	  tests/search/test_triton_kernels.py tests/models/test_searching_by_kernels.py \
	  tests/wirings/test_fused_interpreted.py tests/wirings/test_advancing_interpreted.py

# The program for a cluster on a local Ray of two cores, in an environment of its own: Ray brings much with it.
ray-test: $(INSTALLED_RAY)
	.venv-ray/bin/python -c 'import ray.data'
	$(TEST_ENV) .venv-ray/bin/pytest --timeout 600 --durations 5 tests/test_ray.py

# MLflow and Weights & Biases without a network, in an environment of their own.
trackers-test: $(INSTALLED_TRACKERS)
	.venv-trackers/bin/python -c 'import mlflow, wandb'
	$(TEST_ENV) .venv-trackers/bin/pytest --timeout 300 --durations 5 tests/training/test_notebook.py -k 'mlflow or wandb'

# Pages of the documentation as notebooks, from start to end in a kernel of Jupyter, in an environment of their own.
notebook-test: $(INSTALLED_NOTEBOOK)
	.venv-notebook/bin/python -c 'import ipykernel, narwhals, nbclient, pandas, sklearn'
	$(TEST_ENV) .venv-notebook/bin/pytest --timeout 600 --durations 5 tests/test_site.py -k 'notebook_of_a_page'

# Every test that needs a GPU, and those of what runs on one: in one call, for a GPU costs by the minute. An environment that
# has torch already is used by GPU_PYTHON=python, with pytest, pytest-xdist, pytest-timeout and hypothesis in it. The path of
# the sources is absolute, since some tests start processes in other folders.
GPU_PYTHON ?= $(BIN)/python
GPU_TESTS := tests/engines/test_on_gpu.py tests/wirings/test_fused_on_gpu.py tests/training/test_replaying_on_gpu.py \
  tests/reports/test_speed_on_gpu.py tests/test_training_on_gpu.py tests/training/test_waiting.py tests/engines/test_precision.py \
  tests/heads/test_contract.py tests/search/test_beam.py tests/search/test_triton_kernels.py tests/models/test_searching_on_device.py \
  tests/models/test_searching_by_kernels.py tests/models/test_ctc.py tests/products/test_cross_entropy.py \
  tests/generation/test_continuing.py tests/tasks/test_every_task_on_gpu.py tests/stacks/test_recurrent.py tests/training/test_processes.py
ifeq ($(GPU_PYTHON),$(BIN)/python)
gpu-test: $(INSTALLED_DEV)
endif
gpu-test:
	$(TEST_ENV) PYTHONPATH=$(CURDIR)/src $(GPU_PYTHON) -m pytest -n $(WORKERS) --timeout 300 --durations 20 $(GPU_TESTS)

# The tests with the lowest versions of all dependencies, in an environment of their own; the linters need later ones.
lowest-test: $(INSTALLED_LOWEST)
	$(TEST_ENV) .venv-lowest/bin/pytest -n $(WORKERS) --timeout 120 --durations 10 -m "not slow"

# Seven newcomers, each with the commands they would type; `python benchmarks/journeys.py --source DIR` tries another checkout.
journeys: $(INSTALLED)
	$(BIN)/python benchmarks/journeys.py

docs: $(INSTALLED)
	$(BIN)/python docs/draw.py
	$(BIN)/python docs/draw_unrolled.py
	$(BIN)/python docs/draw_gradients.py
	$(BIN)/python docs/write_settings.py

# The documentation as a site, in an environment of its own: site/index.html opens from disk.
site: $(INSTALLED_SITE)
	.venv-site/bin/python docs/site.py

# The two distributions as they are released, in dist/: the wheels are built from the source distribution.
wheels: $(INSTALLED)
	rm -rf dist
	$(BIN)/python -m hatchling build -t sdist -d dist
	$(BIN)/pip --disable-pip-version-check wheel --quiet --no-index --no-build-isolation --no-deps --wheel-dir dist dist/*.tar.gz ./run

# What users would get: built, looked into, and installed in clean environments, with every extra in one of them.
release-check: wheels
	$(PYTHON) tests/release_check.py dist

# The tag of a release, where the version, the changelog and the citation agree and nothing is uncommitted.
tag:
	$(PYTHON) tests/release_check.py --tag

# The hashes of all that `make` installs. Versions stay as hashes-dev.txt has them, except where constraints.txt or
# pyproject.toml ask for others; without that file, the newest are taken. uv lists the wheels of every platform; hatchling and
# editables build the checkout.
hashes:
	rm -rf .venv-hashes
	$(PYTHON) -m venv .venv-hashes
	.venv-hashes/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	$(call write_hashes,hashes-dev.txt,--extra dev,the tests and linters)
	$(call write_hashes,hashes.txt,--extra plot --extra serve,recurra itself)
	rm -rf .venv-hashes

# $(1): the file; $(2): the extras of pyproject.toml; $(3): what they are for.
define write_hashes
@echo "Writing $(1)"
@cat hashes-dev.txt 2> /dev/null | sed -n 's/^\([a-z].*==.*\) \\$$/\1/p' > .venv-hashes/found.txt
@printf 'hatchling\neditables\n' | .venv-hashes/bin/uv pip compile --quiet --no-cache --universal --python-version 3.11 \
  --generate-hashes --no-header --no-emit-index-url --constraint constraints.txt $(2) pyproject.toml - \
  --output-file .venv-hashes/found.txt
@{ echo "# What make installs for $(3). pip refuses a file whose SHA-256 hash is not here."; \
   echo "# The command \`make hashes\` writes this file from pyproject.toml and constraints.txt: change those, and run it."; \
   echo "# torch is not here: its builds, and so their hashes, differ by hardware (CPU, CUDA). constraints.txt pins its"; \
   echo "# version. CUDA's libraries and triton, which only its CUDA builds need, come with it."; \
   awk '/^[a-z]/ { kept = !/^(torch==|triton==|cuda-|nvidia-)/ } kept' .venv-hashes/found.txt; } > $(1)
endef

clean:
	rm -rf .venv .venv-lowest .venv-triton .venv-ray .venv-trackers .venv-notebook .venv-site .venv-hashes site

$(INSTALLED):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "recurra needs Python 3.11 or newer, but $(PYTHON) is $$($(PYTHON) --version). Set PYTHON=..."; exit 1; }
	rm -rf .venv
	$(PYTHON) -m venv .venv
	$(INSTALL_VERIFIED) hashes.txt
# No hash for torch: its builds differ by hardware (CPU, CUDA). It brings CUDA's libraries; what else it needs is in hashes.txt.
	$(INSTALL) --constraint constraints.txt torch
	$(INSTALL_CHECKOUT) '.[plot,serve]'
	touch $@

$(INSTALLED_DEV): $(INSTALLED)
	$(INSTALL_VERIFIED) hashes-dev.txt
	$(INSTALL_CHECKOUT) '.[dev]'
	touch $@

$(INSTALLED_LOWEST):
	rm -rf .venv-lowest
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/pip install --quiet --disable-pip-version-check --constraint lowest.txt \
	  --editable '.[serve,onnx,metrics,data,image,plot,tensorboard]' pytest pytest-xdist pytest-timeout hypothesis playwright
	touch $@

$(INSTALLED_SITE):
	rm -rf .venv-site
	$(PYTHON) -m venv .venv-site
	.venv-site/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	.venv-site/bin/pip install --quiet --disable-pip-version-check --editable '.[serve,sklearn]' 'mkdocs-material==9.8.*'
	touch $@

$(INSTALLED_TRITON):
	rm -rf .venv-triton
	$(PYTHON) -m venv .venv-triton
	.venv-triton/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	.venv-triton/bin/pip install --quiet --disable-pip-version-check \
	  'triton==3.6.*' 'numpy<2.3' pytest pytest-xdist pytest-timeout hypothesis --editable .
	touch $@

$(INSTALLED_RAY):
	rm -rf .venv-ray
	$(PYTHON) -m venv .venv-ray
	.venv-ray/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	.venv-ray/bin/pip install --quiet --disable-pip-version-check \
	  'ray[data]==2.60.*' pytest pytest-timeout hypothesis --editable '.[data]'
	touch $@

$(INSTALLED_TRACKERS):
	rm -rf .venv-trackers
	$(PYTHON) -m venv .venv-trackers
	.venv-trackers/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	.venv-trackers/bin/pip install --quiet --disable-pip-version-check \
	  pytest pytest-timeout hypothesis --editable '.[mlflow,wandb]'
	touch $@

$(INSTALLED_NOTEBOOK):
	rm -rf .venv-notebook
	$(PYTHON) -m venv .venv-notebook
	.venv-notebook/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	.venv-notebook/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt \
	  nbclient ipykernel pandas pytest pytest-timeout hypothesis --editable '.[plot,serve,frames,sklearn]'
	touch $@
