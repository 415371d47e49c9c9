"""Importing TensorFlow in a thread of its own, so that a process stays answerable meanwhile."""

import threading
import traceback

from accel_engine.errors import AccelError


class TensorFlowImport:
    """TensorFlow and all that needs it, imported by a thread of its own."""

    def __init__(self) -> None:
        self._thread = threading.Thread(target=self._import, name="import-tensorflow", daemon=True)
        self._starting = threading.Lock()
        self._error: BaseException | None = None

    def wait(self) -> None:
        """Import it, unless that was begun already, and wait until it is there; from any thread.

        Raises:
            AccelError: It cannot be.
        """
        with self._starting:
            if self._thread.ident is None:
                self._thread.start()
        self._thread.join()
        if self._error is not None:
            raise AccelError(f"TensorFlow cannot be imported: {self._error}") from self._error

    @property
    def imported(self) -> bool:
        """Whether the import is over."""
        return self._thread.ident is not None and not self._thread.is_alive()

    def _import(self) -> None:
        try:
            import accel_engine.training.model_size
            import accel_engine.training.trainer  # noqa: F401
        except BaseException as error:  # noqa: BLE001 (an import of native code fails in many ways)
            traceback.print_exc()
            self._error = error
