"""Validates in smaller batches where memory runs out, with the same metrics; training continues in any case."""

import gc
from collections.abc import Callable

from accel_engine.events import OUT_OF_MEMORY, Recovered, Warned
from accel_engine.run.diagnostics import DiagnosticsItem
from accel_engine.training.evaluation.baseline import BaselineResult
from accel_engine.training.evaluation.validation import Validation
from accel_engine.training.reporting.error_explanation import allocated, is_out_of_memory
from accel_engine.training.reporting.run_reporter import RunReporter
from accel_engine.words import numbers

TOO_LARGE = "out of memory in validation, although it takes one example at a time"
"""Why a model cannot be validated whose batches cannot be smaller."""


class AdaptiveValidation:
    """The validations of a run.

    Args:
        validation: Validates the model.
        reporter: The run's step and phase.
        adapts: Whether to try smaller batches; otherwise all errors end the run.
    """

    def __init__(self, validation: Validation, reporter: RunReporter, *, adapts: bool) -> None:
        self._validation, self._reporter, self._adapts = validation, reporter, adapts

    def retrace(self) -> None:
        """Trace the graph again, as other layers train now."""
        self._validation.retrace()

    def run(self, between_batches: Callable[[], None]) -> dict[str, float] | None:
        """Return ``loss`` and every metric; ``None`` if memory does not suffice for a single example.

        Args:
            between_batches: Called after some batches; what it raises ends the validation.

        Raises:
            DataError: A stream has no batches, as an iterator that was read to its end.
        """
        while True:
            try:
                return self._validation.run(between_batches)
            except Exception as error:
                if not self._adapts or not is_out_of_memory(error):
                    raise
                what = allocated(error)
            # Only here are the frames of the exception gone, and what they held.
            gc.collect()
            if not self._take_less(f", allocating {what}" if what else ""):
                return None

    def baseline(self) -> BaselineResult | None:
        """The metrics of the baseline in the last :meth:`run`; ``None`` if unknown."""
        return self._validation.baseline()

    def report(self) -> tuple[DiagnosticsItem, ...]:
        """The diagnostics of the last :meth:`run`; nothing if they take too much memory."""
        try:
            return self._validation.report()
        except Exception as error:
            if not self._adapts or not is_out_of_memory(error):
                raise
        message = "out of memory: the report of this validation is left out, its metrics are not"
        self._reporter.emit(Warned, message=message)
        return ()

    def _take_less(self, allocating: str) -> bool:
        """Halve the batches and write an event; returns whether that is possible: not for single examples."""
        reporter, size = self._reporter, self._validation.halve_batches()
        if not size:
            reporter.emit(Warned, message=f"{TOO_LARGE}: it is left out")
            return False
        other = ", with which its loss or metrics may be other ones" if self._validation.depends_on_batch else ""
        reporter.emit(
            Recovered,
            trouble=OUT_OF_MEMORY,
            step=reporter.step,
            failed_step=reporter.step,
            reason=f"out of memory in validation{allocating}",
            action=f"the run validates in batches of {numbers.counted(size, 'example')} on each replica{other}",
        )
        return True
