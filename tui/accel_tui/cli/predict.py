"""``accel-tui predict``: what the model of a run says that images show."""

import json
from pathlib import Path

import click

from accel_engine.data.image_header import SUFFIXES
from accel_engine.errors import UsageError
from accel_engine.prediction import Prediction
from accel_engine.prediction import predict as ask
from accel_engine.run import find
from accel_tui.cli.output import print_line, write
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
    "--top", default=3, show_default=True, type=click.IntRange(1), metavar="K", help="How many classes to tell."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line for each image on standard output.")
def predict(run: str, images: tuple[Path, ...], top: int, as_json: bool) -> int:
    """Say what each IMAGE shows, by the model of RUN's last checkpoint; of a folder, each image in it.

    The files are PNG, JPEG, GIF or BMP, and are brought to what the run was trained on: its size, its
    colours or shades, its range. This is done on the CPU, so that a run that goes on is left alone. The
    status is 1 when an image or the model could not be read, and 2 when a file is not there.
    """
    directory = find(run)
    if missing := [str(path) for path in images if not path.exists()]:
        raise UsageError(f"no such file: {', '.join(missing)}")
    said = ask(directory, [file for path in images for file in _files(path)], top)
    told = [prediction for prediction in said.images if not prediction.problem]
    if as_json:
        for prediction in said.images:
            write(json.dumps({"run": directory.name, "step": said.step, **_wire(prediction)}))
    elif told:
        write(table(("IMAGE", "PROBABILITY", "LABEL"), [row for each in told for row in _rows(each)]))
        noted = [f"{prediction.image}: {'; '.join(prediction.notes)}" for prediction in told if prediction.notes]
        if noted:
            write("\n".join(["", *noted]))
    for prediction in said.images:
        if prediction.problem:
            print_line(prediction.problem)
    return int(len(told) < len(said.images))


def _files(path: Path) -> list[Path]:
    """The images that are meant: the file, or all of a folder, by their names."""
    if not path.is_dir():
        return [path]
    try:
        found = sorted(file for file in path.iterdir() if file.suffix.lower() in SUFFIXES and file.is_file())
    except OSError as error:
        raise UsageError(f"cannot look into {path}: {error.strerror}") from error
    if not found:
        raise UsageError(f"the folder {path} has no images ({', '.join(SUFFIXES)}): name files, or a folder that has")
    return found


def _rows(prediction: Prediction) -> list[tuple[str, ...]]:
    names = [prediction.image, *[""] * len(prediction.choices)]
    return [
        (name, f"{100 * choice.probability:10.1f}%", choice.label)
        for name, choice in zip(names, prediction.choices, strict=False)
    ]


def _wire(prediction: Prediction) -> dict[str, object]:
    return {
        "image": prediction.image,
        "top": [{"label": choice.label, "probability": choice.probability} for choice in prediction.choices],
        "notes": prediction.notes,
        "problem": prediction.problem,
    }
