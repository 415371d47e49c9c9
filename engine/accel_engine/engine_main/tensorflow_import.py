"""Imports TensorFlow in a separate thread, so that the process stays responsive."""

import gc
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from accel_engine.errors import AccelError

MODULES = ("accel_engine.training.trainer", "accel_engine.training.measure_model")
"""The modules that train a run and describe a model; they import TensorFlow."""


class TensorFlowImport:
    """Imports TensorFlow and the modules that need it in a thread."""

    def __init__(self) -> None:
        self._thread = threading.Thread(target=self._import, name="import-tensorflow", daemon=True)
        self._starting = threading.Lock()
        self._error: BaseException | None = None

    def wait(self) -> None:
        """Start the import if it has not started, and wait until it is done; from any thread.

        Raises:
            AccelError: The import failed.
        """
        with self._starting:
            if self._thread.ident is None:
                self._thread.start()
        self._thread.join()
        if self._error is not None:
            raise AccelError(f"TensorFlow cannot be imported: {self._error}") from self._error

    @property
    def imported(self) -> bool:
        """Whether the import is done, successful or not."""
        return self._thread.ident is not None and not self._thread.is_alive()

    def _import(self) -> None:
        try:
            with no_garbage_collection():
                for name in MODULES:
                    import_module(name)
        except BaseException as error:  # noqa: BLE001 (importing native code may raise anything)
            traceback.print_exc()
            self._error = error


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Collect no garbage meanwhile, and never look for it among the objects that exist at the end.

    Importing TensorFlow makes half a million objects that stay. Looking for garbage among them takes a fifth of the
    time of the import, and nearly all the time of each later collection.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
