"""The checkpoint with the weights of a run, as a field of a form."""

from collections.abc import Sequence

from accel_engine.errors import UsageError
from accel_engine.run.history.chosen_checkpoint import CHOICES
from accel_tui.plan.form import FieldChoice

_NOTES = {
    "auto": "best, if the run restores its best weights, else last",
    "best": "the one with the best monitored metric",
    "last": "the last one",
}


def checkpoint_choices(steps: Sequence[int]) -> tuple[FieldChoice, ...]:
    """The choices of a run with checkpoints of some steps."""
    named = (FieldChoice(name, _NOTES[name]) for name in CHOICES)
    return (*named, *(FieldChoice(str(step), f"step {step:,}") for step in reversed(steps)))


def checked_checkpoint(text: str, steps: Sequence[int]) -> str:
    """The checkpoint that a text names; ``auto`` for none.

    Raises:
        UsageError: The run has no such checkpoint.
    """
    name = text.strip() or "auto"
    if name in CHOICES or (name.isdecimal() and int(name) in steps):
        return name
    listed = f", or a step of {', '.join(map(str, steps))}" if steps else ""
    raise UsageError(f"no checkpoint {name}: give {', '.join(CHOICES)}{listed}")
