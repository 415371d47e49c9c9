"""Latency, size and held-out metrics of trained models in each format: ``python benchmarks/formats.py [NAME ...]``.

It trains four models of different kinds for a short time: ``cnn`` on digits, ``tabular`` on a table with categories and
missing numbers, ``lstm`` on a series, ``gpt`` on the reference of Python that ``help`` shows. ``accel-tui export --to
all`` writes and verifies each format, and ``accel-tui bench`` measures single examples, one after the other
(``single-stream``), and the metrics on the validation examples. The table and the series are made from a seed.
"""

import argparse
import csv
import json
import math
import os
import pydoc_data.topics
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TEXT_CHARACTERS = 200_000


@dataclass(frozen=True)
class Work:
    """A model to train.

    Attributes:
        name: Of the model.
        data: For the table.
        write: Writes the data to a file, if it is not built in.
        flags: Of ``accel-tui train``; ``DATA`` is the file.
    """

    name: str
    data: str
    write: Callable[[Path], object] | None
    flags: str


def write_table(path: Path) -> None:
    """2,000 customers, of whom one in ten does what the rule does not say."""
    draws = random.Random(0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("age", "income", "city", "plan", "bought"))
        for _ in range(2000):
            age, income = draws.randint(18, 90), draws.gauss(40, 15)
            city, plan = draws.choice(("Rome", "Oslo", "Kyiv", "")), draws.choice(("basic", "full"))
            bought = (income > 35 + (age > 60) * 10 - (city == "Oslo") * 15) != (draws.random() < 0.1)
            known = "" if draws.random() < 0.05 else f"{income:.2f}"
            writer.writerow((age, known, city, plan, "yes" if bought else "no"))


def write_series(path: Path) -> None:
    """3,000 hours of two waves with noise."""
    draws = random.Random(0)
    lines = ["hour,value"]
    for hour in range(3000):
        value = 100 + 10 * math.sin(hour * math.tau / 24) + 4 * math.sin(hour * math.tau / 168) + draws.gauss(0, 1)
        lines.append(f"{hour},{value:.4f}")
    path.write_text("\n".join(lines) + "\n")


def write_text(path: Path) -> None:
    """The first characters of Python's reference."""
    text = "\n\n".join(pydoc_data.topics.topics.values())
    path.write_text(text[:TEXT_CHARACTERS], encoding="utf-8")


WORKS = (
    Work("cnn", "digits", None, "--data digits --epochs 5"),
    Work("tabular", "table.csv", write_table, "--data DATA --target bought --epochs 20 --batch-size 64"),
    Work("lstm", "series.csv", write_series, "--data DATA --time hour --target value --window 48 --epochs 5"),
    Work("gpt", "text.txt", write_text, "--data DATA --epochs 1"),
)


def accel_tui(*words: str, status: int = 0) -> str:
    """The output of a command."""
    command = [str(Path(sys.executable).parent / "accel-tui"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != status:
        raise SystemExit(f"{' '.join(words)}: {done.stderr}")
    return done.stdout


def formats_of(work: Work, folder: Path, seconds: float) -> list[dict[str, Any]]:
    """What was measured of each format; of one that was not written, why."""
    data = folder / work.data
    if work.write:
        work.write(data)
    accel_tui("train", "--model", work.name, *work.flags.replace("DATA", str(data)).split())
    exported = accel_tui("export", "last", "--to", "all", "-o", str(folder / work.name), "--json")
    original, *formats = map(json.loads, exported.splitlines())
    written = [each for each in formats if each["path"]]
    bench = ("bench", *(each["path"] for each in written), "--scenario", "single-stream", "--xla", "off")
    lines = accel_tui(*bench, "--devices", "cpu", "--seconds", str(seconds), "--json").splitlines()
    measured = dict(zip((each["model"] for each in written), map(json.loads, lines[:-1]), strict=True))
    first = {"format": "trained model", **original}
    return [first, *({**each, **measured.get(each["model"], {}), "format": each["model"]} for each in formats)]


def row(work: Work, found: dict[str, Any], metric: str) -> str:
    """A row of the table."""
    cells = [work.name, work.data, found["format"]]
    if problem := found["problem"]:
        return f"| {' | '.join(cells)} | {problem} | | | |"
    value = (found["metrics"] or {}).get(metric)
    times = (f"{found[name] * 1e6:,.0f}" if name in found else "" for name in ("p50", "p99"))
    size = f"{found['size'] / 1000:,.0f}"
    shown = "none" if value is None else f"{metric} {value:.4f}"
    return f"| {' | '.join([*cells, *times, size, shown])} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which models")
    parser.add_argument("--seconds", type=float, default=5.0, help="time limit of a measurement")
    options = parser.parse_args()
    print("| model | data | format | p50, us | p99, us | kB | held-out metric |\n|---|---|---|---|---|---|---|")
    for work in WORKS:
        if options.names and work.name not in options.names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.environ["ACCEL_TUI_HOME"] = str(Path(folder, "home"))
            rows = formats_of(work, Path(folder), options.seconds)
        metric = "accuracy" if "accuracy" in rows[0]["metrics"] else "loss"
        for found in rows:
            print(row(work, found, metric), flush=True)


if __name__ == "__main__":
    main()
