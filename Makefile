# The recipes of this project: `make` alone lists them.
# Programs run as modules of .venv/bin/python, since start scripts break in some folders' names.

.DEFAULT_GOAL := help
MANAGE := .venv/bin/python manage.py
RUN := .venv/bin/python -m
export PYTHON

.PHONY: help
help:  ## list these recipes
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1	\2/p' Makefile | expand -t 20

.PHONY: environment
environment:
	@sh requirements/install.sh dev

.PHONY: setup
setup:  ## build .venv, the database and its tables, so that every command works
	@sh requirements/install.sh service
	@$(MANAGE) migrate --verbosity 0

.PHONY: demo
demo: setup  ## show the whole life of one preference against the running service
	@$(MANAGE) demo

.PHONY: serve
serve: setup  ## serve the API and the admin on HOST and PORT (127.0.0.1, 8000)
	@exec $(MANAGE) serve

.PHONY: test
test: environment  ## run the tests; ARGS="-k name" picks some
	@$(RUN) pytest $(ARGS)

.PHONY: check
check: environment  ## formatting, lint, types, layers, migrations and deployment checks
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) mypy .
	.venv/bin/python -c "from importlinter.cli import lint_imports_command as lint; lint()" --no-logo
	$(MANAGE) makemigrations --check --dry-run
	SECRET_KEY="$$(.venv/bin/python -c 'import secrets; print(secrets.token_urlsafe(64))')" \
		ALLOWED_HOSTS=consentful.example $(MANAGE) check --deploy --fail-level WARNING

.PHONY: bench
bench:  ## measure speed as ratios to a floor, in fifteen minutes; ARGS="--json FILE" keeps them
	@sh requirements/install.sh bench .venv-bench
	@.venv-bench/bin/python -m benchmarks $(ARGS)

.PHONY: bench-quick
bench-quick:  ## the same in three minutes, more roughly
	@sh requirements/install.sh bench .venv-bench
	@.venv-bench/bin/python -m benchmarks --quick $(ARGS)

.PHONY: docs
docs: environment  ## build the manual into docs/_build/html
	$(RUN) sphinx -q -W --keep-going -b html docs docs/_build/html

.PHONY: requirements
requirements: environment  ## pin the newest requirements again
	$(RUN) nox -s requirements
