"""Measures the models that ``--model auto`` chooses from, on real data: one row for each data set and model.

    python benchmarks/quality.py DIRECTORY [TASK ...] [--seeds 2]

DIRECTORY has the files of ``quality_data.py``. Trains with ``accel-tui train``; the figures are of validation at
the end, and ``*`` marks what ``auto`` takes.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

NUMBERS = ("tabular", "linear", "mlp")
SEQUENCES = ("tcn", "lstm", "tabular")
IMAGES = ("cnn", "resnet20", "vit", "fashion-cnn")


@dataclass(frozen=True)
class Work:
    """Some data to train models on.

    Attributes:
        task: The group of works.
        data: A built-in dataset, or a file or folder of ``quality_data.py``.
        models: The models.
        epochs: How long.
        metric: What validation measures: ``accuracy``, or ``loss``, which is the mean squared error for numbers.
        flags: Other options of ``accel-tui train``.
    """

    task: str
    data: str
    models: tuple[str, ...]
    epochs: int
    metric: str = "accuracy"
    flags: str = ""


WORKS = (
    Work("images", "digits", IMAGES, 5),
    Work("images", "mnist5k.npz", IMAGES, 5),
    Work("images", "digits-on-photos.npz", IMAGES, 5),
    Work("images", "photos.npz", IMAGES, 5),
    Work("photos", "photos96.npz", ("cnn", "resnet20", "vit", "MobileNetV2"), 5),
    Work("table-classes", "wine.csv", NUMBERS, 60, flags="--batch-size 16 --split stratified --validation-split 0.3"),
    Work("table-classes", "cancer.csv", NUMBERS, 30, flags="--batch-size 16 --split stratified --validation-split 0.3"),
    Work("table-classes", "weather.csv", NUMBERS, 30, flags="--batch-size 32 --validation-split 0.3"),
    Work("table-classes", "marriage.csv", NUMBERS, 10, flags="--target rate_marriage --validation-split 0.3"),
    Work("table-numbers", "visits.csv", NUMBERS, 10, "loss", "--target mdvis --task regression --validation-split 0.3"),
    Work("table-numbers", "diabetes.csv", NUMBERS, 60, "loss", "--batch-size 16 --validation-split 0.3"),
    Work(
        "table-numbers", "boston.csv", NUMBERS, 60, "loss", "--batch-size 16 --task regression --validation-split 0.3"
    ),
    Work(
        "table-numbers", "autompg.csv", NUMBERS, 60, "loss", "--batch-size 16 --task regression --validation-split 0.3"
    ),
    Work("sequences", "mnist1d.npz", SEQUENCES, 30, flags="--batch-size 100"),
    Work("sequences", "ItalyPowerDemand.npz", SEQUENCES, 100, flags="--batch-size 8"),
    Work("sequences", "BasicMotions.npz", SEQUENCES, 100, flags="--batch-size 8"),
    Work("sequences", "JapaneseVowels.npz", SEQUENCES, 30, flags="--batch-size 16"),
    Work("sequences", "GunPoint.npz", SEQUENCES, 100, flags="--batch-size 8"),
    Work("sequences", "OSULeaf.npz", SEQUENCES, 60, flags="--batch-size 16"),
    Work(
        "forecasts",
        "sunspots.csv",
        SEQUENCES,
        60,
        "loss",
        "--time YEAR --window 33 --validation-split 0.3 --target SUNACTIVITY --batch-size 16",
    ),
    Work(
        "forecasts",
        "co2.csv",
        SEQUENCES,
        10,
        "loss",
        "--time week --window 52 --target co2 --validation-split 0.2 --batch-size 32",
    ),
    Work(
        "forecasts", "temperatures.csv", SEQUENCES, 5, "loss", "--time date --window 48 --target temp --batch-size 64"
    ),
    Work("texts", "docstrings", ("bag-of-words", "text-cnn"), 10, flags="--batch-size 32 --validation-split 0.2"),
    Work("tokens", "reference.txt", ("gpt",), 20, "loss", "--batch-size 12 --window 64 --steps-per-epoch 100"),
    Work("pixels", "masks.npz", ("unet",), 3),
    Work("codes", "mnist5k.npz", ("autoencoder",), 10, "loss", "--task reconstruction"),
)


def measure(work: Work, model: str, directory: Path, seed: int) -> float:
    """The metric of validation at the end of one run."""
    data = directory / work.data
    command = [sys.executable, "-m", "accel_tui", "train", "--json", "--model", model]
    command += ["--data", str(data) if data.exists() else work.data, "--epochs", str(work.epochs)]
    command += ["--seed", str(seed), "--validation", "end", *work.flags.split()]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return float(next(event[work.metric] for event in events if event["event"] == "validated"))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=", ".join(dict.fromkeys(work.task for work in WORKS)))
    parser.add_argument("--models", nargs="+", help="only these")
    parser.add_argument("--data", nargs="+", help="only these")
    parser.add_argument("--seeds", type=int, default=2)
    wanted = parser.parse_args()
    unknown = {*wanted.tasks} - {work.task for work in WORKS}
    if unknown:
        parser.error(f"no such task: {', '.join(sorted(unknown))}")
    print("| task | data | model | measure | mean (smallest to largest) |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as home:
        os.environ["ACCEL_TUI_HOME"] = home
        for work in WORKS:
            for model in work.models if not wanted.tasks or work.task in wanted.tasks else ():
                if model not in (wanted.models or [model]) or work.data not in (wanted.data or [work.data]):
                    continue
                found = [measure(work, model, wanted.directory, seed) for seed in range(wanted.seeds)]
                span = f"{statistics.fmean(found):.4g} ({min(found):.4g} to {max(found):.4g})"
                print(f"| {work.task} | {Path(work.data).stem} | {model} | {work.metric} | {span} |", flush=True)


if __name__ == "__main__":
    main()
