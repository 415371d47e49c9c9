"""Writes predictions to a CSV, JSON lines or ``.npz`` file, or as PNG images into a folder."""

import colorsys
import csv
import json
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.data_options import OF_CLASSES
from accel_engine.data.file_kinds import AUDIO_SUFFIXES, IMAGE_SUFFIXES
from accel_engine.errors import UsageError, file_errors
from accel_engine.files import replacing
from accel_engine.image_files import encode_png
from accel_engine.inference.output_prediction import OutputPrediction
from accel_engine.plan.options import FORCE, OptionSpec, option
from accel_engine.requests.predict import ExamplePredictions
from accel_engine.user_paths import absolute_path, exists, is_directory, is_file, user_path
from accel_tui.predictions.objects import MOST_COLUMNS, objects, records

SUFFIXES = (".csv", ".jsonl", ".npz")

_NOT_IN_NAMES = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]+')
"""Separators of directories, and what file systems refuse in names."""

_STEM_LENGTH = 60
"""Characters of a file's name, of up to four bytes each: file systems take 255 bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavingOptions:
    """Where predictions are written.

    Raises:
        UsageError: Predictions cannot be written there, even with ``force``.
    """

    output: str = option(
        "",
        OptionSpec(
            "Write to a .csv, .jsonl or .npz file, or images into a folder.",
            str,
            label="file",
            flags=("-o", "--output"),
            metavar="PATH",
            suffixes=SUFFIXES,
            read=str.strip,
        ),
    )
    force: bool = option(default=False, spec=FORCE)

    def __post_init__(self) -> None:
        if self.path:
            _check_predictions_path(self.path)

    @property
    def path(self) -> Path | None:
        """The file, or the folder; ``None`` for nowhere."""
        return user_path(self.output) if self.output else None


def _check_predictions_path(path: Path) -> None:
    """Check that predictions can be written to a path, if only in place of what is there.

    Raises:
        UsageError: The path has another suffix, its folder is missing, or it is a folder instead of a file, or the
            other way round.
    """
    if path.suffix and path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{path} must end with {', '.join(SUFFIXES)}, or have no suffix: a folder for images")
    if not is_directory(absolute_path(path).parent):
        raise UsageError(f"no such directory: {path.parent}")
    if exists(path) and is_directory(path) == bool(path.suffix):
        raise UsageError(f"{path} is {'a directory' if path.suffix else 'a file'}: choose another path")


def write_predictions(path: Path, found: ExamplePredictions, top: int) -> None:
    """Write predictions; the suffix tells the format.

    Args:
        path: The file, or the folder of images.
        found: The predictions.
        top: Number of the most probable classes of an image in JSON.

    Raises:
        UsageError: The predictions do not fit the format.
        RunError: The path cannot be written.
    """
    with file_errors(f"cannot write {path}"):
        if not path.suffix:
            _write_images(path, found)
            return
        with replacing(path) as partial:
            if path.suffix.lower() == ".npz":
                _write_arrays(partial, found)
            elif path.suffix.lower() == ".jsonl":
                with partial.open("w", encoding="utf-8") as file:
                    file.writelines(f"{json.dumps(each)}\n" for each in objects(found, top))
            else:
                _write_csv(partial, found)


def _write_csv(path: Path, found: ExamplePredictions) -> None:
    widest = max((output.values[0].size for output in found.outputs if len(output.values)), default=0)
    if widest > MOST_COLUMNS and any(output.task not in ("segmentation", "sequence") for output in found.outputs):
        raise UsageError(f"a prediction has {widest:,} values, too many for a row of CSV: use .npz or .jsonl")
    rows = list(records(found))
    names = list(dict.fromkeys(name for row in rows for name in row if name != "problem"))
    if found.problems:
        names.append("problem")
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:  # for names that are no text
        writer = csv.DictWriter(file, names, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _write_arrays(path: Path, found: ExamplePredictions) -> None:
    """Arrays of the examples without a problem: their names, and the values of each output."""
    arrays: dict[str, npt.NDArray[np.generic]] = {
        "example": np.array([found.names[place][1] for place in found.readable], str)
    }
    for output in found.outputs:
        lead = f"{output.name}_" if output.name else ""
        key = "probabilities" if output.task in OF_CLASSES else "labels" if output.chances is not None else "values"
        arrays[f"{lead}{key}"] = output.values
        if output.chances is not None:
            arrays[f"{lead}probabilities"] = output.chances
        if output.classes:
            arrays[f"{lead}class_names"] = np.array(output.classes, str)
    with path.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def _write_images(folder: Path, found: ExamplePredictions) -> None:
    """A PNG file for each example: its mask in the colours of the classes, or the image that the model made."""
    output = found.outputs[0]
    if len(found.outputs) > 1 or not is_image_output(output):
        raise UsageError(
            f"the predictions of {found.name} are not images: give a file that ends with {', '.join(SUFFIXES)}"
        )
    with tempfile.TemporaryDirectory(prefix=".accel-tui-", dir=absolute_path(folder).parent) as temporary:
        partial = Path(temporary) / "images"
        partial.mkdir()
        names = image_names([found.names[place] for place in found.readable])
        for row, name in enumerate(names):
            (partial / name).write_bytes(encode_png(pixels(output, row, found.limits)))
        if is_directory(folder):
            for file in partial.iterdir():
                file.replace(folder / file.name)
        else:
            partial.rename(folder)


def image_names(examples: Sequence[tuple[str, str]]) -> list[str]:
    """A file name for the image of each example, which no other one has, also where case does not count.

    Args:
        examples: The file of each example, and its name there, which may be any text.
    """
    taken: set[str] = set()
    names = []
    for path, name in examples:
        stem = Path(name).stem if path == name else f"{Path(path).stem}-{name}" if path else name
        stem = _NOT_IN_NAMES.sub("_", stem)[:_STEM_LENGTH]
        copies = (f"{stem}{f'-{number}' if number > 1 else ''}.png" for number in count(1))
        names.append(next(each for each in copies if each.casefold() not in taken))
        taken.add(names[-1].casefold())
    return names


def is_image_output(output: OutputPrediction) -> bool:
    """Whether each prediction of an output is an image, or a mask."""
    shape = output.values.shape[1:]
    return output.task == "segmentation" or (len(shape) == 3 and shape[2] in (1, 3))


def pixels(output: OutputPrediction, row: int, limits: tuple[float, float] | None) -> npt.NDArray[np.uint8]:
    """A prediction as an image, ``[height, width, channels]``.

    Args:
        output: A segmentation, or images.
        row: The example.
        limits: The values that are black and white; where they are unknown, 0 and 1, or 0 and 255 for larger values.
    """
    values = output.values[row]
    if output.task == "segmentation":
        return palette(len(output.classes))[values.reshape(values.shape[:2])]
    low, high = limits or (0.0, 255.0 if output.values.max(initial=0) > 2 else 1.0)
    shown: npt.NDArray[np.floating[Any]] = np.clip((np.nan_to_num(values) - low) / (high - low or 1), 0, 1)
    return np.asarray(np.rint(255 * shown), np.uint8)


def palette(classes: int) -> npt.NDArray[np.uint8]:
    """A colour for each class, ``[classes, 3]``: black for the first, then evenly spaced hues."""
    colours = [colorsys.hsv_to_rgb(place / max(classes - 1, 1), 0.75, 1.0) for place in range(classes - 1)]
    return np.asarray(np.rint(255 * np.array([(0.0, 0.0, 0.0), *colours])), np.uint8)


def files_of(path: Path) -> list[Path]:
    """The file of a path, or the images of a folder sorted by name, or else its sounds.

    Raises:
        UsageError: The folder has none, or cannot be read.
    """
    if not is_directory(path):
        return [path]
    with file_errors(f"cannot read the folder {path}", UsageError):
        files = sorted(filter(is_file, path.iterdir()))
    images, sounds = (
        [file for file in files if file.suffix.lower() in each] for each in (IMAGE_SUFFIXES, AUDIO_SUFFIXES)
    )
    if not images and not sounds:
        raise UsageError(f"the folder {path} contains no images ({', '.join(IMAGE_SUFFIXES)}) and no sounds")
    return images or sounds
