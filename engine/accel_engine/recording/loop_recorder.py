"""Records a training loop that a script has written itself."""

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

import numpy as np

from accel_engine.errors import DataError, RunError, format_error
from accel_engine.recording import script, watch_hint
from accel_engine.recording.error_guard import guarded, value_or_none, warn
from accel_engine.recording.loop_session import LoopSession
from accel_engine.recording.run_link import RunLink
from accel_engine.recording.value_snapshots import snapshot_array, snapshot_value
from accel_engine.run.engine.commands import Command
from accel_engine.run.media import Histogram, LoggedImage, LoggedText, histogram_of, image_of

_Setting: TypeAlias = bool | int | float | str | None

_MAX_SETTINGS = 1000
"""Settings beyond these are left out."""

_MAX_TEXT = 500
"""Characters of the longest value."""

_MAX_DEPTH = 8


class Recorder:
    """Records a training loop as a run that the dashboard can watch, list and compare.

    It needs no TensorFlow, and takes the values of any framework. A call takes microseconds; a thread converts and
    writes the values. It never raises an exception: what is wrong is in the run's log and among its warnings.

    The run ends with the ``with`` block, with :meth:`close`, when nothing refers to the recorder any more, or with the
    script. An exception in the block, or one that ends the script, makes it a failed run. A forked child records
    nothing.

    Args:
        name: A name for the run; the script's by default.
        config: The script's settings, for the run's details and comparisons: a mapping, which may contain others, or an
            object with attributes, such as :class:`argparse.Namespace`.
        steps: How many steps the loop will take, for the progress and the remaining time.

    """

    _link: RunLink | None = None
    _session: LoopSession | None = None
    _is_closed = False
    _has_warned = False
    _reported: frozenset[str] = frozenset()

    @guarded
    def __init__(self, name: str = "", *, config: Any = None, steps: int | None = None) -> None:
        values: dict[str, Any] = {"name": str(name) or script.program_name(), "data": script.program_name()}
        total, problems = 0, []
        try:
            values |= {"config": settings} if (settings := flat_config(config)) else {}
        except Exception as error:  # noqa: BLE001 (of the user's own objects)
            problems.append(f"config is not recorded: {format_error(error)}")
        if isinstance(steps, int) and steps > 0:
            total = steps
        elif steps is not None:
            problems.append(f"steps is left out: it is a whole number from 1, not {steps!r:.80}")
        # It must not refer to this recorder, so that it is noticed when nothing refers to that any more.
        self._link = RunLink(values)
        self._session = LoopSession(self._link, total)
        self._session.begin()
        for problem in problems:
            self._session.warn(problem)

    @guarded
    def log(self, /, step: Any, values: Mapping[str, Any] | None = None, **named: Any) -> None:
        """Record values of a step.

        Names that begin with ``val_`` or ``validation_`` are metrics of a validation, ``lr`` is the learning rate. When
        ``epoch`` changes, an epoch has ended. Several calls for one step are one step.

        Args:
            step: A whole number from 0. It may rise by more than one; values of an earlier step are left out.
            values: Values by name, for names that Python does not take as arguments.
            named: Values by name: numbers, and arrays and tensors of any framework with up to 32 elements, each of
                which becomes a series.
        """
        if session := self._open_session():
            session.log(step, {**values, **named} if values is not None else named)

    @guarded
    def log_image(self, /, step: Any, **images: Any) -> None:
        """Record images.

        Args:
            step: A whole number from 0.
            images: Images by name: arrays or tensors (see :func:`accel_engine.run.media.image_of`), pictures of Pillow,
                figures of Matplotlib.
        """
        if session := self._open_session():
            for name, image in images.items():
                session.log_media(step, name, partial(_image, snapshot_value(image, image_of, copies=True)))

    @guarded
    def log_text(self, /, step: Any, **texts: Any) -> None:
        """Record texts.

        Args:
            step: A whole number from 0.
            texts: Texts by name.
        """
        if session := self._open_session():
            for name, text in texts.items():
                session.log_media(step, name, partial(LoggedText, str(text)))

    @guarded
    def log_histogram(self, /, step: Any, **values: Any) -> None:
        """Record how often values occur.

        Args:
            step: A whole number from 0.
            values: Arrays or tensors of any shape by name.
        """
        if session := self._open_session():
            for name, each in values.items():
                session.log_media(step, name, partial(_histogram, snapshot_value(each, copies=True)))

    @property
    def directory(self) -> Path | None:
        """The run's directory; ``None`` if no run could be created."""
        return self._link.directory if self._link else None

    @property
    def should_stop(self) -> bool:
        """Whether someone has asked the script to stop; it decides when."""
        return self._session is not None and self._session.should_stop

    @guarded
    def command(self) -> Command | None:
        """Take the next command for the script: its ``name``, such as ``pause``, and its ``argument``.

        The dashboard's commands other than ``stop`` are for scripts that call this regularly. The script decides what
        to do.

        Returns:
            The command; ``None`` if there is none.
        """
        session = self._open_session()
        return session.command() if session else None

    @guarded
    def show(self) -> None:
        """Print where the run is and how to watch it."""
        watch_hint.print_hint(self.directory)

    @guarded
    def close(self) -> None:
        """End the run, and wait until it is written, for at most some seconds."""
        self._end(None)

    def __enter__(self) -> Self:
        return self

    @guarded
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end(error)

    def __del__(self) -> None:
        with suppress(Exception):  # Python would print it
            if self._session:
                self._session.leave()

    def _on_error(self, error: Exception) -> None:
        """Report an error to the run, or if there is none, to the user, once."""
        message = format_error(error)
        session = self._session
        if session and session.writing:
            if message not in self._reported:
                self._reported |= {message}
                session.warn(message)
        elif not self._has_warned:
            self._has_warned = True
            warn(f"not recorded, the script continues: {message}")

    def _end(self, error: BaseException | None) -> None:
        session = self._session
        if session and not self._is_closed:
            self._is_closed = True
            if not session.end(error):
                warn("the end of the run is not written yet; the disk may be busy")

    def _open_session(self) -> LoopSession | None:
        """The session; ``None`` if nothing is recorded any more."""
        session = self._session
        if self._is_closed:
            raise RunError("the recorder is closed")
        if session and not session.writing:
            session.check()
            return None
        return session


def _image(value: Any) -> LoggedImage:
    return value if isinstance(value, LoggedImage) else image_of(snapshot_array(value))


def _histogram(value: Any) -> Histogram:
    return histogram_of(snapshot_array(value))


def flat_config(config: Any) -> dict[str, _Setting]:
    """Flatten a configuration.

    Args:
        config: A mapping, whose values may be mappings, or an object with attributes, such as
            :class:`argparse.Namespace` or a dataclass; ``None`` for no configuration.

    Returns:
        Settings by name; the names of nested ones are joined with dots. What JSON has no type for is a text.

    Raises:
        DataError: The configuration is neither.
    """
    if config is None:
        return {}
    if not isinstance(config, Mapping) and not hasattr(config, "__dict__"):
        raise DataError(f"{type(config).__name__} is not a mapping")
    values = config if isinstance(config, Mapping) else vars(config)
    settings = _settings("", values, 0)
    return dict(setting for setting, _ in zip(settings, range(_MAX_SETTINGS), strict=False))


def _settings(prefix: str, values: Mapping[Any, Any], depth: int) -> Iterator[tuple[str, _Setting]]:
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and depth < _MAX_DEPTH:
            yield from _settings(f"{name}.", value, depth + 1)
        else:
            yield name, _setting(value)


def _setting(value: Any) -> _Setting:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    text = value_or_none(str, value)
    return text[:_MAX_TEXT] if isinstance(text, str) else type(value).__name__
