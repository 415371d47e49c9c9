"""Structures of arrays, such as the inputs of a model: an array, or a tuple, list or dictionary of structures.

``None`` stands for "nothing", for example no targets; it is not an array. Without TensorFlow.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from accel_engine.text import printable

Structure: TypeAlias = Any
"""An array, ``None``, or a tuple, list or dictionary of structures."""


class Batch(NamedTuple):
    """Some examples. The arrays of all parts have the same first dimension, one row per example."""

    inputs: Structure
    """What the model is called with."""
    targets: Structure = None
    """What its outputs are compared with; ``None`` if the examples have no targets."""
    weights: Structure = None
    """Sample weights; ``None`` if all examples weigh the same."""


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """The shape and type of an array of one example."""

    shape: tuple[int | None, ...]
    """Shape without the batch; ``None`` for a dimension of any size."""
    dtype: str
    """NumPy's name of the type; ``string`` for text."""

    def __str__(self) -> str:
        """Such as ``float32 28x28x1``."""
        sides = "x".join("?" if side is None else str(side) for side in self.shape)
        return f"{self.dtype} {sides}" if sides else self.dtype

    def fits(self, shape: Sequence[int | None]) -> bool:
        """Whether an array of one example may have a shape."""
        return len(shape) == len(self.shape) and all(
            side in (None, own) for side, own in zip(self.shape, shape, strict=True)
        )


def flatten(structure: Structure) -> list[Any]:
    """The arrays of a structure, with a dictionary's in the order of its sorted keys, as TensorFlow does."""
    return [leaf for _, leaf in named_leaves(structure)]


def decoded_texts(array: Any) -> list[str]:
    """The texts of an array of texts or UTF-8 bytes, one after the other."""
    return [text.decode() if isinstance(text, bytes) else str(text) for text in array.reshape(-1).tolist()]


def only_array(structure: Structure) -> Structure:
    """The array of a structure that has only one; otherwise the structure."""
    leaves = flatten(structure)
    return leaves[0] if len(leaves) == 1 else structure


def named_leaves(structure: Structure, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each array with its path, such as ``image`` or ``0/mask``; the path of a single array is ``name``."""
    if structure is None:
        return
    if isinstance(structure, dict):
        for key in sorted(structure):
            yield from named_leaves(structure[key], _joined(name, key))
    elif isinstance(structure, tuple | list):
        for index, part in enumerate(structure):
            yield from named_leaves(part, _joined(name, index))
    else:
        yield name, structure


def map_structure(function: Callable[..., Any], structure: Structure, *others: Structure) -> Structure:
    """Replace every array of a structure by the function's result; ``None`` stays.

    Args:
        function: Called with an array of each structure.
        structure: Gives the structure of the result.
        others: Structures of the same form.
    """
    if structure is None:
        return None
    if isinstance(structure, dict):
        return {key: map_structure(function, structure[key], *(other[key] for other in others)) for key in structure}
    if isinstance(structure, tuple | list):
        parts = [map_structure(function, *each) for each in zip(structure, *others, strict=True)]
        return type(structure)(*parts) if hasattr(structure, "_fields") else type(structure)(parts)
    return function(structure, *others)


def specs_to_json(structure: Structure) -> Any:
    """The specs of a structure in types of JSON: an object with a ``shape`` and a ``dtype`` for each."""
    if isinstance(structure, dict):
        return {"parts": {name: specs_to_json(part) for name, part in structure.items()}}
    if isinstance(structure, tuple | list):
        return [specs_to_json(part) for part in structure]
    return structure and {"shape": list(structure.shape), "dtype": structure.dtype}


def specs_from_json(value: Any) -> Structure:
    """The specs that :func:`specs_to_json` described; a list becomes a tuple.

    Raises:
        KeyError, TypeError, ValueError: The value does not describe specs.
    """
    if value is None:
        return None
    if isinstance(value, list):
        return tuple(map(specs_from_json, value))
    if "parts" in value:
        return {name: specs_from_json(part) for name, part in value["parts"].items()}
    return ArraySpec(tuple(side if side is None else int(side) for side in value["shape"]), str(value["dtype"]))


def describe(structure: Structure) -> str:
    """A line about the specs of a structure, such as ``float32 8`` or ``age: float32, city: string``."""
    return ", ".join(printable(f"{name}: {spec}" if name else str(spec)) for name, spec in named_leaves(structure))


def has_texts(structure: Structure) -> bool:
    """Whether an array of a structure of specs is text."""
    return any(spec.dtype == "string" for spec in flatten(structure))


def _joined(name: str, part: object) -> str:
    return f"{name}/{part}" if name else str(part)
