"""A run in memory, for what a recorder thread sends."""

from typing import Any

import numpy as np

from accel_engine.events import Event
from accel_engine.run.engine.commands import Command


class Run:
    """A run in memory, in the place of a link to its supervisor."""

    def __init__(self, step: int = 0, epochs: int = 0) -> None:
        self.step, self.epochs = step, epochs
        self.events: list[Event] = []
        self.chunks: list[tuple[int, float, float, dict[str, list[float]]]] = []
        self.media: list[tuple[Any, ...]] = []
        self.answers: list[tuple[Any, ...]] = []
        self.pending: list[Command] = []
        self.is_closed = False

    def write_event(self, event: Event) -> None:
        self.events.append(event)

    def write_chunk(self, first_step: int, started: float, ended: float, series: Any) -> None:
        values = {name: np.asarray(each).tolist() for name, each in series.items()}
        self.chunks.append((first_step, started, ended, values))

    def write_media(self, *media: Any) -> None:
        self.media.append(media)

    def commands(self) -> list[Command]:
        return self.pending

    def answer(self, command: Command, *, obeyed: bool, answer: str) -> None:
        self.answers.append((command, obeyed, answer))

    def end(self, ended: Event) -> None:
        self.events.append(ended)

    def close(self) -> None:
        self.is_closed = True
