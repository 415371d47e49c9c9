"""Lets every file operation of a run's life fail once with every fault, and some of a whole engine with TensorFlow.

To repeat one try of a run's life: ``run_under_faults.try_fault(NUMBER, FAULT, waits=True)``. Those of the engine are
chosen by the seed.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from unittest import mock

from accel_engine.plan import Plan
from accel_engine.run import RunReader, Status, create
from accel_engine.run.runs.creation import reopen
from campaigns import totals
from campaigns.totals import Total
from failing_files import FAULTS, SHORT, missing_sqlite
from run_under_faults import try_fault

CAMPAIGN = "faults"

PLAN = Plan(model="mlp", epochs=3, batch_size=256, checkpoint_every="2 steps", validation="off", layer_kernels="off")
"""What the engine trains; 18 steps."""


def main() -> int:
    """Try all operations of a run's life, then some of an engine; the exit status is 1 if a run has lost something."""
    parser = argparse.ArgumentParser(description="Let every write fail once.")
    parser.add_argument("--seed", type=int, default=1, help="chooses operations of the engine (default: 1)")
    parser.add_argument("--engines", type=int, default=6, help="engines to start (default: 6)")
    parser.add_argument("--faults", nargs="*", default=[*FAULTS], choices=[*FAULTS], help="faults of a run's life")
    parser.add_argument("--every", type=int, default=1, help="try every n-th operation (default: 1, all)")
    arguments = parser.parse_args()
    if missing := missing_sqlite():
        print(f"only the operations of Python fail: {missing}")
    failures = 0
    for fault in arguments.faults:
        for waits in (True, False):
            failures += _whole_life(fault, arguments.every, waits=waits)
    failures += _engines(arguments.seed, arguments.engines)
    print(totals.summary(CAMPAIGN))
    return int(failures > 0)


def _whole_life(fault: str, every: int, *, waits: bool) -> int:
    """Let each operation of a run's life fail; returns how often the run lost something."""
    tries = failures = 0
    with _home():
        operations = try_fault(0, fault, waits=waits).operations
    for number, name in enumerate(operations, 1):
        if number % every or (fault == SHORT and "write" not in name):
            continue
        with _home():
            tries += 1
            failures += _failed(partial(try_fault, number, fault, waits=waits), f"{number} {name} {fault} {waits}")
    case = f"life of a run: {fault}, {'waits for the disk' if waits else 'ends with the error'}"
    _add(case, every, tries, failures)
    return failures


def _engines(seed: int, count: int) -> int:
    """Let operations of engines fail that train with TensorFlow; returns how many runs lost something."""
    chance, failures = random.Random(seed), 0
    with _home() as home:
        whole = create(PLAN)
        operations = _train(whole, 0, "ENOSPC", home)
        expected = _losses(whole)
        for _ in range(count):
            number, fault = chance.randint(1, operations), chance.choice([*FAULTS])
            check = partial(_try_engine, number, fault, home, expected)
            failures += _failed(check, f"engine: {number} {fault}")
    if count:
        _add("engine with TensorFlow", seed, count, failures)
    return failures


def _try_engine(number: int, fault: str, home: Path, expected: list[float]) -> None:
    directory = create(PLAN)
    _train(directory, number, fault, home)
    with closing(RunReader(directory)) as reader:
        info = reader.info()
    if info.status is not Status.FINISHED:  # as a user would continue it
        assert info.plan is not None
        if info.status is not Status.STARTING:
            reopen(directory, info.plan)
        _train(directory, 0, fault, home)
    assert _losses(directory) == expected


def _train(directory: Path, number: int, fault: str, home: Path) -> int:
    """Train a run in a process in which an operation fails; returns how many operations there were."""
    counts = home / "counts"
    command = [
        sys.executable,
        "-m",
        "campaigns.failing_engine",
        str(number),
        fault,
        str(counts),
        "--run",
        str(directory),
    ]
    subprocess.run(command, check=False, timeout=600)
    return int(counts.read_text())


def _losses(directory: Path) -> list[float]:
    """The loss of each step."""
    with closing(RunReader(directory)) as reader:
        assert reader.info().status is Status.FINISHED
        chunks = reader.poll().chunks
    by_step: dict[int, float] = {}
    for chunk in chunks:
        by_step |= dict(enumerate(chunk.series["loss"].tolist(), chunk.first_step))
    return [loss for _, loss in sorted(by_step.items())]


def _failed(check: Callable[[], object], title: str) -> bool:
    """Call a check; prints the traceback if it fails."""
    try:
        check()
    except Exception:  # noqa: BLE001 - all are counted
        print(f"{title}:")
        traceback.print_exc()
        return True
    return False


def _add(case: str, seed: int, tries: int, failures: int) -> None:
    totals.add(CAMPAIGN, Total(case, seed, tries, failures, datetime.now(UTC).date().isoformat()))


@contextmanager
def _home() -> Iterator[Path]:
    """A home directory, in memory where the system has one."""
    memory = "/dev/shm"
    place = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as home, mock.patch.dict(os.environ, ACCEL_TUI_HOME=home):
        yield Path(home)


if __name__ == "__main__":
    began = time.monotonic()
    status = main()
    print(f"{time.monotonic() - began:.0f} s")
    sys.exit(status)
