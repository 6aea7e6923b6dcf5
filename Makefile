# `make repro` and `make test` work on a fresh clone with Python 3.11 and git; everything goes into .venv.
PYTHON ?= python3.11
VENV ?= .venv
BIN := $(abspath $(VENV))/bin
export PATH := $(BIN):$(PATH)
export PYTHONPATH := $(abspath src):$(CURDIR)
# Python compiles what it imports, a fraction of what is installed; it must be allowed to keep that.
export PYTHONDONTWRITEBYTECODE :=
# uv takes less than half of pip's processor time. It asks the index that pip is set to, and trusts what the system trusts.
UV := env UV_SYSTEM_CERTS=1 $$("$(BIN)/pip" config list | sed -n "s/^[^=]*[.:]index-url='\(.*\)'/UV_DEFAULT_INDEX=\1/p" | head -1) \
  "$(BIN)/uv" pip install --quiet --python "$(BIN)/python"
LOCKED := $(UV) --no-deps --require-hashes -r
# Which build of torch: PyPI's for CUDA 13 (cuda), by default with an NVIDIA driver; the CPU's, a tenth in size (cpu); or,
# without a hash, another one of torch's own index, such as cu126.
TORCH_BACKEND ?= $(if $(shell command -v nvidia-smi),cuda,cpu)

.PHONY: help install unlock repro test test-changed test-all docs bench bench-scale faults lint audit sbom clean

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

$(VENV)/bin/uv:
	$(PYTHON) -m venv $(VENV)
	"$(BIN)/pip" install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements/installer.lock

CPU := --no-deps --require-hashes -r requirements/torch-cpu.lock
TORCH_cuda := $(LOCKED) requirements/torch.lock --reinstall-package torch
# Not every network lets torch's own index through; pip may know of another place. PyPI's build brings CUDA, 4.5 GB.
TORCH_cpu := UV_HTTP_RETRIES=1 $(UV) --torch-backend cpu --reinstall-package torch $(CPU) || "$(BIN)/pip" install --quiet --force-reinstall $(CPU) || \
  { echo "torch's build for CPUs could not be installed (see above); PyPI's follows" >&2; $(TORCH_cuda); }
TORCH_other := $(UV) -c constraints.txt --torch-backend $(TORCH_BACKEND) --reinstall-package torch $$(grep '^torch==' requirements.txt)

$(VENV)/.torch-$(TORCH_BACKEND): requirements/torch.lock requirements/torch-cpu.lock | $(VENV)/bin/uv
	rm -f $(VENV)/.torch-*
	$(or $(TORCH_$(TORCH_BACKEND)),$(TORCH_other))
	touch $@

$(VENV)/.installed: requirements/product.lock pyproject.toml $(VENV)/.torch-$(TORCH_BACKEND)
	$(LOCKED) requirements/product.lock
	$(UV) --no-deps --no-build-isolation -e .
	touch $@

$(VENV)/.installed-%: requirements/%.lock
	$(LOCKED) $<
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
$(VENV)/.installed-docs: $(VENV)/.installed-test
$(VENV)/.installed-audit: $(VENV)/.installed-docs

install: $(VENV)/.installed  ## set up .venv with the product's packages

unlock:  ## remove the lock file of DVC that a kill left empty, with which no command of DVC runs
	@if [ -d .dvc/tmp ]; then find .dvc/tmp -maxdepth 1 -name rwlock -size 0 -mmin +0.05 -print -delete; fi

repro: $(VENV)/.installed unlock  ## run the pipeline of params.yaml and print the headline
	python -m eadpr repro

test: $(VENV)/.installed-test  ## run the tests of the core
	python -m tests.suite core

test-changed: $(VENV)/.installed-test  ## run the tests of the wings that changed since these last passed
	python -m tests.suite changed

test-all: $(VENV)/.installed-test  ## run all tests, those of the night too
	python -m tests.suite all

docs: $(VENV)/.installed-docs  ## build the site into site/html; a dead link fails
	python -m docs
	zensical build --strict --clean

bench: $(VENV)/.installed-test  ## measure against what people would use instead, into docs/benchmarks.md
	python -m benchmarks

bench-scale: $(VENV)/.installed-test  ## measure how time and memory grow with the collection, into docs/scale.md
	python -m benchmarks.scale

faults: $(VENV)/.installed-test  ## do to the pipeline what goes wrong around it, into docs/faults.md
	python -m benchmarks.faults

lint: $(VENV)/.installed-test  ## ruff, types of what others call, unsafe calls and workflows, the spelling of code and pages
	ruff check .
	ruff format --check .
	mypy
	bandit --quiet --recursive src stages --configfile pyproject.toml
	zizmor --quiet --offline --no-progress .github/workflows
	codespell --skip '*.toml,*.zlib' --ignore-words-list nd,thur,whats README.md docs src stages

audit: $(VENV)/.installed-audit  ## look for known holes in every pinned package; needs the network
	pip-audit --strict --disable-pip --no-deps --progress-spinner off -r constraints.txt \
	  $$(sed -n 's/^\([A-Z]*-[^ ]*\).*/--ignore-vuln \1/p' requirements/accepted-holes.txt)

sbom: $(VENV)/.installed-audit  ## write eadpr.cdx.json, the bill of materials of all that is installed
	cyclonedx-py environment --output-reproducible --output-file eadpr.cdx.json "$(BIN)/python"
	python requirements/java_libraries.py eadpr.cdx.json

clean:  ## remove work kept between runs (never results, nor what language models answered)
	[ ! -d .cache ] || find .cache -mindepth 2 -maxdepth 2 ! -name endpoint -exec rm -rf {} +
