"""Records the steps of a run, and measures their rate and the means of an epoch."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from accel_engine.events import Warned
from accel_engine.training.core.loop import ChunkResult
from accel_engine.training.core.means import Means
from accel_engine.training.core.step_rate import StepRate
from accel_engine.training.reporting.run_reporter import RunReporter


class StepRecorder:
    """Writes chunks of steps.

    Args:
        reporter: The run's step.

    Attributes:
        means: The means of the epoch so far.
        rate: The rate of all steps, without the first chunk.
    """

    def __init__(self, reporter: RunReporter) -> None:
        self._reporter = reporter
        self.means = Means()
        self.rate = StepRate(warm_up=True)
        self._diverged = False

    def continue_epoch(self, done: int, sizes: Sequence[int]) -> None:
        """Read the steps that the epoch of a continued run already has.

        Args:
            done: Their number.
            sizes: Examples of each.
        """
        step = self._reporter.step
        self.means.add(*self._reporter.run.read_steps(step - done, step), sizes)

    def end_epoch(self) -> Means:
        """Begin the means of another epoch; returns those of this one."""
        means, self.means = self.means, Means()
        return means

    def record(self, chunk: ChunkResult) -> None:
        """Write a chunk, and warn once if its loss is not finite."""
        first = self._reporter.step
        self._reporter.step += chunk.count
        self._reporter.run.write_chunk(first, chunk.started, chunk.started + chunk.seconds, chunk.series)
        self.means.add(chunk.series, chunk.seconds, [chunk.examples] * chunk.count)
        self.rate.add(chunk)
        self._warn_of_divergence(first, chunk.series)

    def _warn_of_divergence(self, first: int, series: Mapping[str, npt.NDArray[np.float32]]) -> None:
        diverged = ~np.isfinite(series["loss"])
        if diverged.any() and not self._diverged:
            self._diverged = True
            step = first + int(np.argmax(diverged))
            message = f"the loss of step {step} is NaN or infinite: try a lower learning rate"
            self._reporter.emit(Warned, message=message)
