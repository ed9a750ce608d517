# Everything a person does here, by name. `make` alone lists it.

SHELL := /bin/bash
VENV := .venv
PYTHON := $(VENV)/bin/python
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo serve test check docs

help: ## list what can be done
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

# Runs each candidate: a version manager's shim may exist and yet fail.
$(VENV)/bin/python:
	@for candidate in python3.13 python3.12 python3 python; do \
	    if $$candidate -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null; then \
	        echo "Making $(VENV)/ with $$($$candidate --version)." >&2; \
	        exec $$candidate -m venv $(VENV); \
	    fi; \
	done; \
	echo "Python 3.12 or newer is needed: install it from your system's packages or with a version manager such as pyenv or uv, then try again." >&2; \
	exit 1

$(VENV)/service.stamp: requirements/service.txt | $(VENV)/bin/python
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/service.txt
	@touch $@

$(VENV)/dev.stamp: requirements/dev.txt | $(VENV)/bin/python
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@touch $@ $(VENV)/service.stamp

setup: $(VENV)/service.stamp ## environment, database and migrations, so that every command works
	@$(PYTHON) manage.py migrate --verbosity 0
	@echo "Ready: .venv/bin/python manage.py help" >&2

demo: $(VENV)/service.stamp ## the whole life of one preference against the running service
	@$(PYTHON) manage.py demo

serve: setup ## the API, the admin and housekeeping on HOST and PORT
	@exec $(PYTHON) manage.py serve

test: $(VENV)/dev.stamp ## all tests; ARGS= goes to pytest
	$(PYTHON) -m pytest $(ARGS)

check: $(VENV)/dev.stamp ## format, lint, types, the order of the apps, migrations, deployment
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy .
	$(VENV)/bin/lint-imports
	$(PYTHON) manage.py makemigrations --check --dry-run
	SECRET_KEY=$$($(PYTHON) -c 'import secrets; print(secrets.token_urlsafe(64))') \
	    ALLOWED_HOSTS=consentful.example $(PYTHON) manage.py check --deploy --fail-level WARNING

docs: $(VENV)/dev.stamp ## the manual, into docs/_build/
	$(VENV)/bin/sphinx-build -W --keep-going -q -b html docs docs/_build
