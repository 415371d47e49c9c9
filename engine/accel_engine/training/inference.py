"""What the model of a run's last checkpoint says of images."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine import data
from accel_engine.data.folder import decode, resized
from accel_engine.errors import AccelError, DataError
from accel_engine.plan import Plan
from accel_engine.run import RunReader
from accel_engine.run.diagnostics import InputSpec, read
from accel_engine.run.paths import latest_checkpoint
from accel_engine.training.evaluation_report import in_words, intake_of
from accel_engine.training.restored_model import RestoredModel, restored
from accel_engine.training.run_scaling import scale_of_data


def predict(directory: Path, images: list[Path], most: int) -> dict[str, Any]:
    """Load the model and show it each image.

    Args:
        directory: A run's that has a checkpoint.
        images: Files.
        most: How many classes to tell of each.

    Returns:
        The fields of :class:`accel_engine.prediction.Predictions`, of plain values.

    Raises:
        AccelError: The run has no model that images could be shown to.
    """
    step = latest_checkpoint(directory)
    with closing(RunReader(directory)) as reader:
        plan = Plan.from_mapping(reader.info().values)
    intake = read(directory).input_spec or _intake_of_data(plan)
    if not intake.is_image:
        raise DataError(f"run {directory.name} cannot be shown images: its {in_words(intake.shape)}")
    model = restored(plan, intake, directory, step)
    return {"step": step, "images": list(_said(model, intake, images, most))}


def _intake_of_data(plan: Plan) -> InputSpec:
    """What the model of a run takes that recorded nothing of it."""
    dataset = data.load(plan.data, image_size=plan.image_size, seed=plan.seed)
    return intake_of(dataset, scale_of_data(plan, dataset))


def _said(model: RestoredModel, intake: InputSpec, images: list[Path], most: int) -> Iterator[dict[str, Any]]:
    for path in images:
        try:
            x, notes = example_of(path, intake)
        except AccelError as error:
            yield {"choices": [], "notes": [], "problem": str(error)}
            continue
        given = model.probabilities(x[np.newaxis])[0]
        best = np.argsort(-given, kind="stable")[:most]
        names = [intake.names[place] if place < len(intake.names) else str(place) for place in best.tolist()]
        choices = [[name, float(given[place])] for name, place in zip(names, best, strict=True)]
        yield {"choices": choices, "notes": notes, "problem": ""}


def example_of(path: Path, intake: InputSpec) -> tuple[npt.NDArray[Any], list[str]]:
    """The image of a file as the run's data has its examples, and what was done to it for that.

    Raises:
        DataError: It cannot be read.
    """
    notes = []
    height, width, channels = intake.shape
    pixels = decode(path)
    if channels == 1:
        if not (pixels == pixels[:, :, :1]).all():
            shades: npt.NDArray[np.float32] = np.asarray(pixels @ np.array([0.299, 0.587, 0.114]))  # ITU-R BT.601
            pixels = np.rint(shades).astype(np.uint8)[:, :, np.newaxis]
            notes.append("its colours were made shades of grey")
        pixels = pixels[:, :, :1]
    if pixels.shape[:2] != (height, width):
        notes.append(f"{pixels.shape[0]}x{pixels.shape[1]} pixels were brought to {height}x{width}")
        pixels = resized(pixels, height, width)
    if channels == 4:
        pixels = np.concatenate([pixels, np.full((height, width, 1), 255, np.uint8)], axis=2)
    if (intake.low, intake.high) == (0.0, 255.0):
        return pixels if intake.integers else pixels.astype(np.float32), notes
    x = intake.low + pixels.astype(np.float32) / 255 * (intake.high - intake.low)
    notes.append(f"black was made {intake.low:g} and white {intake.high:g}, as in the run's data")
    return np.rint(x) if intake.integers else x, notes
