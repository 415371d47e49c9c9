# All checks are defined here: `make check` runs them, `.ci/run` does so in a fresh environment.
BIN ?= .venv/bin/

.PHONY: check static format tests gallery scripts

check: static tests

static:
	$(BIN)ruff format --check
	$(BIN)ruff check
	$(BIN)mypy
	$(BIN)lint-imports --no-cache

tests:
	$(BIN)pytest

# Trains all of docs/what-trains.md; `tests` trains a quarter of it.
gallery:
	GALLERY=all $(BIN)pytest tests/engine/training/test_gallery.py

# Runs all of docs/recorded-scripts.md; `tests` runs some of it.
scripts:
	SCRIPTS=all $(BIN)pytest tests/end_to_end/test_scripts.py

format:
	$(BIN)ruff format
	$(BIN)ruff check --fix
