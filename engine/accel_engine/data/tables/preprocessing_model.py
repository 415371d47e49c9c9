"""Converts the columns of a table to one matrix, by a Keras model that is saved with the trained model.

All numbers are standardised by one layer, in float64 where float32 would lose digits, and the mean of the training rows
replaces missing ones. Keras' ``FeatureSpace`` encodes categories and texts. It would have a layer for each number:
applying, saving and loading those of 784 columns takes 57 seconds instead of 10 (measured on two cores). Nor is it
adapted from a dataset, as that takes 11 seconds for 50,000 rows of 14 columns, and adapted vocabularies are saved as
lines of a file, from which an empty text does not come back.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.column_format import ColumnFormat
from accel_engine.data.data_options import Progress, no_progress
from accel_engine.data.standardization import Standardization
from accel_engine.data.standardization_model import standardized
from accel_engine.data.tables.preprocessing import Preprocessing
from accel_engine.data.tables.raw_inputs import RawInput

CATEGORIES = ".categories"
"""The end of the name of the layer that has the categories of an input; what precedes it is the input's name."""

_ROWS = 8192
"""Rows that are converted at a time."""


@dataclass(frozen=True, eq=False)
class PreprocessingModel:
    """Applies what was learned from the training rows.

    Attributes:
        learned: The statistics and vocabularies.
        columns: The columns of the inputs, in the order of the file.
    """

    learned: Preprocessing
    columns: tuple[ColumnFormat, ...] = ()

    def __call__(self) -> Any:
        """The Keras model."""
        return self.model

    @cached_property
    def model(self) -> Any:
        """A Keras model from a dictionary of raw inputs, ``[n, 1]`` each, to the matrix, float32 ``[n, features]``."""
        with _float32():
            return self._build()

    def apply(
        self, inputs: Sequence[RawInput], rows: npt.NDArray[np.intp], progress: Progress = no_progress
    ) -> npt.NDArray[np.float32]:
        """Convert some rows.

        Args:
            inputs: The raw inputs, all rows.
            rows: Row numbers.
            progress: Reports the number of rows converted.

        Returns:
            float32 ``[len(rows), features]``.
        """
        matrix = np.empty((len(rows), len(self.learned.feature_names)), np.float32)
        with tf.device("CPU:0"):
            for start in range(0, len(rows), _ROWS):
                part = rows[start : start + _ROWS]
                matrix[start : start + len(part)] = self._convert(
                    {key: tf.constant(array) for key, array in self.raw(inputs, part).items()}
                )
                progress(start + len(part), len(rows))
        return matrix

    def raw(self, inputs: Sequence[RawInput], rows: npt.NDArray[np.intp]) -> dict[str, npt.NDArray[Any]]:
        """What the model takes for some rows: texts, numbers as float32, or float64 where that loses digits.

        Args:
            inputs: The raw inputs, all rows.
            rows: Row numbers.

        Returns:
            An array ``[len(rows), 1]`` for each input that varies, by key.
        """
        learned, found = self.learned, {}
        for raw in inputs:
            if raw.key in learned.names:
                values = raw.values[rows, np.newaxis]
                is_single = raw.kind == "number" and raw.key not in learned.precise
                found[raw.key] = values.astype(np.float32) if is_single else values
        return found

    @cached_property
    def _convert(self) -> Any:
        return tf.function(self.model, reduce_retracing=True)

    def _build(self) -> Any:
        precise = self.learned.precise
        inputs: dict[str, Any] = {
            key: keras.Input((1,), name=key, dtype="float64" if key in precise else "float32")
            for key in self.learned.numbers
        }
        parts = []
        if self.learned.numbers:
            normalized = self._standardized(inputs)
            # The mean becomes 0, which replaces missing numbers.
            parts.append(keras.ops.where(keras.ops.isnan(normalized), 0.0, normalized))
        if self.learned.flagged:
            flags = [keras.ops.cast(keras.ops.isnan(inputs[key]), "float32") for key in self.learned.flagged]
            parts.append(_concatenate(flags, "numbers.flagged"))
        if self.learned.vocabularies or self.learned.words:
            space = self._feature_space()
            inputs |= space.get_inputs()
            parts.append(space.get_encoded_features())
        return keras.Model(inputs, _concatenate(parts, "features.joined"), name="preprocessing")

    def _standardized(self, inputs: dict[str, Any]) -> Any:
        """All numbers standardised, float32 ``[n, numbers]``; float64 and float32 ones each by one layer."""
        learned, parts = self.learned, []
        if not learned.precise or len(learned.precise) == len(learned.numbers):
            joined = _concatenate([inputs[key] for key in learned.numbers], "numbers.joined")
            return standardized(joined, learned.scaling, "numbers")
        order: list[int] = []
        for name, is_precise in (("single", False), ("double", True)):
            places = [place for place, key in enumerate(learned.numbers) if (key in learned.precise) == is_precise]
            joined = _concatenate([inputs[learned.numbers[place]] for place in places], f"numbers.{name}")
            scaling = Standardization(learned.scaling.mean[places], learned.scaling.scale[places])
            parts.append(standardized(joined, scaling, f"numbers.{name}"))
            order += places
        return keras.ops.take(_concatenate(parts, "numbers.joined"), np.argsort(order).tolist(), axis=1)

    def _feature_space(self) -> Any:
        feature = keras.utils.FeatureSpace.feature
        lookup = keras.layers.StringLookup
        features = {
            key: feature("string", lookup(vocabulary=list(known), name=f"{key}{CATEGORIES}"), "one_hot")
            for key, known in self.learned.vocabularies.items()
        }
        for key, words in self.learned.words.items():
            features[key] = feature("string", _text_encoder(words), "float")
        space = keras.utils.FeatureSpace(features)
        space.build_from_config({})  # all layers have their vocabularies: there is nothing to adapt
        return space


@dataclass(frozen=True, slots=True, eq=False)
class LazyMatrix:
    """Rows of the matrix, converted when they are needed.

    Attributes:
        model: Converts them.
        inputs: The raw inputs, all rows.
        rows: The rows' numbers.
    """

    model: PreprocessingModel
    inputs: Sequence[RawInput]
    rows: npt.NDArray[np.intp]

    @property
    def shape(self) -> tuple[int, int]:
        """``(rows, features)``."""
        return len(self.rows), len(self.model.learned.feature_names)

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32."""
        return np.dtype(np.float32)

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return 4 * self.shape[0] * self.shape[1]

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.float32]:
        """Convert some rows."""
        return self.model.apply(self.inputs, self.rows[rows])

    def __len__(self) -> int:
        return len(self.rows)


def _text_encoder(words: Sequence[str]) -> Any:
    """Whether each word occurs in a text. Keras infers a dimension too many for the layer in a functional model."""
    layer = keras.layers.TextVectorization(output_mode="multi_hot", vocabulary=list(words))
    return keras.Sequential([keras.Input((1,), dtype="string"), layer, keras.layers.Reshape((len(words) + 1,))])


def _concatenate(parts: Sequence[Any], name: str) -> Any:
    """Join parts along the columns. Names with a dot are unlike those of most columns, and of Keras' own layers."""
    return keras.layers.Concatenate(name=name, dtype=parts[0].dtype)(list(parts)) if len(parts) > 1 else parts[0]


@contextmanager
def _float32() -> Iterator[None]:
    """Layers that are made here compute in float32 on the CPU, whatever precision the run trains with."""
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float32")
    try:
        with tf.device("CPU:0"):
            yield
    finally:
        keras.config.set_dtype_policy(policy)
