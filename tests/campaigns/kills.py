"""Kills engines at random moments, continues their runs and compares them: ``python -m campaigns.kills``.

A history is a run whose engine is killed up to four times, at its start, in a step or a validation, while it saves or
at its end, and that is continued each time. It must end as the run of the same plan that nothing disturbed, bit for
bit: see :mod:`campaigns.same_run`. The totals count a try for each kill, and a failure for each history that ended
otherwise; its runs are kept, and their directories printed.

The random choices follow from the seed; what an engine does at the moment of a kill depends on the machine, too.
"""

import argparse
import os
import random
import shlex
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from subprocess import CalledProcessError

from accel_engine import run
from accel_engine.errors import AccelError
from accel_engine.events import Phase, PhaseChanged
from accel_engine.plan import Plan
from accel_engine.run import RunReader, Status
from accel_engine.run.directory.run_paths import LOG, MODEL, latest_checkpoint
from accel_engine.run.runs.listing import summarize
from campaigns import totals
from campaigns.kill_cases import Case, cases
from campaigns.kill_engine import Engine, HangError, fork, start_by_command
from campaigns.same_run import differences
from campaigns.totals import Total

CAMPAIGN = "kills"

MAX_KILLS = 4
"""Most kills of a history."""

COLD_SHARE = 0.08
"""Share of the engines that the command starts."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A run that nothing disturbs.

    Attributes:
        directory: Its directory.
        seconds: How long it took.
        steps: How many steps it has.
    """

    directory: Path
    seconds: float
    steps: int


@dataclass(frozen=True, slots=True)
class History:
    """A run that was killed.

    Attributes:
        directory: Its directory.
        moments: When it was killed.
        problem: What is wrong with it; empty if nothing is.
    """

    directory: Path | None
    moments: tuple[str, ...]
    problem: str


def main() -> int:
    """Try histories until the time is over; the exit status is 1 if one failed."""
    parser = argparse.ArgumentParser(
        description="Kill engines at random moments, and compare what becomes of the runs."
    )
    parser.add_argument("--seed", type=int, default=1, help="of the random choices (default: 1)")
    parser.add_argument("--minutes", type=float, default=10, help="begin no history after this time (default: 10)")
    parser.add_argument("--case", default="", help="only cases whose name has this text, e.g. multi-worker/plain")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="kills-"))
    os.environ |= {"ACCEL_TUI_HOME": str(folder / "home"), "CUDA_VISIBLE_DEVICES": "-1"}
    end = time.monotonic() + 60 * arguments.minutes
    found = [case for case in cases(folder) if arguments.case in case.name]
    rng = random.Random(arguments.seed)
    references: dict[str, Reference] = {}
    kills, failures, numbers = Counter[str](), Counter[str](), Counter[str]()
    while time.monotonic() < end:
        (case,) = rng.choices(found, [case.weight for case in found])
        numbers[case.name] += 1
        plan = case.plan.replace(seed=arguments.seed)
        if case.name not in references:
            references[case.name] = _train_undisturbed(plan)
        name = f"{arguments.seed}/{case.name}/{numbers[case.name]}"
        history = _try(case, plan, references[case.name], random.Random(name))
        kills[case.name] += len(history.moments)
        _print(f"{name}: killed {', '.join(history.moments) or 'never'}")
        if history.problem:
            failures[case.name] += 1
            _print(f"  {history.directory}, undisturbed {references[case.name].directory}:\n  {history.problem}")
        elif history.directory:
            shutil.rmtree(history.directory)
        today = datetime.now(UTC).date().isoformat()
        totals.add(CAMPAIGN, Total(case.name, arguments.seed, kills[case.name], failures[case.name], today))
    if not failures:
        shutil.rmtree(folder)
    _print(totals.summary(CAMPAIGN))
    return int(bool(failures))


def _train_undisturbed(plan: Plan) -> Reference:
    directory, began = run.create(plan), time.monotonic()
    fork(directory).wait()
    seconds, summary = time.monotonic() - began, summarize(directory)
    assert summary.status is Status.FINISHED, f"{summary.status}: see {directory / LOG}"
    return Reference(directory, seconds, summary.steps)


def _try(case: Case, plan: Plan, reference: Reference, rng: random.Random) -> History:
    """Train a plan with kills, and compare it with its undisturbed run."""
    # Checkpoints do not change the results, except that they share the statistics of replicas.
    if plan.checkpoint_every == "auto":
        plan = plan.replace(checkpoint_every=rng.choice(("auto", "auto", "1 epochs", "3 steps", "7 steps", "11 steps")))
    plan = plan.replace(keep_checkpoints=rng.randint(1, 3))
    moments: list[str] = []
    wanted = rng.randint(1, MAX_KILLS)
    directory = None
    try:
        while True:
            engine = _start(directory, plan, is_cold=rng.random() < COLD_SHARE)
            directory = engine.directory
            if len(moments) == wanted:
                engine.wait()
                break
            moment, has_come = _choose_moment(directory, reference, rng)
            while engine.is_alive and not has_come():
                time.sleep(0.004)
            time.sleep(rng.choice((0, 0, rng.uniform(0, 0.03))))
            if not engine.is_alive:
                break
            engine.kill(rng)
            moments.append(moment)
            if summarize(directory).status is Status.FINISHED:
                break
        if (summary := summarize(directory)).status is not Status.FINISHED:
            return History(directory, tuple(moments), f"it is {summary.status}: {summary.reason or summary.problem}")
    except (AccelError, HangError, CalledProcessError) as error:
        return History(directory, tuple(moments), str(error))
    different = differences(directory, reference.directory, with_means=case.with_means)
    return History(directory, tuple(moments), "\n  ".join(different))


def _start(directory: Path | None, plan: Plan, *, is_cold: bool) -> Engine:
    """Start or continue a run; one without a checkpoint starts again."""
    if directory is None and is_cold:
        return start_by_command(run.find_run, *shlex.split(plan.command())[1:])
    if directory is None:
        return fork(run.create(plan))
    if is_cold and latest_checkpoint(directory):
        return start_by_command(run.find_run, "continue", directory.name)
    run.reopen(directory, plan)
    return fork(directory)


def _choose_moment(directory: Path, reference: Reference, rng: random.Random) -> tuple[str, Callable[[], bool]]:
    """When to kill an engine: its name, and a function that tells whether it has come."""
    match rng.choice(("time", "time", "phase", "phase", "phase", "step", "step", "model")):
        case "time":
            seconds = rng.uniform(0, 1.1 * reference.seconds)
            end = time.monotonic() + seconds
            return f"after {seconds:.2f} s", lambda: time.monotonic() > end
        case "step":
            step = rng.randrange(reference.steps)
            return f"from step {step}", lambda: _step(directory) >= step
        case "model":
            model, before = directory / MODEL, _stamp(directory / MODEL)
            partial = directory / "partial.keras"
            return "at the model", lambda: partial.exists() or _stamp(model) != before
    phase = rng.choice((Phase.BUILDING, Phase.TRACING, Phase.TRAINING, *2 * (Phase.VALIDATING, Phase.CHECKPOINTING)))
    number = rng.randint(1, 3)
    before = _phases(directory, phase)
    return f"{phase} {number}", lambda: _phases(directory, phase) >= before + number


def _phases(directory: Path, phase: Phase) -> int:
    """How often a run has entered a phase."""
    with closing(RunReader(directory)) as reader:
        return sum(
            event.phase is phase for _, event in reader.events(0, PhaseChanged) if isinstance(event, PhaseChanged)
        )


def _step(directory: Path) -> int:
    with closing(RunReader(directory)) as reader:
        steps = reader.new_steps()
    return steps.stop if steps else 0


def _stamp(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_mtime_ns
    return 0


def _print(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
