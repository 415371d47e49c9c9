"""Prepares the environment of an engine, and imports TensorFlow in a thread, so that the process responds."""

import contextlib
import gc
import hashlib
import os
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from accel_engine.devices.cuda_visible_devices import ORDER, VISIBLE
from accel_engine.devices.installation import find_installation, installed_versions
from accel_engine.devices.tpu_chips import find_chips
from accel_engine.errors import AccelError, RunError
from accel_engine.measure.cache import XLA_CHOICES, driver
from accel_engine.run.directory.run_paths import home, make_private

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
            with _no_garbage_collection():
                for name in MODULES:
                    import_module(name)
        except BaseException as error:  # noqa: BLE001 (importing native code may raise anything)
            traceback.print_exc()
            self._error = error


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
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


ENVIRONMENT = {
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # number GPUs as the driver's tools do
    "TF_CPP_MIN_LOG_LEVEL": "1",
    # TensorFlow enables these kernels by default only on CPUs with AVX-512. They were 1.3 to 3 times
    # as fast on a CPU without it (benchmarks/README.md).
    "TF_ENABLE_ONEDNN_OPTS": "1",
}
"""Defaults of variables that the user has not set."""


OFF_CLOUD = {"TPU_SKIP_MDS_QUERY": "1"}
"""The same on machines without a TPU chip, where libtpu would query Google Cloud for minutes at import."""


def prepare(root: Path = Path("/")) -> None:
    """Set the variables of this process, before TensorFlow is imported.

    Args:
        root: Root of the file system with ``sys``, where TPU chips are searched for.
    """
    if not find_chips(root):
        os.environ |= {name: os.environ.get(name, value) for name, value in OFF_CLOUD.items()}
    os.environ |= {name: os.environ.get(name, value) for name, value in ENVIRONMENT.items()}
    if not any(entry.strip().isdecimal() for entry in os.environ.get(VISIBLE, "").split(",")):
        os.environ[ORDER] = "PCI_BUS_ID"  # nothing that the user has named depends on it
    os.environ["KERAS_BACKEND"] = "tensorflow"
    if (flags := _flags_with_choices(os.environ.get("XLA_FLAGS", ""), root)) is not None:
        os.environ["XLA_FLAGS"] = flags


_KNOWS_CHOICES = (2, 21)
"""The version of TensorFlow from which XLA surely has :data:`XLA_CHOICES`: an unknown option ends the process."""

_CARDS = "proc/driver/nvidia/gpus/*/information"
"""Where the driver describes each card."""

_LIBRARIES = ("nvidia-cublas-cu12", "nvidia-cudnn-cu12")
"""Packages with implementations among which XLA chooses."""


def _flags_with_choices(flags: str, root: Path) -> str | None:
    """``XLA_FLAGS`` with which XLA keeps the fastest kernels that it finds for a GPU; ``None`` if nothing is added.

    Otherwise XLA searches each time that it compiles, which took most of 14 s for a transformer. XLA does not check the
    version of what it reads, so each version and each set of cards has a separate folder.

    Args:
        flags: The user's, which stay, and keep the folder that they name.
        root: Root of the file system with ``proc``.
    """
    cards = sorted(path.read_text() for path in root.glob(_CARDS))
    hides_all = os.environ.get(VISIBLE, "0").split(",")[0].strip() in ("", "-1")
    is_file = bool(flags.strip()) and not flags.strip().startswith("-")
    if not cards or hides_all or is_file or XLA_CHOICES in flags:
        return None
    version = find_installation().version
    if tuple(int(part) for part in version.split(".")[:2] if part.isdecimal()) < _KNOWS_CHOICES:
        return None
    models = [line for card in cards for line in card.splitlines() if line.startswith("Model")]
    machine = f"{sorted(set(models))} {driver(root)} {installed_versions(*_LIBRARIES)}"
    folder = home() / "xla" / f"tensorflow-{version}-{hashlib.sha256(machine.encode()).hexdigest()[:12]}"
    if any(letter.isspace() or letter in "'\"\\" for letter in str(folder)):
        return None  # XLA would split or unquote it
    try:
        make_private(folder)
    except RunError:
        return None  # it cannot be written
    return f"{flags} {XLA_CHOICES}{folder}".strip()


def set_batch_scheduling(*, is_on: bool = True) -> None:
    """Use ``SCHED_BATCH``, or else the usual policy, for this thread, and threads and processes that it starts.

    Does nothing on other systems than Linux.

    Threads that wake up, as in training they often do, then no longer preempt interactive programs (see sched(7)). The
    process's share of the CPUs stays the same; a lower priority (``nice``) would also reduce that.
    """
    with contextlib.suppress(AttributeError, OSError):  # not Linux, or not permitted in a container
        os.sched_setscheduler(0, os.SCHED_BATCH if is_on else os.SCHED_OTHER, os.sched_param(0))
