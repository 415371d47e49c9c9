"""Writes a trained model in a format; files go where they are told, and are proved before they are kept."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import keras

from accel_engine.data.standardization import Standardization
from accel_engine.data.structure import ArraySpec, has_texts
from accel_engine.errors import ModelError
from accel_engine.inference.encoded_runtime import sidecar_of
from accel_engine.inference.origin import DESCRIPTION, write_origin
from accel_engine.inference.runtime import Arrays
from accel_engine.inference.text_encoding import TextEncoding, encode
from accel_engine.json_values import to_plain
from accel_engine.model_export.onnx_file import write_onnx
from accel_engine.model_export.raw_examples import RawExamples
from accel_engine.model_export.servable_model import Servable, servable, units_of
from accel_engine.model_export.serving_warmup import write_warmup
from accel_engine.model_export.text_cut import cut_text, has_text
from accel_engine.model_export.tflite_file import REPRESENTATIVE, write_tflite
from accel_engine.model_export.unrolled_model import is_recurrent, unrolled
from accel_engine.models.exported_model import INPUT
from accel_engine.private_names.keras_names import all_layers
from accel_engine.private_names.tflite_file_names import can_scale
from accel_engine.trained.bench.trained_runtime import computing_in_float32
from accel_engine.trained.open_trained import TrainedModel
from accel_engine.user_code import reason

WARM_UP_BATCHES = (1, 8, 32)
"""Examples in each warm-up request."""

HALVES = ("float16", "bfloat16")
"""Half precisions, which LiteRT and ONNX Runtime do not compute in."""


@dataclass(frozen=True, eq=False)
class Artefacts:
    """Writes one trained model in any format.

    Attributes:
        trained: The model and its data.
        name: The name under which it is served.
    """

    trained: TrainedModel
    name: str

    @cached_property
    def complete(self) -> Servable:
        """The model with all its preprocessing."""
        return servable(self.trained, self._preprocessing)

    def write(self, kind: str, quantize: str, path: Path) -> None:
        """Write the model.

        Args:
            kind: One of :data:`accel_engine.inference.open_model.FORMATS`.
            quantize: See :func:`accel_engine.model_export.tflite_file.write_tflite`.
            path: The file, or the directory of a SavedModel's version.

        Raises:
            ModelError: The model cannot be written in this format; why.
        """
        if kind == "keras":
            self._save(lambda: self.complete.with_labels().save(path))
            write_origin(path, self._described({}))
        elif kind == "savedmodel":
            self._save(lambda: self.complete.with_labels().export(path, verbose=False))
            write_warmup(path, self.name, self._warm_up_requests())
            self._describe(path / DESCRIPTION, {})
        else:
            _ = self.complete  # in the precision of the trained model
            with computing_in_float32(self.trained.model):
                self._write_numeric(kind, quantize, path)

    def _write_numeric(self, kind: str, quantize: str, path: Path) -> None:
        """Write a format that has neither operations on texts nor half precision."""
        self._check_precision()
        model, encodings = self._for_litert if kind == "tflite" else self._numeric
        if kind == "tflite":
            write_tflite(model, path, quantize, lambda: encode(self._training_examples(), encodings), self._added_units)
        else:
            write_onnx(model, path, {key: json.dumps(value) for key, value in self._described({}).items()})
        self._describe(sidecar_of(path), encodings)

    def half_precision(self, kind: str) -> str:
        """The half precision that the model computes in, if it is written in float32 instead; empty otherwise."""
        halves = (each.compute_dtype for each in all_layers(self.trained.model))
        return next((each for each in halves if each in HALVES), "") if kind in ("tflite", "onnx") else ""

    def _save(self, save: Callable[[], Any]) -> None:
        try:
            save()
        except Exception as error:  # of several kinds, from layers of the user's too
            raise ModelError(f"the model cannot be saved: {reason(error)}") from error

    def _check_precision(self) -> None:
        """Raise if the weights of a layer are in a half precision.

        Raises:
            ModelError: They are. Such a graph mixes types that LiteRT lacks, and that ONNX Runtime refuses.
        """
        for layer in all_layers(self.trained.model):
            if layer.compute_dtype in HALVES:
                raise ModelError(
                    f"the weights of {layer.name} are {layer.compute_dtype}, which this format does not take: export "
                    "it to keras or savedmodel, or train it with --precision float32"
                )

    @cached_property
    def _preprocessing(self) -> keras.Model | None:
        make = self.trained.dataset.preprocess
        return make() if make else None

    @cached_property
    def _numeric(self) -> tuple[keras.Model, dict[str, TextEncoding]]:
        """The model without string operations."""
        return self._without_text(self.trained.model, has_units=True)

    @cached_property
    def _for_litert(self) -> tuple[keras.Model, dict[str, TextEncoding]]:
        """The same with unrolled recurrent layers, and without units if they are added to the file."""
        model = self.trained.model
        return self._without_text(unrolled(model) if is_recurrent(model) else model, has_units=not self._added_units)

    @cached_property
    def _added_units(self) -> Standardization | None:
        """The units that a TFLite file gets after it was converted, so that they are not quantized."""
        return units_of(self.trained) if can_scale() else None

    def _without_text(self, model: keras.Model, *, has_units: bool) -> tuple[keras.Model, dict[str, TextEncoding]]:
        preprocessing = self._preprocessing
        if preprocessing is not None:
            if not has_text(preprocessing):
                return servable(self.trained, preprocessing, model, has_units=has_units).model, {}
            cut = cut_text(preprocessing, INPUT)
            return servable(self.trained, cut.model, model, has_units=has_units).model, cut.encodings
        if not has_texts(self.trained.dataset.spec.inputs):
            return servable(self.trained, None, model, has_units=has_units).model, {}
        cut = cut_text(model, INPUT)
        return servable(self.trained, None, cut.model, is_encoded=True).model, cut.encodings

    def _warm_up_requests(self) -> list[Arrays]:
        trained = self.trained
        first = RawExamples(trained.dataset, trained.split, trained.examples).first(max(WARM_UP_BATCHES))
        available = len(next(iter(first.values())))
        sizes = sorted({min(size, available) for size in WARM_UP_BATCHES})
        return [{name: array[:size] for name, array in first.items()} for size in sizes]

    def _training_examples(self) -> Arrays:
        dataset = self.trained.dataset
        return RawExamples(dataset, "training", dataset.train).spread(REPRESENTATIVE)

    def _describe(self, path: Path, encodings: dict[str, TextEncoding]) -> None:
        path.write_text(json.dumps(self._described(encodings), ensure_ascii=False, indent=1) + "\n", "utf-8")

    def _described(self, encodings: dict[str, TextEncoding]) -> dict[str, Any]:
        """What the file beside a model tells: where it is from, its classes, its signature, and how to encode texts."""
        dataset, served = self.trained.dataset, self.complete
        return {
            "name": self.name,
            "step": self.trained.step,
            "task": self.trained.task.name,
            "class_names": list(dataset.class_names),
            "feature_names": list(dataset.feature_names),
            "target_names": list(dataset.target_names),
            "vocabulary": list(dataset.vocabulary),
            "inputs": specs_of(served.model.input),
            "outputs": specs_of(served.model.output),
            "texts": to_plain(encodings),
        }


def specs_of(tensors: dict[str, Any]) -> dict[str, str]:
    """A line about each tensor, such as ``float32 28x28x1``."""
    return {name: str(ArraySpec(tuple(each.shape[1:]), str(each.dtype))) for name, each in tensors.items()}
