"""Advice on a run, as screens and commands show it."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from accel_engine.advice import Coverage, Cure, FailedRule, Finding, Recorded, coverage, find_troubles
from accel_engine.advice.recorded import RecordedSeries
from accel_engine.errors import RunError
from accel_engine.plan.changed_plan import options_text
from accel_engine.run import RunInfo
from accel_engine.run.history.history import Points
from accel_engine.run.store.series_names import VALIDATION_PREFIX
from accel_engine.text import printable_fields, printable_line
from accel_tui.follower import Follower, Unreadable
from accel_tui.run_state.curve import RecordedCurve

PAUSE_SECONDS = 10.0
"""Seconds between two readings of a live run, at least."""

PAUSE_FACTOR = 20.0
"""The least pause after a reading, as a multiple of its duration: reading takes at most a twentieth of the time."""


@dataclass(frozen=True, slots=True, eq=False)
class _EvidenceCurve:
    """A series of training, and the metric of validation of the same name."""

    curve: RecordedCurve
    """A value per step; empty if it was not recorded."""
    validation: Points = ()
    """Points of step and value."""


@dataclass(frozen=True, slots=True, eq=False)
class Advice:
    """The findings on a run, from its records."""

    info: RunInfo
    """The run."""
    findings: tuple[Finding, ...] = ()
    """What is wrong with it, the most important first."""
    coverage: Coverage = Coverage()  # noqa: RUF009 (it is frozen)
    """The records that were judged."""
    curves: Mapping[str, _EvidenceCurve] = field(default_factory=dict)
    """The series that show evidence, by name."""
    failed: tuple[str, ...] = ()
    """The rules that failed, each with its error."""
    not_tried: Mapping[str, str] = field(default_factory=dict)
    """Why cures cannot be tried, by the options that make their changes."""
    is_cured: bool = False
    """Whether a cure was applied to the run that can be taken back."""
    seconds: float = 0.0
    """How long it took to read and judge the records."""


class AdviceFollower(Follower["Advice | None"]):
    """Reads the advice on a run: an ended one once, a live one again and again while its screen is visible.

    A reading that failed is repeated.

    Args:
        directory: The run's directory.
        is_covered: Returns whether the screen is covered; called in the thread.
    """

    def __init__(self, directory: Path, is_covered: Callable[[], bool]) -> None:
        super().__init__(None)
        self._directory = directory
        self._is_covered = is_covered
        self._is_asked = False

    def read(self) -> None:
        """Read now, or as soon as the reading in progress has ended."""
        self._is_asked = True
        self._wakeup.set()

    def run(self) -> None:
        """Read the advice, and wait."""
        while self.is_wanted:
            self._is_asked, pause = False, PAUSE_SECONDS
            try:
                advice = read_advice(self._directory)
            except RunError as error:
                self.tell(Unreadable(str(error)))
            except Exception as error:  # noqa: BLE001 (it may succeed the next time)
                self.tell(Unreadable(printable_line(f"Internal error: {type(error).__name__}: {error}")))
            else:
                self.put(advice)
                pause = max(PAUSE_SECONDS, PAUSE_FACTOR * advice.seconds) if advice.info.status.live else math.inf
            due = time.monotonic() + pause
            while self.is_wanted and not self._is_asked and (time.monotonic() < due or self._is_covered()):
                self.wait(min(PAUSE_SECONDS, max(due - time.monotonic(), PAUSE_SECONDS / 10)))


def read_advice(directory: Path) -> Advice:
    """Read a run's records and judge them; all text is printable. Takes too long for the event loop.

    The bench of a model is not judged: it does not train.

    Raises:
        RunError: There is no run, or this program cannot read it.
    """
    from accel_engine.advice.cures.apply_cure import cure_of  # its imports are slow
    from accel_engine.race.remembered_races import read_with_races

    begun = time.perf_counter()
    recorded = read_with_races(directory)
    failed = list[FailedRule]()
    findings = () if recorded.info.bench else find_troubles(recorded, failed)
    return Advice(
        info=printable_fields(recorded.info),
        findings=printable_fields(findings),
        coverage=coverage(recorded),
        curves=evidence_curves(recorded, findings),
        failed=tuple(printable_line(str(each)) for each in failed),
        not_tried={options_text(cure.changes): reason for cure, reason in _not_tried(recorded.info, findings)},
        is_cured=cure_of(directory) is not None,
        seconds=time.perf_counter() - begun,
    )


def _not_tried(info: RunInfo, findings: Iterable[Finding]) -> Iterator[tuple[Cure, str]]:
    """The cures that change the plan and cannot be tried, each with the reason."""
    from accel_engine.advice.cures.cure_task import reason_not_to_try  # its imports are slow

    for cure in (cure for finding in findings for cure in finding.cures if cure.changes):
        if reason := reason_not_to_try(info, cure.changes):
            yield cure, printable_line(reason)


def evidence_curves(recorded: Recorded, findings: Iterable[Finding]) -> Mapping[str, _EvidenceCurve]:
    """The curves of all evidence that a series shows, by the name of the series without ``validation_``."""
    names = {chart_name(each.series) for finding in findings for each in finding.evidence if each.series}
    return {
        name: _EvidenceCurve(_curve(recorded.of(name), recorded.steps), _points(recorded, name))
        for name in sorted(names)
    }


def chart_name(series: str) -> str:
    """The name of the chart of a series: the series without ``validation_``."""
    return series.removeprefix(VALIDATION_PREFIX)


def _points(recorded: Recorded, name: str) -> Points:
    steps, values = recorded.validation(name)
    return tuple(zip(steps.tolist(), values.tolist(), strict=True))


def _curve(series: RecordedSeries, steps: int) -> RecordedCurve:
    """The curve of a series of a run of some steps, with gaps where it has no buckets."""
    if not len(series):
        return RecordedCurve()
    index = series.first // series.width
    buckets = int(index[-1]) + 1
    low, high, total = np.full(buckets, math.nan), np.full(buckets, math.nan), np.zeros(buckets)
    finite = np.zeros(buckets, np.int64)
    low[index], high[index], finite[index] = series.low, series.high, series.finite
    total[index] = series.mean * series.finite
    return RecordedCurve(
        min(buckets * series.width, steps), series.width, float(series.mean[-1]), low, high, total, finite
    )
