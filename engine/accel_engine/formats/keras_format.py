"""Keras' own format, which keeps the layers."""

from pathlib import Path

from accel_engine.formats import ModelFormat, ModelToWrite, Precision
from accel_engine.inference.origin import write_origin
from accel_engine.inference.runtime import Runtime
from accel_engine.models.model_files import MODEL_FILES
from accel_engine.user_code import model_errors


class _Keras(ModelFormat):
    name = "keras"
    about = "a file for keras.models.load_model"
    suffixes = MODEL_FILES
    precisions = (Precision(about="keras.models.load_model", tolerance=1e-4),)
    by_tensorflow = True

    def write(self, model: ModelToWrite, precision: str, path: Path) -> None:
        from accel_engine.private_names.keras_names import whole_configs

        with model_errors("the model cannot be saved"), whole_configs(model.labelled):
            model.labelled.save(path)
        write_origin(path, model.described({}))

    def open(self, path: Path, *, threads: int | None = None, jit_compile: bool = False) -> Runtime:
        from accel_engine.inference.keras_runtime import open_keras

        return open_keras(path, jit_compile=jit_compile)


FORMAT = _Keras()
