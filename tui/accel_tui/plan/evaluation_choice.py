"""The examples and the weights of an evaluation, as fields of a form."""

from accel_engine.errors import UsageError
from accel_engine.requests.evaluate import EvaluationOptions
from accel_tui.plan.form import FieldChoice

SPLITS = {
    "auto": "test, or validation where there is no test split",
    "test": "the test split",
    "validation": "the validation split",
    "training": "the examples that the run was trained on",
}
"""The splits that can be evaluated, and what they are."""


def split_choices() -> tuple[FieldChoice, ...]:
    """The splits, with what they are."""
    return tuple(FieldChoice(name, note) for name, note in SPLITS.items())


def evaluation_options(data: str, split: str, checkpoint: str) -> EvaluationOptions:
    """What the texts of the fields choose; those that are empty are for the program.

    Args:
        data: Other data than that of the runs.
        split: One of :data:`SPLITS`.
        checkpoint: The checkpoint, which the runs have.

    Raises:
        UsageError: There is no such split.
    """
    chosen = split.strip() or "auto"
    if chosen not in SPLITS:
        raise UsageError(f"no split {chosen}: give {', '.join(SPLITS)}")
    return EvaluationOptions(data=data.strip(), split=chosen, checkpoint=checkpoint)
