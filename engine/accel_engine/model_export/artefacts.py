"""Writes a trained model in a format, its recurrent layers unrolled where LiteRT needs that; proof.py verifies it."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import keras

from accel_engine.data.standardization import Standardization
from accel_engine.data.structure import ArraySpec, flatten, has_texts
from accel_engine.errors import ModelError
from accel_engine.formats import ModelFormat
from accel_engine.inference.runtime import Arrays
from accel_engine.inference.text_encoding import TextEncoding
from accel_engine.json_values import to_plain
from accel_engine.model_export.raw_examples import RawExamples
from accel_engine.model_export.servable_model import Servable, servable, units_of
from accel_engine.model_export.text_cut import cut_text, has_text
from accel_engine.models.exported_model import INPUT
from accel_engine.private_names.keras_names import all_layers
from accel_engine.private_names.tflite_flatbuffer import can_edit_flatbuffer
from accel_engine.trained.bench.trained_runtime import computing_in_float32
from accel_engine.trained.open_trained import TrainedModel
from accel_engine.user_code import model_errors

HALVES = ("float16", "bfloat16")
"""Half precisions, which only TensorFlow computes in."""


@dataclass(frozen=True, eq=False)
class Artefacts:
    """Writes one trained model in any format."""

    trained: TrainedModel
    """The model and its data."""
    name: str
    """The name under which it is served."""

    @cached_property
    def complete(self) -> Servable:
        """The model with all its preprocessing."""
        return servable(self.trained, self._preprocessing)

    @property
    def labelled(self) -> keras.Model:
        """See :class:`accel_engine.formats.ModelToWrite`."""
        return self.complete.with_labels()

    def write(self, kind: ModelFormat, precision: str, path: Path) -> None:
        """Write the model.

        Args:
            kind: The format.
            precision: The name of one of its precisions.
            path: The file, or the directory of a SavedModel's version.

        Raises:
            ModelError: The model cannot be written in this format; the message says why.
        """
        if kind.by_tensorflow:
            kind.write(self, precision, path)
            return
        _ = self.complete  # in the precision of the trained model
        with computing_in_float32(self.trained.model):
            self._check_precision()
            kind.write(self, precision, path)

    def half_precision(self, kind: ModelFormat) -> str:
        """The half precision that the model computes in, if it is written in float32 instead; empty otherwise."""
        halves = (each.compute_dtype for each in all_layers(self.trained.model))
        return next((each for each in halves if each in HALVES), "") if not kind.by_tensorflow else ""

    def _check_precision(self) -> None:
        """Check that no layer computes in a half precision.

        Raises:
            ModelError: A layer does. Its graph mixes types that LiteRT lacks, and that ONNX Runtime refuses.
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
    def numeric(self) -> tuple[keras.Model, dict[str, TextEncoding]]:
        """The model without string operations."""
        return self._without_text(self.trained.model, has_units=True)

    @cached_property
    def unrolled(self) -> tuple[keras.Model, dict[str, TextEncoding]]:
        """The same with unrolled recurrent layers, and without units if they are added to the file."""
        model = self.trained.model
        return self._without_text(unrolled(model) if is_recurrent(model) else model, has_units=not self.added_units)

    @cached_property
    def added_units(self) -> Standardization | None:
        """The units that a TFLite file gets after it was converted, so that they are not quantized."""
        return units_of(self.trained) if can_edit_flatbuffer() else None

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

    def first_examples(self, sizes: Sequence[int]) -> list[Arrays]:
        """See :class:`accel_engine.formats.ModelToWrite`; fewer examples if there are not enough."""
        trained = self.trained
        first = RawExamples(trained.dataset, trained.split, trained.examples).first(max(sizes))
        available = len(next(iter(first.values())))
        fitting = sorted({min(size, available) for size in sizes})
        return [{name: array[:size] for name, array in first.items()} for size in fitting]

    def training_examples(self, count: int) -> Arrays:
        """Raw training examples, from all parts of the data."""
        dataset = self.trained.dataset
        return RawExamples(dataset, "training", dataset.train).spread(count)

    def write_description(self, path: Path, encodings: Mapping[str, TextEncoding]) -> None:
        """Write :meth:`described` as JSON."""
        path.write_text(json.dumps(self.described(encodings), ensure_ascii=False, indent=1) + "\n", "utf-8")

    def described(self, encodings: Mapping[str, TextEncoding]) -> dict[str, Any]:
        """The content of the file beside a model: its origin, classes and signature, and how to encode texts."""
        dataset, served = self.trained.dataset, self.complete
        return {
            "name": self.name,
            "step": self.trained.step,
            "task": self.trained.task.name,
            "class_names": list(dataset.class_names),
            "feature_names": list(dataset.feature_names),
            "target_names": list(dataset.target_names),
            "vocabulary": list(dataset.vocabulary),
            "inputs": tensor_lines(served.model.input),
            "outputs": tensor_lines(served.model.output),
            "texts": to_plain(encodings),
        }


def tensor_lines(tensors: dict[str, Any]) -> dict[str, str]:
    """A line about each tensor, such as ``float32 28x28x1``."""
    return {name: str(ArraySpec(tuple(each.shape[1:]), str(each.dtype))) for name, each in tensors.items()}


MAX_STEPS = 256
"""Steps that are unrolled at most; a graph of more takes minutes to convert."""


def is_recurrent(model: keras.Model) -> bool:
    """Whether a model has recurrent layers."""
    return any(isinstance(layer, keras.layers.RNN) for layer in all_layers(model))


def unrolled(model: keras.Model) -> keras.Model:
    """A copy of a model with the same weights, vocabularies and other states, whose recurrent layers are unrolled.

    Raises:
        ModelError: A recurrent layer takes too many steps, or an unknown number.
    """
    for layer in all_layers(model):
        steps = _steps(layer) if isinstance(layer, keras.layers.RNN) else 0
        if steps is None or steps > MAX_STEPS:
            count = "a number of steps that the data does not fix" if steps is None else f"{steps:,} steps"
            raise ModelError(
                f"LiteRT runs recurrent layers unrolled, over at most {MAX_STEPS} steps: {layer.name} takes {count}"
            )
    with model_errors("LiteRT runs recurrent layers only unrolled, and the model cannot be copied"):
        copy = keras.models.clone_model(model, clone_function=_unrolled_layer, recursive=True)
        copy.set_weights(model.get_weights())
        for layer, its_copy in zip(all_layers(model), all_layers(copy), strict=True):
            _copy_state(layer, its_copy)
    return copy


def _copy_state(layer: Any, copy: Any) -> None:
    """Give a copy of a layer what Keras saves of it, as an adapted vocabulary is neither a weight nor in the config."""
    state: dict[str, Any] = {}
    layer.save_own_variables(state)
    copy.load_own_variables(state)
    if hasattr(layer, "save_assets"):
        with tempfile.TemporaryDirectory() as folder:
            layer.save_assets(folder)
            copy.load_assets(folder)


def _unrolled_layer(layer: keras.Layer) -> keras.Layer:
    config = layer.get_config()
    if isinstance(layer, keras.layers.RNN):
        config["unroll"] = True
    elif isinstance(layer, keras.layers.Bidirectional):
        for part in ("layer", "backward_layer"):
            if config.get(part):
                config[part]["config"]["unroll"] = True
    copy = type(layer).from_config(config)
    for each in (copy, getattr(copy, "forward_layer", None), getattr(copy, "backward_layer", None)):
        if isinstance(each, keras.layers.RNN) and each.go_backwards and each.return_sequences:
            _zero_masked_steps(each)
    return copy


def _zero_masked_steps(layer: Any) -> None:
    """Let an unrolled layer that goes backwards give zeros for the masked steps, if it is to.

    Keras masks its outputs, which are in reversed order, with the mask in the order of the inputs (3.15).
    """
    if not layer.zero_output_for_mask:
        return
    layer.zero_output_for_mask, loop = False, layer.inner_loop

    def zeroing(sequences: Any, initial_state: Any, mask: Any, training: Any = False) -> Any:
        last, outputs, states = loop(sequences, initial_state, mask, training)
        if (given := next(iter(flatten(mask)), None)) is not None:
            keeps = keras.ops.expand_dims(keras.ops.flip(given, 1), -1)
            outputs = keras.ops.where(keeps, outputs, keras.ops.zeros_like(outputs))
        return last, outputs, states

    layer.inner_loop = zeroing


def _steps(layer: Any) -> int | None:
    """Steps of a recurrent layer's inputs; ``None`` if they are not fixed."""
    shapes = getattr(layer, "_build_shapes_dict", None) or {}
    shape = next(iter(shapes.values()), None)
    return shape[1] if shape else None
