# `make run` and `make test` need Python 3.11 or newer and make; they bring the rest into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help

help: ## Show what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

run: $(VENV)/run ## Start the server on the embedded tokenizer, and say what to try
	@$(BIN)/detok serve

demo: $(VENV)/run ## Stream the embedded sample, live in the terminal
	@$(BIN)/detok stream
	@$(BIN)/detok trace

test: lint types layers unit ## Everything that has to hold: style, types, layers, tests

lint: $(VENV)/test ## Style, and that the embedded tokenizer is what its script makes
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python scripts/train_embedded.py --check

types: $(VENV)/test ## mypy, strict, source and tests
	@$(BIN)/mypy

layers: $(VENV)/test ## A module imports only what stands below it
	@$(BIN)/lint-imports

unit: $(VENV)/test ## The tests alone
	@$(BIN)/python -m pytest -n auto --dist worksteal

heavy: $(VENV)/heavy ## What takes longer: whether mypyc accepts core, and tests/heavy
	@$(BIN)/python -m scripts.check_mypyc
	@$(BIN)/python -m pytest -n auto --dist worksteal tests/heavy || [ $$? -eq 5 ] # 5: there are none

lines: $(VENV)/test ## Code lines, functions, comments and Any, by layer
	@$(BIN)/python -m scripts.code_lines

coverage: $(VENV)/test ## The tests, and which lines none of them reaches
	@$(BIN)/python -m pytest -n auto --cov --cov-report=term-missing:skip-covered

fuzz: $(VENV)/test ## Every property with 2,000 examples, each time others (about an hour)
	@DETOK_FUZZ=2000 $(BIN)/python -m pytest -n auto tests/core/test_laws.py tests/turns/test_parsers.py

bench: $(VENV)/bench ## The speed of a step against every peer that is installed
	@$(BIN)/python -m bench.step

vocabularies: $(VENV)/test ## Fetch the real vocabularies that the tests use
	@$(BIN)/python -m scripts.fetch_vocabularies

clean: ## Remove the environment and all caches
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage*

# Each environment is marked by a file that is newer than what it was made from.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "detok needs Python 3.11 or newer; call: make PYTHON=python3.12 …" >&2; exit 1; }
	@echo "making $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@# Dependency groups need pip 25.1.
	@$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'

$(VENV)/run: pyproject.toml | $(VENV)/bin/python
	@echo "installing detok"
	@$(BIN)/python -m pip install --quiet --editable '.[cli,serve]'
	@touch $@

$(VENV)/test: pyproject.toml | $(VENV)/bin/python
	@echo "installing detok and what its tests need"
	@$(BIN)/python -m pip install --quiet --editable '.[cli,serve]' --group test --group lint
	@# trl brings chat templates that tests render; what it depends on (torch, gigabytes) is not needed for that.
	@$(BIN)/python -m pip install --quiet --no-deps 'trl>=1.16'
	@touch $@

$(VENV)/heavy: $(VENV)/test
	@echo "installing the clients that tests/heavy tries"
	@$(BIN)/python -m pip install --quiet --group clients
	@touch $@

$(VENV)/bench: pyproject.toml | $(VENV)/bin/python
	@echo "installing detok and its peers"
	@$(BIN)/python -m pip install --quiet --editable '.[bench]'
	@touch $@

.PHONY: help run demo test lint types layers unit heavy lines coverage fuzz bench vocabularies clean
