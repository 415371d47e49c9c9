"""Tries plans side by side: a process for each, whose steps are compiled, and which then take turns.

What slows the machine down for longer than a turn slows all of them. Nothing is written but a hidden directory beside
the runs, which is removed at the end.
"""

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from accel_engine import clock
from accel_engine.errors import RunError, file_errors
from accel_engine.files import link_or_copy
from accel_engine.measure.trial_process import TrialFailedError, TrialProcess
from accel_engine.measure.trial_statistics import LEAST_ROUNDS, in_turn, spread
from accel_engine.requests.try_plan import TrialReady, TrialStart, Turn
from accel_engine.run.directory.checkpoint_files import steps_in
from accel_engine.run.directory.run_paths import CHECKPOINTS, make_private, runs_directory
from accel_engine.words import numbers

TURN_SECONDS = 0.2
"""How long a turn takes."""

WARM_UP_SECONDS = 0.5
"""How long the turn before the first round takes, in which the length of chunks adapts."""

KEPT_SECONDS = 24 * 3600.0
"""Age from which the directory of a killed process is removed; it may belong to a live one of another machine."""

_PREFIX = ".trial-"

OnProgress = Callable[[float, float], object]
"""Takes the seconds done, and all."""


class PlanTrial:
    """One of the plans that are tried.

    Attributes:
        start: The plan.
        process: The process that tries it.
        turns: Its turns, one for each round in which it could be tried.
        problem: Why it cannot be tried, or no further; ``None`` if it can.
    """

    def __init__(self, start: TrialStart, process: TrialProcess) -> None:
        self.start = start
        self.process = process
        self.turns: list[Turn] = []
        self.problem: TrialFailedError | None = None
        self._is_warm = False

    @property
    def ready(self) -> TrialReady:
        """The compiled plan.

        Raises:
            TrialFailedError: The trial has a problem.
        """
        if self.problem:
            raise self.problem
        assert self.process.ready is not None  # noqa: S101 (it has been waited for)
        return self.process.ready

    @property
    def memory(self) -> float | None:
        """Bytes that a device had allocated at most, or by which the process grew; ``None`` if unknown."""
        return self.process.memory

    @property
    def rates(self) -> list[float]:
        """Examples a second of each round."""
        return [turn.examples_per_second for turn in self.turns]

    @property
    def examples_per_second(self) -> float:
        """The median of the rounds' examples per second."""
        return statistics.median(self.rates)

    @property
    def examples_per_second_between(self) -> tuple[float, float]:
        """The interval of that median."""
        return spread(self.rates)

    @property
    def steps_per_second(self) -> float:
        """The median of the rounds' steps per second."""
        return statistics.median(turn.steps_per_second for turn in self.turns)

    def wait_ready(self, on_progress: Callable[[str], object] = lambda _: None) -> None:
        """Wait until its steps are compiled, or cannot be, which is its ``problem``.

        Args:
            on_progress: Called with what happens, in words.

        Raises:
            TrialCancelledError: The trial was cancelled.
        """
        try:
            self.process.wait_ready(lambda done, of: on_progress(_reading(done, of)))
        except TrialFailedError as error:
            self.problem = error

    def warm_up(self) -> None:
        """Take the first steps, which do not count, once; raises as :meth:`take_turn`."""
        if not self._is_warm:
            self._is_warm = True
            self._take(WARM_UP_SECONDS)

    def take_turn(self) -> Turn | None:
        """Take steps for a turn; ``None`` if that fails, which is its ``problem``.

        Raises:
            TrialCancelledError: The trial was cancelled.
        """
        turn = self._take(TURN_SECONDS)
        self.turns += [turn] if turn else []
        return turn

    def _take(self, seconds: float) -> Turn | None:
        try:
            return self.process.take_for(seconds)
        except TrialFailedError as error:
            self.problem = error
            return None


class PlanTrials:
    """Plans that are tried side by side, until the end of the ``with`` block.

    Args:
        starts: The plans.
        should_stop: Whether to give up; asked all the time.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        RunError: The directory of runs cannot be written, or a checkpoint cannot be copied.
        OSError: No process can be started.
    """

    def __init__(self, starts: Sequence[TrialStart], should_stop: Callable[[], bool] = lambda: False) -> None:
        self._starts, self._should_stop = starts, should_stop
        self.trials: list[PlanTrial] = []
        self._folders = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        runs = runs_directory()
        make_private(runs)
        _remove_left(runs)
        with file_errors(f"cannot write to {runs}"):
            self._folder = tempfile.TemporaryDirectory(prefix=_PREFIX, dir=runs, ignore_cleanup_errors=True)
        try:
            for start in self._starts:
                self.add(start)
        except BaseException:
            self._end(0.0)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(0.0)  # nothing that it has is needed

    def add(self, start: TrialStart) -> PlanTrial:
        """Start the process of another plan, within the ``with`` block.

        Raises:
            EngineMissingError: No usable TensorFlow is installed.
            RunError: The checkpoint to start from no longer exists, or cannot be copied.
            OSError: No process can be started, or the trial's directory cannot be written.
        """
        assert self._folder is not None  # noqa: S101 (the block has begun)
        folder = Path(self._folder.name, str(self._folders))
        self._folders += 1  # also if no process can be started
        _copy_checkpoint(start, folder)
        self.trials.append(PlanTrial(start, TrialProcess(start, folder, self._should_stop)))
        return self.trials[-1]

    def _end(self, seconds: float) -> None:
        for trial in self.trials:
            trial.process.close(seconds)
        if self._folder:
            self._folder.cleanup()

    @property
    def usable(self) -> list[PlanTrial]:
        """The trials without a problem."""
        return [trial for trial in self.trials if trial.problem is None]

    def wait_ready(self, on_progress: Callable[[str], object] = lambda _: None) -> None:
        """Wait until the steps of all plans are compiled, or cannot be: which is a ``problem`` of the trial.

        Args:
            on_progress: Called with what happens, in words.

        Raises:
            TrialCancelledError: The trials were cancelled.
        """
        for number, trial in enumerate(self.trials, 1):
            trial.wait_ready(on_progress)
            on_progress(f"{number} of {len(self.trials)} are compiled")

    def take_turns(self, seconds: float, on_progress: OnProgress = lambda *_: None) -> None:
        """Let the plans take turns for some seconds, at least :data:`LEAST_ROUNDS` rounds.

        One whose turn fails gets a ``problem``, and the others continue.

        Raises:
            TrialCancelledError: The trials were cancelled.
        """
        for trial in self.usable:
            trial.warm_up()
        began, number = time.monotonic(), 0
        while self.usable and ((passed := time.monotonic() - began) < seconds or number < LEAST_ROUNDS):
            on_progress(min(passed, seconds), seconds)
            for trial in in_turn(self.usable, number):
                trial.take_turn()
            number += 1
        on_progress(seconds, seconds)


def _reading(done: int, of: int) -> str:
    return f"reading {numbers.examples_done(done, of)}"


def _remove_left(runs: Path) -> None:
    """Remove the directories of trials that were killed long ago."""
    for folder in runs.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if clock.now() - folder.stat().st_mtime > KEPT_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


def _copy_checkpoint(start: TrialStart, folder: Path) -> None:
    """Copy the checkpoint that a trial starts from into its own directory; as links, where the system has them.

    The run's engine may delete the original meanwhile.

    Raises:
        RunError: The checkpoint no longer exists, or cannot be copied.
    """
    target = folder / CHECKPOINTS
    target.mkdir(parents=True, mode=0o700)
    if not start.run or not start.step:
        return
    source = start.run / CHECKPOINTS
    with file_errors(f"the checkpoint of step {start.step:,} cannot be copied"):
        for path in sorted(source.glob(f"step-{start.step}.*")):
            link_or_copy(path, target / path.name)
    if start.step not in steps_in(target):
        raise RunError(f"the run {start.run.name} has no checkpoint of step {start.step:,} any more")
