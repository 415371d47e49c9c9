# All checks are defined here: `make check` runs them, `.ci/run` does so in a fresh environment.
BIN ?= .venv/bin/

.PHONY: check static format tests campaign gallery scripts fuzz kills disk faults mutants container cluster

check: static tests

static:
	$(BIN)ruff format --check
	$(BIN)ruff check
	$(BIN)mypy
	$(BIN)lint-imports --no-cache

tests:
	$(BIN)pytest

# Runs what `tests` leaves out: tests marked `campaign`, and all tests and combinations of which it runs a share.
# For some: CAMPAIGN="tests/tui -k diagnostics".
campaign:
	$(BIN)pytest -m campaign $(CAMPAIGN)

# Trains all of docs/what-trains.md; `tests` trains a row in 24.
gallery:
	$(BIN)pytest -m "" tests/engine/training/test_gallery.py

# Runs all of docs/recorded-scripts.md; `tests` runs some of it.
scripts:
	SCRIPTS=all $(BIN)pytest tests/end_to_end/test_scripts.py

# Kills engines at random moments, and adds to the totals of tests/campaigns. With others: KILLS="--seed 7 --minutes 60".
kills:
	PYTHONPATH=tests $(BIN)python -m campaigns.kills $(KILLS)

# Tries many more examples of tests/fuzzing, and adds them to the totals. With others: FUZZ="--seed 7 --minutes 60".
fuzz:
	PYTHONPATH=tests $(BIN)python -m campaigns.fuzz $(FUZZ)

# Lets every write of a run fail once with every fault, and some of engines. For less: FAULTS="--every 10 --engines 2".
faults:
	PYTHONPATH=tests $(BIN)python -m campaigns.faults $(FAULTS)

# Puts small faults into modules, one at a time, and looks whether tests notice; needs the extra `mutants`.
# MUTANTS="store --seed 2 --sample 40" chooses the modules and how many faults of each.
mutants:
	PYTHONPATH=tests $(BIN)python -m campaigns.mutants $(MUTANTS)

# Fills the disk of running engines, as root, and adds to the totals. With others: DISK="--seed 7 --minutes 60".
disk:
	PYTHONPATH=tests $(BIN)python -m campaigns.disk $(DISK)

# Builds the container that `accel-tui deploy RUN --to` writes, and runs it, as root; see tests/campaigns/container.py.
# With other formats: CONTAINER="--formats onnx,tflite,savedmodel".
container:
	PYTHONPATH=tests $(BIN)python -m campaigns.container $(CONTAINER)

# Trains and reaches runs on two hosts of network namespaces with real sshd and Slurm, and Ray if it is installed, as root; it
# writes /etc/slurm/slurm.conf and two lines of /etc/hosts. For some: CLUSTER="-k slurm".
cluster:
	ACCEL_TUI_CLUSTER=1 $(BIN)pytest -n0 tests/cluster $(CLUSTER)

format:
	$(BIN)ruff format
	$(BIN)ruff check --fix
