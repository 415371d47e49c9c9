"""SavedModel, as TensorFlow Serving reads it: a directory with a numbered directory for each version of the model."""

import os
from pathlib import Path

from accel_engine.errors import UsageError, file_errors
from accel_engine.formats import BATCHING_FILE, ModelFormat, ModelToWrite, Precision
from accel_engine.inference.origin import DESCRIPTION
from accel_engine.inference.runtime import Runtime
from accel_engine.user_code import model_errors
from accel_engine.user_paths import exists, is_directory

WARM_UP_BATCHES = (1, 8, 32)
"""Number of examples of each warm-up request."""


class _SavedModel(ModelFormat):
    name = "savedmodel"
    about = "a directory for TensorFlow Serving, with numbered versions"
    precisions = (Precision(about="TensorFlow Serving", tolerance=1e-4),)
    by_tensorflow = True
    is_served = True

    def write(self, model: ModelToWrite, precision: str, path: Path) -> None:
        from accel_engine.formats.serving_warmup import write_warmup

        with model_errors("the model cannot be saved"):
            model.labelled.export(path, verbose=False)
        write_warmup(path, model.name, model.first_examples(WARM_UP_BATCHES))
        model.write_description(path / DESCRIPTION, {})

    def open(self, path: Path, *, threads: int | None = None, jit_compile: bool = False) -> Runtime:
        from accel_engine.inference.savedmodel_runtime import SavedModelRuntime

        return SavedModelRuntime(path, jit_compile=jit_compile)

    def is_at(self, path: Path) -> bool:
        return path.is_dir()

    def default_name(self, run: str, precision: str) -> str:
        return f"{run}-savedmodel"

    def path_to_write(self, path: Path) -> Path:
        """The directory of the next version; TensorFlow Serving serves the highest number."""
        return path / str(max((int(name) for name in _names(path) if name.isdecimal()), default=0) + 1)

    def check_path(self, path: Path) -> None:
        above = path.parent
        if exists(above) and not is_directory(above):
            raise UsageError(f"{above} is a file: choose another path")
        if path.name == "1" and set(_names(above)) - {BATCHING_FILE}:
            raise UsageError(f"{above} has other files than versions of a model: choose another path")

    def overwritten(self, path: Path) -> list[Path]:
        return []  # each export is a new version


def _names(directory: Path) -> list[str]:
    """The names in a directory; empty if there is no such directory.

    Raises:
        UsageError: The directory cannot be read.
    """
    if not is_directory(directory):
        return []
    with file_errors(f"cannot read {directory}", UsageError):
        return os.listdir(directory)


FORMAT = _SavedModel()
