# Every target does its own set-up; `make` alone prints this list.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# Without it each of the many processes that tests start would compile all of our sources again.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
SOURCES := $(wildcard service workstead tests migrations tools sandbox_images demo deploy)
FAST := $(wildcard tests/unit tests/contracts tests/api tests/architecture)
WAITING := $(wildcard tests/integration)
ENGINE := $(wildcard tests/docker tests/images)
WHOLE := $(wildcard tests/journeys tests/browser)
PYTEST := $(BIN)/python -m pytest
QUICK := not docker and not images and not slow and not load
PYTEST_FAST := $(PYTEST) -q -n 2 --dist loadfile $(FAST)
BESIDE_STATIC := bash tools/beside.sh '$(MAKE) --no-print-directory static'
# They wait for processes and databases more than they compute.
PYTEST_WAITING := $(PYTEST) -q -n 3 --dist loadfile $(WAITING)
PYTEST_WHOLE := $(PYTEST) -q -n 2 --dist loadfile $(WHOLE)

.PHONY: help setup engine browser postgres check static test test-all demo demo-desktop demo-papers serve bench mutants images record-fixtures compose schema lock faults clean

help: ## print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

setup: ## virtual environment and dependencies (quick when nothing is to do)
	@bash tools/setup.sh
	@bash tools/browser_code.sh

engine: setup ## a Docker engine, only where none answers
	@bash tools/engine.sh

browser: setup ## a Chromium for the browser tests, and the viewer of screens
	@bash tools/browser.sh
	@bash tools/browser_code.sh --need

static: setup ## ruff, types, import rules, generated files
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	@$(BIN)/basedpyright & types=$$!; failed=0; \
	  { $(BIN)/lint-imports && bash tools/check_schema.sh && $(BIN)/python tools/make_settings_table.py --check; } || failed=1; \
	  wait $$types || failed=1; exit $$failed

postgres: setup ## the distribution's PostgreSQL programs, for the test on the oldest supported version
	@bash tools/postgres.sh

check: setup ## static checks, and beside them the tests that need no engine and little time
	@$(BESIDE_STATIC) '$(PYTEST_FAST) -m "$(QUICK) and not longer"'

test: images browser postgres ## everything that CI runs: check, integration, docker, images, journeys, browser
	@$(BESIDE_STATIC) '$(PYTEST_FAST) -m "$(QUICK)"'
	@bash tools/beside.sh '$(PYTEST) -q -m "not slow and not load" $(ENGINE)' '$(PYTEST_WAITING) -m "not slow and not load"'
	$(PYTEST_WHOLE) -m "not slow and not load"

test-all: images browser postgres ## `test` and the slow and load series
	@$(BESIDE_STATIC) '$(PYTEST_FAST) -m "$(QUICK)"'
	$(PYTEST_WAITING)
	$(PYTEST) $(ENGINE)
	$(PYTEST_WHOLE)

demo: images ## start the service, run real tasks, print events, verdicts and deliverables
	$(BIN)/workstead demo

demo-desktop: images ## an agent works on a desktop, live in the browser
	$(BIN)/workstead demo-desktop

demo-papers: images ## each benchmark from its folder to its report (NAME=jobbench shows one)
	$(BIN)/python -m demo.benchmarks.papers $(NAME)

serve: images ## the whole service on this machine
	$(BIN)/workstead serve

bench: images ## benches of docs/benchmarks.md, one JSON line each (NAME=start runs one)
	$(BIN)/python -m tests.bench $(NAME)

mutants: images ## show that each check fails when what it checks is broken (PART=name runs one file)
	$(BIN)/python tools/mutants.py $(PART)

images: engine ## build the sandbox images that are missing (IMAGE=kits/gemini_cli only that one; ALL=1 those on demand, too)
	$(BIN)/python sandbox_images/build.py $(IMAGE) $(if $(ALL),--all)

record-fixtures: setup ## record anew what the real agent programs print (KIND=codex only that one); needs the kits
	$(BIN)/python sandbox_images/build.py $(if $(KIND),kits/$(KIND),--all)
	$(BIN)/python tools/record_fixtures.py $(KIND)

compose: images ## the service in containers, as compose.yaml says (ARGS=down stops it)
	@bash tools/compose.sh $(ARGS)

schema: setup ## write api_schema/ anew
	$(BIN)/python -m service openapi

lock: setup ## resolve requirements.lock and requirements-dev.lock anew
	@bash tools/lock.sh

faults: setup ## which faults of the catalogue have tests
	$(BIN)/python tools/faults.py

clean: ## remove what the tools made here (not images, not data)
	rm -rf .venv build .local *.egg-info .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
