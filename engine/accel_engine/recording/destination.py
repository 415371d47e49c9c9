"""Where a recorder writes: a run of its own, or a part of the run of a script."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from accel_engine.devices.device_types import Sample
from accel_engine.errors import format_error
from accel_engine.events import Outcome, RunStarted
from accel_engine.recording.own_run import OwnRunWriter
from accel_engine.run.engine.commands import OpenRun

if TYPE_CHECKING:
    import numpy.typing as npt

    from accel_engine.run.media import MediaItem


class RecordedRun(OpenRun, Protocol):
    """What a recorder thread writes to."""

    def write_chunk(self, first_step: int, started: float, ended: float, series: "Mapping[str, npt.ArrayLike]") -> None:
        """Add consecutive steps."""

    def write_samples(self, samples: Sequence[Sample]) -> None:
        """Add device samples."""

    def write_media(self, step: int, time: float, name: str, item: "MediaItem") -> None:
        """Add an image, a text or a histogram."""

    def heartbeat(self) -> None:
        """Check that the run can still be written."""

    def close(self) -> None:
        """Close."""


class Destination(Protocol):
    """Opens what a recorder thread writes to.

    Attributes:
        samples_devices: Whether the recorder samples the devices; another process does so for a script's run.
        step: Steps taken in the run so far.
        epochs: Epochs ended in the run so far.
    """

    @property
    def directory(self) -> Path | None:
        """The run's directory; ``None`` before there is one."""

    samples_devices: bool
    step: int
    epochs: int

    def open(self, started: RunStarted) -> RecordedRun:
        """Begin; called in the recorder thread.

        Raises:
            Exception: It cannot be written, or another process writes it.
        """


class OwnRun:
    """A run of the recorder's own.

    Args:
        make: Returns the run's directory, creating it if needed; called in the recorder thread.
        step: Steps taken in the run so far.
        epochs: Epochs ended in the run so far.

    Attributes:
        directory: The run's directory; ``None`` before there is one.
    """

    samples_devices = True

    def __init__(self, make: Callable[[], Path], step: int = 0, epochs: int = 0) -> None:
        self._make = make
        self.directory: Path | None = None
        self.step = step
        self.epochs = epochs

    def open(self, started: RunStarted) -> RecordedRun:
        """Lock the run and write its start."""
        self.directory = self._make()
        writer = OwnRunWriter(self.directory)
        try:
            writer.begin(replace(started, run=self.directory.name))
        except BaseException:
            writer.close()
            raise
        return writer


def outcome_of(error: BaseException | None) -> tuple[Outcome, str]:
    """The outcome and reason of a run whose ``fit`` or loop raised; ``None`` if the exception of ``fit`` is unknown."""
    match error:
        case None:
            return Outcome.FAILED, "fit was ended by an exception or an exit of the script"
        case KeyboardInterrupt():
            return Outcome.STOPPED, "interrupted from the keyboard"
        case SystemExit(code=None | 0):
            return Outcome.STOPPED, "the script exited"
        case SystemExit(code=int(status)):
            return Outcome.FAILED, f"the script exited with status {status}"
    return Outcome.FAILED, format_error(error)
