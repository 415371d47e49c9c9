"""How many epochs a run has trained at a step."""

from accel_engine.events import EpochEnded, ModelBuilt
from accel_engine.run.store.database import Database
from accel_engine.run.store.stored_events import all_events, last_event


def trained_epochs(step: int, steps_per_epoch: int, last_epoch: tuple[int, int] | None) -> float:
    """The epochs trained at a step, as a fraction.

    Args:
        step: Steps taken.
        steps_per_epoch: 0 if unknown, as for a stream of unknown length; then a part of an epoch counts as half of one.
        last_epoch: The last epoch that has ended by that step, and its last step; ``None`` if none has.
    """
    if steps_per_epoch:
        return step / steps_per_epoch
    epoch, last_step = last_epoch or (0, 0)
    return epoch + (0.5 if step > last_step else 0.0)


def read_trained_epochs(database: Database, step: int) -> float:
    """The epochs that a run had trained at a step, as a fraction."""
    built = last_event(database, ModelBuilt)
    steps_per_epoch = (built.steps_per_epoch if built else None) or 0
    ended = [] if steps_per_epoch else all_events(database, EpochEnded)
    last = next((event for event in reversed(ended) if event.step <= step), None)
    return trained_epochs(step, steps_per_epoch, (last.epoch, last.step) if last else None)
