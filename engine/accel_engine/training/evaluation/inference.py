"""Predicts the classes of images with the model of a run's last checkpoint."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine import data
from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.folders.image_folder import decode, resized
from accel_engine.data.pixel_scaling import PIXELS, ValueRange
from accel_engine.errors import AccelError, DataError, ModelError
from accel_engine.plan import Plan
from accel_engine.run import RunReader
from accel_engine.run.chosen_checkpoint import chosen_step
from accel_engine.run.diagnostics import InputSpec, read
from accel_engine.training.checkpoints.restored_model import RestoredModel, restore_model
from accel_engine.training.core.run_scaling import recorded_scale, scale_of_data
from accel_engine.training.evaluation.input_specs import input_spec_of, not_images_reason

_NO_CLASSIFIER = "the run's model is not a classifier: it does not have an output for each class"


def classify_images(directory: Path, images: list[Path], top: int) -> dict[str, Any]:
    """Load the model and predict the classes of each image.

    Args:
        directory: Directory of a run that has a checkpoint.
        images: Image files.
        top: How many of the most probable classes to return for each.

    Returns:
        The fields of :class:`accel_engine.launch.prediction.Predictions`, as plain values.

    Raises:
        AccelError: The run's model cannot be restored, is not a classifier, or does not take images.
    """
    notes: list[str] = []
    step = chosen_step(directory, notes.append)
    with closing(RunReader(directory)) as reader:
        plan = Plan.from_mapping(reader.info().plan_values)
    input_spec = read(directory).input_spec or _input_spec_of_data(plan)
    if input_spec is None or not input_spec.is_image:
        why = not_images_reason(input_spec.shape) if input_spec else "its model has several inputs, or takes text"
        raise DataError(f"run {directory.name} does not take images: {why}")
    if not input_spec.names:
        raise ModelError(_NO_CLASSIFIER)
    described = dataset_of(input_spec)
    model = restore_model(plan, described, lambda model: recorded_scale(plan, input_spec, model), directory, step)
    if model.task.name not in ("classification", "multi-label"):
        raise ModelError(_NO_CLASSIFIER)
    return {"step": step, "notes": notes, "images": list(_predict_images(model, input_spec, images, top))}


def _input_spec_of_data(plan: Plan) -> InputSpec | None:
    """The input of a run's model, for a run that has not recorded it."""
    dataset = data.load(plan.data, plan.data_options)
    return input_spec_of(dataset, scale_of_data(plan, dataset))


def dataset_of(input_spec: InputSpec) -> Dataset:
    """What is known of a classifier's data from its recorded input, without examples."""
    dtype = np.uint8 if input_spec.integers else np.float32
    split = Split(np.empty((0, *input_spec.shape), dtype), np.empty(0, np.int32))
    values = PIXELS if input_spec.integers else ValueRange()
    return Dataset("recorded", split, class_names=input_spec.names, task="classification", value_range=values)


def _predict_images(
    model: RestoredModel, input_spec: InputSpec, images: list[Path], top: int
) -> Iterator[dict[str, Any]]:
    for path in images:
        try:
            x, notes = example_of(path, input_spec)
        except AccelError as error:
            yield {"choices": [], "notes": [], "problem": str(error)}
            continue
        probabilities = model.probabilities(x[np.newaxis])[0]
        best = np.argsort(-probabilities, kind="stable")[:top]
        names = [input_spec.names[place] if place < len(input_spec.names) else str(place) for place in best.tolist()]
        choices = [[name, float(probabilities[place])] for name, place in zip(names, best, strict=True)]
        yield {"choices": choices, "notes": notes, "problem": ""}


def example_of(path: Path, input_spec: InputSpec) -> tuple[npt.NDArray[Any], list[str]]:
    """Convert an image file to an example of the run's data; returns it with notes on the conversion.

    Raises:
        DataError: The file cannot be read.
    """
    notes = []
    height, width, channels = input_spec.shape
    pixels = decode(path)
    if channels == 1:
        if not (pixels == pixels[:, :, :1]).all():
            shades: npt.NDArray[np.float32] = np.asarray(pixels @ np.array([0.299, 0.587, 0.114]))  # ITU-R BT.601
            pixels = np.rint(shades).astype(np.uint8)[:, :, np.newaxis]
            notes.append("converted to grayscale")
        pixels = pixels[:, :, :1]
    if pixels.shape[:2] != (height, width):
        notes.append(f"resized from {pixels.shape[0]}x{pixels.shape[1]} to {height}x{width}")
        pixels = resized(pixels, height, width)
    if channels == 4:
        pixels = np.concatenate([pixels, np.full((height, width, 1), 255, np.uint8)], axis=2)
    if (input_spec.low, input_spec.high) == (0.0, 255.0):
        return pixels if input_spec.integers else pixels.astype(np.float32), notes
    x = input_spec.low + pixels.astype(np.float32) / 255 * (input_spec.high - input_spec.low)
    notes.append(f"pixels scaled to [{input_spec.low:g}, {input_spec.high:g}], as in the run's data")
    return np.rint(x) if input_spec.integers else x, notes
