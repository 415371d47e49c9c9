"""Encodes texts as numbers for models without string operations, from vocabularies in a JSON file; without TensorFlow.

TFLite and ONNX models take a number for each category, and numbers for the words of a text. The file beside such a
model, ``MODEL.json``, says how to make them; :class:`TextEncoding` does it as Keras' ``StringLookup`` and
``TextVectorization`` do.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.structure import ArraySpec, decoded_texts
from accel_engine.data.tables.preprocessing import words_of
from accel_engine.errors import ModelError
from accel_engine.files import regular
from accel_engine.inference.runtime import Arrays, Runtime, check_inputs
from accel_engine.json_values import decode

CATEGORY, WORDS, MULTI_HOT = "category", "words", "multi_hot"
"""A number for a category; the number of each word of a text; whether a text has each word."""


@dataclass(frozen=True, slots=True)
class TextEncoding:
    """How an input's texts become numbers."""

    kind: str
    """:data:`CATEGORY`, :data:`WORDS` or :data:`MULTI_HOT`."""
    vocabulary: tuple[str, ...]
    """Categories or words by their numbers."""
    unknown: int
    """The number of all others."""
    shape: tuple[int, ...] = ()
    """The shape of a raw example: ``()`` or ``(1,)``."""
    length: int = 0
    """Words of a text that count, filled up with 0; or the number of values for :data:`MULTI_HOT`."""
    ngrams: tuple[int, ...] = (1,)
    """Numbers of consecutive words that count as one."""
    dtype: str = "int64"
    """NumPy's name of the type of the numbers."""

    def encode(self, texts: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The numbers of some texts.

        Args:
            texts: ``[batch]`` or ``[batch, 1]``, text or bytes.

        Returns:
            ``[batch]`` or ``[batch, 1]`` as ``shape`` says for categories, ``[batch, length]`` for texts.
        """
        numbers = {word: number for number, word in enumerate(self.vocabulary)}
        values = decoded_texts(texts)
        if self.kind == CATEGORY:
            found = [numbers.get(value, self.unknown) for value in values]
            return np.array(found, self.dtype).reshape(len(values), *self.shape)
        rows = np.zeros((len(values), self.length), self.dtype)
        for row, value in zip(rows, values, strict=True):
            found = [numbers.get(word, self.unknown) for word in self._words(value)]
            if self.kind == WORDS:
                row[: len(found)] = found[: self.length]
            else:
                row[found] = 1
        return rows

    def _words(self, text: str) -> list[str]:
        words = words_of(text)
        return [
            " ".join(words[start : start + size])
            for size in self.ngrams
            for start in range(max(0, len(words) - size + 1))
        ]


@dataclass(frozen=True, slots=True)
class _Sidecar:
    """The contents of the file beside a model."""

    texts: dict[str, TextEncoding]


def read_encodings(path: Path) -> dict[str, TextEncoding]:
    """The encodings by input, of the file beside a model.

    Raises:
        ModelError: The file cannot be read, or does not describe encodings.
    """
    try:
        return decode(regular(path).read_text("utf-8"), _Sidecar).texts
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} does not say how texts are encoded: {error}") from error


def encode_texts(raw: Arrays, encodings: Mapping[str, TextEncoding]) -> dict[str, npt.NDArray[Any]]:
    """Raw inputs with their texts encoded."""
    return {name: encodings[name].encode(array) if name in encodings else array for name, array in raw.items()}


def sidecar_of(path: Path) -> Path:
    """The file beside a model that says how its texts are encoded."""
    return path.with_name(f"{path.name}.json")


class EncodedRuntime:
    """A model with the encoding of its texts; see :class:`accel_engine.inference.runtime.Runtime`.

    Args:
        runtime: Takes numbers.
        encodings: How to make them, by input.
    """

    def __init__(self, runtime: Runtime, encodings: Mapping[str, TextEncoding]) -> None:
        self.name = runtime.name
        self.size = runtime.size
        texts = {name: ArraySpec(each.shape, "string") for name, each in encodings.items()}
        self.inputs: Mapping[str, ArraySpec] = {**runtime.inputs, **texts}
        self.outputs = runtime.outputs
        self._runtime = runtime
        self._encodings = encodings

    def run(self, inputs: Arrays) -> dict[str, npt.NDArray[np.generic]]:
        """See :meth:`accel_engine.inference.runtime.Runtime.run`."""
        check_inputs(inputs, self.inputs)
        return self._runtime.run(encode_texts(inputs, self._encodings))


def with_encodings(runtime: Runtime, path: Path) -> Runtime:
    """The runtime of a model's file, with the encoding of its texts if there is a file that has it.

    Raises:
        ModelError: The file with the encoding cannot be read.
    """
    sidecar = sidecar_of(path)
    encodings = read_encodings(sidecar) if sidecar.is_file() else {}
    return EncodedRuntime(runtime, encodings) if encodings else runtime
