"""Asks a question of a separate engine process, which writes files of its answer into a folder."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from accel_engine.errors import RunError
from accel_engine.process.engine_query import EngineQuery


class FolderQuery(EngineQuery):
    """A question with a folder of this process, so that nothing is left when the engine is killed.

    Args:
        arguments: The arguments of the engine process.
        request: Makes the request, JSON-serializable, for the folder.
        within: The directory that the folder is made in; that for temporary files if it is ``None``.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        RunError: The directory cannot be written.
    """

    def __init__(
        self, arguments: Sequence[str], request: Callable[[Path], Mapping[str, Any]], within: Path | None = None
    ) -> None:
        prefix = "accel-tui-" if within is None else ".accel-tui-"
        try:
            self._temporary = tempfile.TemporaryDirectory(prefix=prefix, dir=within, ignore_cleanup_errors=True)
        except OSError as error:
            raise RunError(f"cannot write to {within or tempfile.gettempdir()}: {error.strerror or error}") from error
        try:
            super().__init__(arguments, request(self.folder))
        except BaseException:
            self._temporary.cleanup()
            raise

    @property
    def folder(self) -> Path:
        """The folder, which is removed at the end of the ``with`` block."""
        return Path(self._temporary.name)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._temporary.cleanup()
