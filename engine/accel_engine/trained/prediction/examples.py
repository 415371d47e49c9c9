"""Reads examples to predict from files of arrays, images, sounds and texts, and says why some cannot be predicted."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.array_file import ArrayFile, Header, opened
from accel_engine.data.changes import Verb
from accel_engine.data.characters import UTF_8, decoded, encoding_name
from accel_engine.data.dataset import nonfinite_rows
from accel_engine.data.folders.audio_folder import SoundForm
from accel_engine.data.structure import ArraySpec, Structure, map_structure, named_leaves
from accel_engine.errors import AccelError, DataError, file_errors
from accel_engine.image_files import read_example
from accel_engine.run.diagnostics import InputSpec

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Examples of one file, or of texts.

    Attributes:
        names: What each example is called, with a problem or without, ``[given]``.
        inputs: A structure of arrays ``[readable, ...]``, as the run's data has them; ``None`` if all have a problem.
        problems: Why an example cannot be predicted, by its index in ``names``.
        notes: Notes for the user.
        are_windows: Whether the arrays are the windows of one example, whose prediction is the mean of theirs.
    """

    names: Sequence[str]
    inputs: Structure
    problems: Mapping[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    are_windows: bool = False

    @property
    def readable(self) -> npt.NDArray[np.intp]:
        """The indices of the examples that can be predicted."""
        return np.array([place for place in range(len(self.names)) if place not in self.problems], np.intp)


def without_problems(inputs: Structure, problems: Iterable[int]) -> Structure:
    """The arrays without the rows that have a problem."""
    rows = list(problems)
    return map_structure(lambda array: np.delete(array, rows, axis=0), inputs) if rows else inputs


_SUFFIXES = ("", "_test", "_val", "_train")
"""What may follow the name of an input in a file; an earlier one is preferred."""


def read_arrays(path: Path, specs: Structure, features: Sequence[str] = ()) -> Examples:
    """Read the inputs of a model.

    Args:
        path: An ``.npz`` or ``.npy`` file.
        specs: The specs of an example's inputs: one, or a dictionary by the names of arrays.
        features: The arrays that the run's plan names as inputs.

    Raises:
        DataError: The file cannot be read, or lacks an array of an input's shape and type.
    """
    with opened(path) as file:
        if isinstance(specs, ArraySpec):
            inputs: Structure = _read(file, _single(file.headers, specs, features), specs)
        elif isinstance(specs, dict) and all(isinstance(spec, ArraySpec) for spec in specs.values()):
            inputs = {name: _read(file, _named(file.headers, name), spec) for name, spec in specs.items()}
        else:
            raise DataError("the model's inputs have no names by which arrays of a file could be chosen")
    leaves = dict(named_leaves(inputs))
    counts = {len(array) for array in leaves.values()}
    if len(counts) > 1:
        raise DataError(f"the inputs of {path.name} have different numbers of rows: {sorted(counts)}")
    problems: dict[int, str] = {}
    for name, array in leaves.items():
        for row in np.flatnonzero(nonfinite_rows(array)).tolist():
            where = f"row {row + 1:,} of {name or 'the array'} in {path.name}"
            problems.setdefault(row, f"{where} has a number that is not finite, or too large for {array.dtype}")
    names = tuple(str(row + 1) for row in range(counts.pop()))
    return Examples(names, without_problems(inputs, problems), problems)


def _single(headers: Mapping[str, Header], spec: ArraySpec, features: Sequence[str]) -> str:
    """The name of the array with a model's only input."""
    for name in (*features, "x"):
        if found := _with_suffix(headers, name):
            return found
    if len(headers) == 1:
        return next(iter(headers))
    fitting = [name for name, header in headers.items() if spec.fits(header.shape[1:])]
    if len(fitting) == 1:
        return fitting[0]
    raise DataError(f"no array is called {' or '.join(features or ('x',))}; there are {_listed(headers)}")


def _with_suffix(headers: Mapping[str, Header], name: str) -> str:
    """The first array with an input's name, or with a suffix; empty if there is none."""
    return next((f"{name}{suffix}" for suffix in _SUFFIXES if f"{name}{suffix}" in headers), "")


def _named(headers: Mapping[str, Header], name: str) -> str:
    if found := _with_suffix(headers, name):
        return found
    raise DataError(f"there is no array {name!r}, which the model needs; there are {_listed(headers)}")


def _listed(headers: Mapping[str, Header]) -> str:
    return ", ".join(map(repr, headers)) or "none"


def _read(file: ArrayFile, name: str, spec: ArraySpec) -> npt.NDArray[Any]:
    """Read an array in the shape and type of an input, ``[examples, ...]``."""
    shape, _ = file.headers[name]
    for rows in (shape, (1, *shape)):  # of many examples, or a single one
        for given in (rows, (*rows, 1)):  # a channel may be missing
            if (len(given) > 1 or not spec.shape) and spec.fits(given[1:]):
                return _typed(file.read(name).reshape(given), name, spec)
    raise DataError(f"the array {name} has the shape {list(shape)}; the model takes examples of {spec}")


def _typed(array: npt.NDArray[Any], name: str, spec: ArraySpec) -> npt.NDArray[Any]:
    """The array in an input's type; a number that is too large for it becomes infinite.

    Raises:
        DataError: The array has other values than the input: texts, fractions or numbers out of range.
    """
    if spec.dtype == "string":
        if array.dtype.kind not in "US":
            raise DataError(f"the array {name} is {array.dtype}; the model takes texts")
        return array.astype(str).astype(object)
    wanted = np.dtype(spec.dtype)
    if array.dtype.kind not in "biuf":
        raise DataError(f"the array {name} is {array.dtype}; the model takes {wanted}")
    with np.errstate(invalid="ignore", over="ignore"):
        typed = array.astype(wanted)
    if wanted.kind in "biu" and not np.array_equal(typed, array):
        raise DataError(f"the array {name} has values that are not {wanted}, which the run's data has")
    return typed


def read_images(path: Path, spec: InputSpec) -> Examples:
    """Read an image as an example of the run's data."""
    try:
        x, notes = read_example(path, spec.shape, spec.low, spec.high, integers=spec.integers)
    except AccelError as error:
        return Examples((str(path),), None, {0: str(error)})
    return Examples((str(path),), x[np.newaxis], notes=tuple(f"{path}: {note}" for note in notes))


def sound_example(path: Path, spec: ArraySpec, rate: int, *, divides: bool) -> Examples:
    """Read a sound as an example of the run's data.

    Args:
        path: The file.
        spec: ``[samples, 1]``.
        rate: Samples per second of the run's sounds.
        divides: Whether a long sound is predicted by all its windows; otherwise by the loudest one.
    """
    form = SoundForm(spec.shape[0] or 0, rate, divides=divides)
    try:
        header = form.check(str(path))
        windows = form.windows_of(str(path), header)
        sounds = np.stack([form.read(window)[0] for window in windows])
    except AccelError as error:
        return Examples((str(path),), None, {0: str(error)})
    samples = f"from {form.length_of(header):,} to {form.samples:,} samples"
    details: dict[Verb, str] = {
        "mixed": f"from {header.channels} channels into one",
        "resampled": f"from {header.rate:,} to {rate:,} samples per second",
        "padded": f"with silence {samples}",
        "divided": f"into {len(windows):,} windows of {form.samples:,} samples; the prediction is the mean of theirs",
        "cut": f"{samples}, where it is loudest",
    }
    notes = tuple(f"{path}: {verb} {details[verb]}" for verb in form.changes_of(header))
    return Examples((str(path),), sounds, notes=notes, are_windows=True)


def text_examples(lines: Sequence[str], spec: ArraySpec) -> Examples:
    """Texts as examples.

    Args:
        lines: The texts.
        spec: ``[]`` or ``[1]``.
    """
    array = np.array(lines, object).reshape(len(lines), *(1 for _ in spec.shape))
    return Examples(tuple(lines), array)


def read_lines(path: Path, spec: ArraySpec) -> Examples:
    """Read a file with a text in each line.

    Raises:
        DataError: The file cannot be read, or has no text.
    """
    with file_errors(f"cannot read {path}", DataError):
        text, encoding = decoded(path.read_bytes(), str(path))
    found = [line for line in text.splitlines() if line.strip()]
    if not found:
        raise DataError(f"{path} has no text")
    notes = () if encoding == UTF_8 else (f"{path}: converted from {encoding_name(encoding)}",)
    return replace(text_examples(found, spec), notes=notes)
