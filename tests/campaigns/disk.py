"""Fills the disk of running engines at random moments, and compares their runs with undisturbed ones; for root.

A seed tries one run of each case. It fails if a step or a loss differs, if the run does not end as it should, or if a
full disk was not told.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from accel_engine import run
from accel_engine.events import Outcome, RunEnded
from accel_engine.plan import Plan
from accel_engine.process.engine_process import start_engine
from accel_engine.run import RunReader, Status, send_command
from accel_engine.run.directory.disk_problem import DiskProblem
from accel_engine.run.directory.run_paths import CHECKPOINTS, MODEL
from campaigns import totals
from campaigns.totals import Total
from full_disk import filled, small_disk

CAMPAIGN = "disk"
MEGABYTES = 24
TIMEOUT = 180.0

PLAN = Plan(model="mlp", epochs=600, batch_size=64, seed=3, xla="off", micro_batches=1, tensorboard="on")
"""Some 14,000 steps with a validation in each epoch, and as many checkpoints as time allows."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What an engine left: its status, and the losses and steps that it wrote."""

    status: Status
    losses: np.ndarray
    end: RunEnded | None


def main() -> int:
    """Try seeds until the time is over; the exit status is 1 if a try failed."""
    parser = argparse.ArgumentParser(description="Fill the disks of running engines.")
    parser.add_argument("--seed", type=int, default=1, help="the first seed; those after it follow")
    parser.add_argument("--fills", type=int, default=30, help="how often a disk is filled in a run (default: 30)")
    parser.add_argument("--minutes", type=float, default=5, help="begin no seed after this time (default: 5)")
    arguments = parser.parse_args()
    if os.geteuid():
        parser.error("only root can mount small disks")
    end = time.monotonic() + 60 * arguments.minutes
    seed, failures = arguments.seed, 0
    with tempfile.TemporaryDirectory() as folder, small_disk(Path(folder) / "disk", MEGABYTES) as disk:
        os.environ["ACCEL_TUI_HOME"] = str(disk / "home")
        os.environ["ACCEL_TUI_SETTINGS"] = os.devnull
        directory = run.create(PLAN)
        start_engine(directory).wait()
        undisturbed = _ended(directory)
        while seed == arguments.seed or time.monotonic() < end:
            for total in _try(seed, arguments.fills, disk, undisturbed):
                totals.add(CAMPAIGN, total)
                failures += total.failures
            seed += 1
    print(totals.summary(CAMPAIGN))
    return int(failures > 0)


def _try(seed: int, fills: int, disk: Path, undisturbed: Ended) -> Iterator[Total]:
    """One run of each case."""
    generator = random.Random(seed)
    for case, tries, attempt in (
        ("full and free again", fills, _fill_often),
        ("full, then stopped", 1, _stop_while_full),
        ("full at the end", 1, _fill_until_the_end),
    ):
        directory = run.create(PLAN)
        engine = start_engine(directory)
        problem = attempt(generator, tries, disk, directory, engine) or _difference(_ended(directory), undisturbed)
        if engine.poll() is None:
            engine.kill()
            engine.wait()
        if problem:
            print(f"seed {seed}: {case}: {problem}", file=sys.stderr)
        yield Total(case, seed, tries, int(bool(problem)), datetime.now(UTC).date().isoformat())


def _fill_often(
    generator: random.Random, fills: int, disk: Path, directory: Path, engine: "subprocess.Popen[str]"
) -> str:
    """Fill the disk at random moments, most times until the engine waits, and first while it starts."""
    waits = 0
    time.sleep(generator.uniform(0.0, 4.0))
    with filled(disk):  # while the engine starts
        time.sleep(generator.uniform(0.0, 8.0))
    if not _wait(lambda: _ended(directory).losses.size or engine.poll() is not None):
        return "no training"
    for _ in range(fills - 1):
        time.sleep(generator.uniform(0.0, 0.4))
        if engine.poll() is not None:
            break
        with filled(disk, generator.choice((0, 0, 1 << 12, 1 << 15, 1 << 18))):
            if generator.random() < 0.7:
                if not _wait(lambda: _waiting(directory) or engine.poll() is not None):
                    return "a full disk was not told"
                waits += _waiting(directory) is DiskProblem.FULL
            time.sleep(generator.uniform(0.0, 0.5))
    engine.wait(TIMEOUT)
    return "" if waits else "the engine never waited"


def _stop_while_full(
    generator: random.Random, _: int, disk: Path, directory: Path, engine: "subprocess.Popen[str]"
) -> str:
    """Stop a run that waits, in one of the ways."""
    if not _wait(lambda: _ended(directory).losses.size > generator.randrange(1, 6000)):
        return "no training"
    with filled(disk):
        if not _wait(lambda: _waiting(directory)):
            return "a full disk was not told"
        if generator.random() < 0.5:
            send_command(directory, generator.choice(("stop", "stop_now")))
        else:
            engine.send_signal(generator.choice((2, 15)))
        engine.wait(TIMEOUT)
    return "" if _ended(directory).status is Status.STOPPED else f"it is {_ended(directory).status}"


def _fill_until_the_end(
    generator: random.Random, _: int, disk: Path, directory: Path, engine: "subprocess.Popen[str]"
) -> str:
    """Fill the disk near the end, free it some time later."""
    if not _wait(lambda: _ended(directory).losses.size > 12_000):
        return "no training"
    with filled(disk, generator.choice((0, 1 << 16, 1 << 18, 1 << 20))):
        time.sleep(generator.uniform(2.0, 8.0))
    engine.wait(TIMEOUT)
    return ""


def _difference(ended: Ended, undisturbed: Ended) -> str:
    """How a run differs from the undisturbed one, as far as it came."""
    if ended.end is None or ended.end.steps != ended.losses.size:
        return f"{ended.losses.size} steps, and the end is {ended.end}"
    if ended.end.outcome is Outcome.FINISHED and ended.losses.size != undisturbed.losses.size:
        return f"{ended.losses.size} steps of {undisturbed.losses.size}"
    if ended.end.outcome is Outcome.FAILED:
        return ended.end.reason
    same = np.array_equal(ended.losses, undisturbed.losses[: ended.losses.size])
    return "" if same else "losses differ"


def _ended(directory: Path) -> Ended:
    with closing(RunReader(directory)) as reader:
        update, status = reader.poll(), reader.info().status
    losses = np.concatenate([chunk.series["loss"] for chunk in update.chunks] or [np.empty(0)])
    finished = status is not Status.FINISHED or (directory / MODEL).is_file()
    whole = not list((directory / CHECKPOINTS).glob("*_temp"))
    last = update.events[-1] if update.events else None
    return Ended(status, losses, last if isinstance(last, RunEnded) and finished and whole else None)


def _waiting(directory: Path) -> DiskProblem | None:
    with closing(RunReader(directory)) as reader:
        return reader.info().waiting


def _wait(condition: Callable[[], object]) -> bool:
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


if __name__ == "__main__":
    sys.exit(main())
