"""Predicts the examples of files with a trained model."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.file_kinds import AUDIO_SUFFIXES, IMAGE_SUFFIXES
from accel_engine.data.structure import ArraySpec, flatten, has_texts, map_structure
from accel_engine.data.tables.table_file import SUFFIXES as TABLES
from accel_engine.errors import AccelError, DataError
from accel_engine.inference.output_prediction import OutputPrediction, rows_not_finite
from accel_engine.plan import Plan
from accel_engine.requests.predict import ExamplePredictions, PredictionRequest
from accel_engine.requests.protocol.request import Send, reports, tells, unheard
from accel_engine.trained.open_trained import TrainedModel, open_trained
from accel_engine.trained.outputs import OutputForm, PredictedOutput
from accel_engine.trained.prediction import table_examples
from accel_engine.trained.prediction.examples import (
    Examples,
    read_arrays,
    read_images,
    read_lines,
    sound_example,
    text_examples,
)
from accel_engine.trained.prediction_files import ARRAYS

_ROWS, _BYTES = 1024, 1 << 24
"""The most examples of a batch, and their bytes."""


def predict(request: PredictionRequest, send: Send = unheard) -> ExamplePredictions:
    """Predict examples.

    Args:
        request: The model and the examples.
        send: Takes the number of examples done, and of all of a file.

    Raises:
        AccelError: The model cannot be used, or a file has no examples for it.
    """
    target = request.target
    reference = Plan(model=str(target), custom_objects=request.custom_objects) if target.is_file() else target
    model = open_trained(reference, data=None, checkpoint=request.checkpoint, doing=tells(send))
    tells(send)("predicting")
    found = [PredictedOutput() for _ in model.output_forms]
    names: list[tuple[str, str]] = []
    problems: dict[int, str] = {}
    notes = list(model.notes)
    for path, examples in _read(model, request.files, request.texts):
        problems |= {len(names) + place: problem for place, problem in examples.problems.items()}
        names += [(path, name) for name in examples.names]
        notes += examples.notes
        if examples.inputs is not None:
            _add(model, examples, found, reports(send))
    predicted = list(map(_predicted, model.output_forms, found))
    readable = [place for place in range(len(names)) if place not in problems]
    rows = sorted(set().union(*map(rows_not_finite, predicted)))
    problems |= {readable[row]: f"the model's outputs for {names[readable[row]][1]} are not finite" for row in rows}
    return ExamplePredictions(
        model.name,
        model.step,
        model.form.kind,
        tuple(names),
        dict(sorted(problems.items())),
        tuple(_without(rows, each) for each in predicted),
        model.limits,
        tuple(dict.fromkeys(notes)),
    )


def _predicted(form: OutputForm, found: PredictedOutput) -> OutputPrediction:
    """All predictions of an output, also of no example."""
    return OutputPrediction(
        form.name,
        form.task.name,
        tuple(form.classes),
        tuple(form.columns),
        _joined(found.values) if found.values else np.empty((0, len(form.classes)), np.float32),
        _joined(found.chances) if found.chances else None,
    )


def _without(rows: Sequence[int], output: OutputPrediction) -> OutputPrediction:
    """The predictions without some rows."""
    if not rows:
        return output
    chances = None if output.chances is None else np.delete(output.chances, rows, axis=0)
    return replace(output, values=np.delete(output.values, rows, axis=0), chances=chances)


def _joined(parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """The predictions of all batches.

    Raises:
        DataError: The batches have different shapes, for example if the sizes of examples vary.
    """
    if len({part.shape[1:] for part in parts}) > 1:
        raise DataError("the examples of the files have different shapes: predict one file at a time")
    return np.concatenate(parts)


def _read(model: TrainedModel, files: Sequence[Path], texts: Sequence[str]) -> Iterator[tuple[str, Examples]]:
    if texts:
        spec = model.dataset.spec.inputs
        if not isinstance(spec, ArraySpec) or spec.dtype != "string":
            raise DataError(f"{model.name} does not take texts: its data is {model.form.kind}")
        yield "", text_examples(texts, spec)
    for path in files:
        try:
            yield str(path), _examples(model, path)
        except AccelError as error:
            if len(files) == 1 and not texts:
                raise
            yield str(path), Examples((str(path),), None, {0: str(error)})


def _examples(model: TrainedModel, path: Path) -> Examples:
    """Read a file as the model's data.

    Raises:
        DataError: The file has no examples for the model.
    """
    suffix, form, spec = path.suffix.lower(), model.form, model.dataset.spec.inputs
    if not model.is_file and form.kind == "series":
        return table_examples.read_last_windows(path, form, model.plan)
    if suffix in ARRAYS and form.kind != "table":
        return read_arrays(path, spec, model.plan.features)
    if form.table is not None:
        return table_examples.read_rows(path, form.table)
    if form.kind == "table" and model.is_file:
        return table_examples.read_raw_columns(path, spec, model.categories)
    if isinstance(spec, ArraySpec):
        if has_texts(spec) and suffix in TABLES:
            return table_examples.read_text_column(path, form.feature_names, spec)
        if has_texts(spec) and suffix == ".txt":
            return read_lines(path, spec)
        if form.kind == "audio" and suffix in AUDIO_SUFFIXES:
            return sound_example(path, spec, form.sample_rate, divides=model.plan.window is not None)
        if (image := model.input_spec) and image.is_image and suffix in IMAGE_SUFFIXES:
            return read_images(path, image)
        if not model.is_file and form.kind == "images" and suffix in IMAGE_SUFFIXES:
            raise DataError(f"{path.name} is an image, which {model.name} does not take: its examples are {spec}")
    if model.is_file and form.kind != "text":
        raise DataError(
            f"{model.name} takes arrays ({', '.join(ARRAYS)}), not {path.name}: give the run, which has the "
            "preprocessing of other files"
        )
    raise DataError(f"{path.name} has no examples for {model.name}, whose data is {form.kind}")


def _add(
    model: TrainedModel, examples: Examples, found: list[PredictedOutput], progress: Callable[[int, int], object]
) -> None:
    arrays = flatten(examples.inputs)
    count = len(arrays[0])
    size = max(1, sum(array.nbytes for array in arrays) // max(count, 1))
    rows = max(1, min(_ROWS, _BYTES // size))
    windows: list[list[Any]] = []
    for start in range(0, count, rows):
        part = map_structure(lambda array: tf.convert_to_tensor(array[start : start + rows]), examples.inputs)  # noqa: B023
        outputs = flatten(model.outputs_of(part))
        if examples.are_windows and count > 1:
            windows.append(outputs)
        else:
            for each, form, output in zip(found, model.output_forms, outputs, strict=True):
                each.add(form, output)
        progress(min(start + rows, count), count)
    for each, form, *outputs in zip(found, model.output_forms, *windows, strict=True) if windows else ():
        each.add(form, tf.concat(outputs, 0), of_windows=True)
