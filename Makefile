# All checks are defined here: `make check` runs them, `.ci/run` does so in a fresh environment.
BIN ?= .venv/bin/

.PHONY: check static format tests

check: static tests

static:
	$(BIN)ruff format --check
	$(BIN)ruff check
	$(BIN)mypy
	$(BIN)lint-imports --no-cache

tests:
	$(BIN)pytest

format:
	$(BIN)ruff format
	$(BIN)ruff check --fix
