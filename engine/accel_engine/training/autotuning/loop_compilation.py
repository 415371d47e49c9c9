"""Compiles a loop, in a thread of its own while another loop trains."""

import threading
import time
from collections.abc import Callable

from accel_engine.private_names.keras_names import unseeded_generator, use_unseeded_generator
from accel_engine.training.core.feed import Segment
from accel_engine.training.core.loop import Loop
from accel_engine.training.reporting.error_explanation import message_of, print_traceback

_MISSING = {
    "libdevice": "XLA finds no libdevice, a part of CUDA",
    "ptxas": "XLA finds no ptxas, a part of CUDA",
}
"""What messages of XLA mean, by a word in them: whoever installs CUDA's compiler, or names it, mends them."""

_INSTALL = "run pip install 'tensorflow[and-cuda]', or set XLA_FLAGS=--xla_gpu_cuda_data_dir= to CUDA's directory"


class LoopCompilation:
    """Traces and compiles a loop.

    Args:
        make_loop: Creates the loop.
        segment: Steps to compile it for; none of them is taken.
        background: Whether to compile in a thread of its own, rather than before this returns.

    Attributes:
        seconds: How long it took.
        problem: Why the loop cannot be compiled; empty if it is, or as long as it is not known.
    """

    def __init__(self, make_loop: Callable[[], Loop], segment: Segment, *, background: bool) -> None:
        self._make_loop, self._segment = make_loop, segment
        self._generator = unseeded_generator()
        self._loop: Loop | None = None
        self.seconds = 0.0
        self.problem = ""
        # The process may end while XLA compiles, which nothing can interrupt.
        self._thread = threading.Thread(target=self._compile, name="compile", daemon=True)
        self._thread.start()
        if not background:
            self.wait()

    def wait(self) -> None:
        """Wait until the loop is compiled, or cannot be."""
        self._thread.join()

    @property
    def has_ended(self) -> bool:
        """Whether the loop is compiled, or cannot be."""
        return not self._thread.is_alive()

    @property
    def loop(self) -> Loop | None:
        """The compiled loop; ``None`` if it cannot be compiled."""
        return self._loop if self.has_ended else None

    def _compile(self) -> None:
        began = time.perf_counter()
        use_unseeded_generator(self._generator)
        try:
            loop = self._make_loop()
            loop.compile(self._segment)
        except Exception as error:  # noqa: BLE001 (XLA cannot compile some operations, and the model is the user's)
            print_traceback(error)
            self.problem = why_not_compiled(error)
        else:
            self._loop = loop
        self.seconds = time.perf_counter() - began


def why_not_compiled(error: Exception) -> str:
    """Why XLA cannot compile a step, with what helps, if that is known."""
    message = message_of(error)
    missing = next((meaning for word, meaning in _MISSING.items() if word in message), "")
    return f"{missing}: {_INSTALL}" if missing else message
