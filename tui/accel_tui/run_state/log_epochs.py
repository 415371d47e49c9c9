"""The lines of the log that tell the values of each epoch."""

from collections.abc import Iterable, Iterator, Mapping

from accel_engine.events import EpochEnded
from accel_engine.words import numbers
from accel_tui.run_state.log_tail import LogLine
from accel_tui.run_state.log_text import time_of
from accel_tui.run_state.state import RunState

MAX_EPOCHS = 2000
"""Maximum number of epochs that are shown of a run that is opened."""

_SHORT = {"accuracy": "acc"}

_VALUE = 7
"""Cells of a value, so that values of epochs stand below each other."""


class EpochLines:
    """Gives the line of each epoch once, and puts it where its time is among other lines."""

    def __init__(self) -> None:
        self._until = float("-inf")
        self._waiting: list[tuple[float, LogLine]] = []

    def take(self, state: RunState) -> None:
        """Take the epochs that have ended since: with their validation, if one follows."""
        if not (state.info and state.info.has_engine):
            return  # a script tells of its epochs in its output
        new = tuple(_new(state.ended_epochs[-MAX_EPOCHS:], self._until))
        if not new:
            return
        validations = {each.step: each.metrics for each in state.validations if each.step >= new[-1].step}
        for epoch in reversed(new):
            validated = validations.get(epoch.step)
            if validated is None and epoch is state.epoch and epoch.step >= state.step and not state.has_ended:
                break  # its validation may follow
            self._waiting.append((epoch.time, LogLine(epoch_text(epoch, validated or {}, state.epochs), None, True)))
            self._until = epoch.time

    def merged(self, lines: Iterable[LogLine]) -> list[LogLine]:
        """Further lines of the log, with the epochs that ended before them."""
        merged: list[LogLine] = []
        for line in lines:
            if self._waiting and (at := time_of(line.text)) is not None:
                merged += self._before(at)
            merged.append(line)
        return merged

    def rest(self) -> list[LogLine]:
        """The epochs that no line follows."""
        return self._before(float("inf"))

    def _before(self, at: float) -> list[LogLine]:
        count = sum(ended <= at for ended, _ in self._waiting)
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return [line for _, line in taken]


def _new(epochs: tuple[EpochEnded, ...], until: float) -> Iterator[EpochEnded]:
    """The epochs after a time, the last one first."""
    for epoch in reversed(epochs):
        if epoch.time <= until:
            return
        yield epoch


def epoch_text(epoch: EpochEnded, validated: Mapping[str, float], epochs: int) -> str:
    """``epoch  3/10  loss  0.2310  acc  0.9310  val loss  0.2519  0.30 s``.

    Args:
        epoch: The epoch.
        validated: The metrics of its validation.
        epochs: Number of epochs of the plan; 0 if unknown.
    """
    number = f"{epoch.epoch:>{len(f'{epochs:,}')},}/{epochs:,}" if epochs else f"{epoch.epoch:,}"
    metrics = [("", epoch.metrics), ("val ", validated)]
    texts = [
        f"{word}{_SHORT.get(name, name.replace('_', ' '))} {numbers.metric(value):>{_VALUE}}"
        for word, values in metrics
        for name, value in sorted(values.items(), key=lambda item: item[0] != "loss")
    ]
    took = f"{epoch.seconds:.2f} s" if epoch.seconds < 60 else numbers.duration(epoch.seconds)
    return "  ".join([f"epoch {number}", *texts, took])
