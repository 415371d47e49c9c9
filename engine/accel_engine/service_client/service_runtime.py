"""A model of a service as a runtime: what all protocols have in common."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.structure import ArraySpec
from accel_engine.errors import ModelError
from accel_engine.inference.runtime import Arrays, check_inputs
from accel_engine.service_client.transport import TOO_LARGE, ServiceError, patiently

BAD_REQUEST = 400
"""The status of a server that does not take the body."""

LARGEST = 32
"""Examples of a request at most: servers limit the size of requests, or of batches."""


class ServiceRuntime(ABC):
    """A model of a service; see :class:`accel_engine.inference.runtime.Runtime`. Usable from several threads.

    Attributes:
        version: Its version; empty if the service does not tell.
        platform: What runs it, as the service tells: ``onnx_onnxv1``, ``tensorflow_savedmodel``; empty if unknown.
        server: The server's name and version; empty if the service does not tell.
        nan_as_null: Whether the service takes ``null`` for NaN; found by trying.
        largest: Examples of a request at most; found by trying, from :data:`LARGEST` down.
    """

    name: str
    """The protocol."""
    size = 0
    inputs: Mapping[str, ArraySpec]
    outputs: Mapping[str, ArraySpec]
    model: str
    """The model's name."""
    version = ""
    platform = ""
    server = ""
    nan_as_null = False
    largest = LARGEST

    def run(self, inputs: Arrays) -> dict[str, npt.NDArray[np.generic]]:
        """See :meth:`accel_engine.inference.runtime.Runtime.run`; in requests of at most :attr:`largest` examples.

        Raises:
            ModelError: The inputs do not fit the model, or an answer cannot be parsed.
            ServiceError: The service does not answer, or refuses.
        """
        check_inputs(inputs, self.inputs)
        count = len(next(iter(inputs.values())))
        has_nan = any(array.dtype.kind == "f" and bool(np.isnan(array).any()) for array in inputs.values())
        had_null = self.nan_as_null  # which another thread may find meanwhile
        try:
            parts = self._parts(inputs, count)
        except ServiceError as error:
            if error.status != BAD_REQUEST or had_null or not has_nan:
                raise
            self.nan_as_null = True
            parts = self._parts(inputs, count)
        found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        for name, array in found.items():
            if len(array) != count:
                raise ModelError(f"the output {name} has {len(array)} examples, not {count}")
        return found

    def _parts(self, inputs: Arrays, count: int) -> list[dict[str, npt.NDArray[Any]]]:
        """The outputs of each request."""
        parts, start = [], 0
        while start < count:
            size = self.largest  # which another thread may change meanwhile
            request = self.prepare({name: array[start : start + size] for name, array in inputs.items()})
            try:
                parts.append(self.parse(patiently(self.send, request)))
            except ServiceError as error:
                if error.status != TOO_LARGE or size == 1:
                    raise
                self.largest = size // 2
            else:
                start += size
        return parts

    @abstractmethod
    def prepare(self, inputs: Arrays) -> Any:
        """Prepare a request with some examples, ready to be sent."""

    @abstractmethod
    def send(self, request: Any) -> Any:
        """Send a request and return its answer, not parsed; this is what a bench measures.

        Raises:
            ServiceError: The service does not answer, or refuses.
        """

    @abstractmethod
    def parse(self, answer: Any) -> dict[str, npt.NDArray[Any]]:
        """The outputs of an answer.

        Raises:
            ModelError: The answer cannot be parsed.
        """


def example_spec(shape: list[Any] | tuple[Any, ...], dtype: str) -> ArraySpec:
    """The spec of an example from a tensor's shape with its batch, in which -1 is any size."""
    sides = tuple(None if side is None or int(side) < 0 else int(side) for side in shape[1:])
    return ArraySpec(sides, dtype)
