"""``accel-tui predict``: classifies images with the model of a run."""

from pathlib import Path

import click

from accel_engine.data.folders.image_header import SUFFIXES
from accel_engine.errors import UsageError
from accel_engine.launch.prediction import Prediction
from accel_engine.launch.prediction import predict as predict_images
from accel_engine.run import find
from accel_engine.user_paths import exists, is_directory, is_file
from accel_tui.cli.output import print_to_stderr, write, write_json
from accel_tui.cli.table import table

EPILOG = """\b
Examples:
  accel-tui predict last photo.jpg
  accel-tui predict k3fp photos/ --top 1 --json | jq -r '.top[0].label'
"""


@click.command(epilog=EPILOG)
@click.argument("run")
@click.argument("images", metavar="IMAGE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--top", default=3, show_default=True, type=click.IntRange(1), metavar="K", help="Number of classes to show."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per image.")
def predict(run: str, images: tuple[Path, ...], top: int, as_json: bool) -> int:
    """Classify each IMAGE, a file or a folder of images, with the model of RUN.

    The weights are those of the last checkpoint, or of the best one if the run has restore_best.
    PNG, JPEG, GIF and BMP files are converted to the size, colours and scaling of the training data.
    Prediction runs on the CPU and does not slow down a live run. The exit status is 1 if an image or
    the model cannot be read, 2 if a file does not exist.
    """
    directory = find(run)
    if missing := [str(path) for path in images if not exists(path)]:
        raise UsageError(f"no such file: {', '.join(missing)}")
    predictions = predict_images(directory, [file for path in images for file in _files(path)], top)
    for note in predictions.notes:
        print_to_stderr(note)
    readable = [prediction for prediction in predictions.images if not prediction.problem]
    if as_json:
        for prediction in predictions.images:
            write_json({"run": directory.name, "step": predictions.step, **_to_json(prediction)})
    elif readable:
        write(table(("IMAGE", "PROBABILITY", "LABEL"), [row for each in readable for row in _rows(each)]))
        notes = [f"{prediction.image}: {'; '.join(prediction.notes)}" for prediction in readable if prediction.notes]
        if notes:
            write("\n".join(["", *notes]))
    for prediction in predictions.images:
        if prediction.problem:
            print_to_stderr(prediction.problem)
    return int(len(readable) < len(predictions.images))


def _files(path: Path) -> list[Path]:
    """The image files of a path: the file itself, or those of a folder sorted by name."""
    if not is_directory(path):
        return [path]
    try:
        found = sorted(file for file in path.iterdir() if file.suffix.lower() in SUFFIXES and is_file(file))
    except OSError as error:
        raise UsageError(f"cannot read the folder {path}: {error.strerror}") from error
    if not found:
        raise UsageError(f"the folder {path} contains no images ({', '.join(SUFFIXES)})")
    return found


def _rows(prediction: Prediction) -> list[tuple[str, ...]]:
    names = [prediction.image, *[""] * len(prediction.choices)]
    return [
        (name, f"{100 * choice.probability:10.1f}%", choice.label)
        for name, choice in zip(names, prediction.choices, strict=False)
    ]


def _to_json(prediction: Prediction) -> dict[str, object]:
    return {
        "image": prediction.image,
        "top": [{"label": choice.label, "probability": choice.probability} for choice in prediction.choices],
        "notes": prediction.notes,
        "problem": prediction.problem,
    }
