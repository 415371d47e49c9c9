"""Writes the event of a trial."""

from accel_engine.events import MicroBatchesTried, XlaTried
from accel_engine.training.autotuning.trial import TrialSpeeds
from accel_engine.training.core.loop import ExecutionMode
from accel_engine.training.reporting.run_reporter import RunReporter


def report_trial(
    reporter: RunReporter, tried: ExecutionMode, speeds: TrialSpeeds, *, remembered: bool, reason: str = ""
) -> None:
    """Write the event of a trial.

    Args:
        reporter: The run's step.
        tried: The alternative mode.
        speeds: What the trial measured.
        remembered: Whether in an earlier run.
        reason: Why the alternative mode is not possible; empty if it is.
    """
    step, used = reporter.step, speeds.alternative_is_faster
    common = {"step": step, "remembered": remembered, "settled": speeds.settled}
    if tried.xla:
        reporter.emit(XlaTried, xla=used, plain=speeds.default, compiled=speeds.alternative, reason=reason, **common)
    else:
        rates = {"whole": speeds.default, "split": speeds.alternative}
        chosen = tried.micro_batches if used else 1
        reporter.emit(MicroBatchesTried, micro_batches=chosen, tried=tried.micro_batches, **rates, **common)
