# What the checks are, once: `make check` runs them all, `.ci/run` the same in a fresh environment.
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
