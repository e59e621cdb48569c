# Every target calls env, which does nothing when the environment is up to date.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.up-to-date
# For tests of pages, on machines that have no browser: a package of npm that ships Chromium.
CHROMIUM := @sparticuz/chromium@147.0.0
# For tests of deploy/, on machines that have them not: packages of Debian, unpacked and not installed.
PROGRAMS := prometheus prometheus-alertmanager nginx haproxy liblua5.3-0 libopentracing-c-wrapper0 libopentracing1

.PHONY: help env demo docs test lint types fast validity bench format clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 12

env: $(STAMP) ## create .venv with every extra

$(STAMP): pyproject.toml constraints.txt tests/serving/kserve.txt
	@test -n "$(PYTHON)" || { echo "No Python found; install Python 3.11 or newer, or say make PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "pacpredict needs Python 3.11 or newer; say make PYTHON=..."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,docs,heads,parquet,plot,postgres,ray,serve,skops,torch,xgboost]' --constraint constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement tests/serving/kserve.txt
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do command -v $$name > /dev/null && exit 0; done; \
	  npm install --silent --no-audit --no-fund --ignore-scripts --prefix $(VENV)/browser $(CHROMIUM) \
	  || echo "There is no browser and no npm to get one: tests of pages will be skipped (apt install chromium)"
	@( for name in promtool amtool nginx haproxy; do PATH="$$PATH:/usr/sbin" command -v $$name > /dev/null || exit 1; done ) \
	  || ( mkdir -p $(VENV)/programs && cd $(VENV)/programs && { test ! -w /var/lib/apt/lists || apt-get update --quiet=2; } \
	    && apt-get download --quiet=2 $(PROGRAMS) 2> /dev/null \
	    && for each in *.deb; do dpkg-deb --extract $$each . && rm $$each; done ) \
	  || echo "There is no apt-get that knows $(PROGRAMS): tests of deploy/ will be skipped"
	$(BIN)/pacpredict compile
	@touch $(STAMP)

demo: env ## the server at work, with its page and a client; Ctrl-C ends it
	$(BIN)/pacpredict demo

docs: env ## build the documentation as a site, with every link checked
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html; to search, serve it: $(BIN)/python -m http.server --directory site"

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
	rm -rf $(VENV) site .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests benchmarks examples -name __pycache__ -prune -exec rm -rf {} +
