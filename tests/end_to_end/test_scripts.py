"""Scripts that train as they do without accel-tui, and runs that equal what the scripts themselves record.

Each script runs plainly and with ``accel-tui run``: ``make scripts`` runs all of docs/recorded-scripts.md, else some.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine.events import EpochEnded, Event, Outcome, PartEnded, PartStarted, RunEnded, Validated
from accel_engine.run import RunReader, list_runs
from accel_engine.run.directory.run_paths import LOG

from .script_table import ROWS, SCRIPTS, Script, document_lines

DOCUMENT = Path(__file__).parents[2] / "docs" / "recorded-scripts.md"

USUAL = ("fit_in_process.py",)
"""Several fits, in forked processes. ``test_run_command.py`` has packages, exceptions and printed values."""

CHOSEN = [row for row in ROWS if os.environ.get("SCRIPTS") == "all" or row.command in USUAL]

ONE_THREAD = {"TF_NUM_INTEROP_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "1"}
"""TensorFlow with several threads adds some losses in an order that differs from run to run, in their last digit."""

History = dict[str, list[float]]


def test_the_document_has_exactly_these_rows() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    tables = text[text.index("## ") :].splitlines()
    assert [line for line in tables if line.startswith(("## ", "|"))] == [line for line in document_lines() if line]


def test_every_script_has_a_row() -> None:
    files = {path.name for path in SCRIPTS.glob("*.py")} | {
        str(path.relative_to(SCRIPTS)) for path in SCRIPTS.glob("*/__main__.py")
    }
    assert files == {row.file for row in ROWS}
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert {row.command for row in ROWS}.issuperset(USUAL)


@pytest.mark.parametrize("file", sorted(SCRIPTS.rglob("*.py")), ids=lambda path: path.name)
def test_no_script_knows_of_the_program(file: Path) -> None:
    assert "accel" not in file.read_text(encoding="utf-8").lower()


@dataclass(frozen=True)
class Result:
    """What a script did.

    Attributes:
        status: Its exit status.
        output: Its standard output.
        errors: Its standard error.
        folder: Where it ran.
    """

    status: int
    output: str
    errors: str
    folder: Path


@dataclass(frozen=True)
class RecordedFit:
    """A part of a run."""

    started: PartStarted
    ended: PartEnded
    epochs: list[EpochEnded]
    validations: list[Validated]


@pytest.mark.parametrize("row", CHOSEN, ids=lambda row: row.name)
def test_a_script_is_recorded_and_not_altered(program: Path, tmp_path: Path, row: Script) -> None:
    if row.package and find_spec(row.package) is None:
        pytest.skip(f"needs {row.package}")

    plain = run(tmp_path / "plain", [sys.executable, *row.python_words], row.input)
    recorded = run(tmp_path / "recorded", [str(program), *row.run_words], row.input)

    assert plain.status == row.status, plain.errors
    assert recorded.status == row.status, recorded.errors
    if row.repeatable:
        assert without_times(recorded.output) == without_times(plain.output)
        assert history_bytes(recorded, row) == history_bytes(plain, row)
    (found,) = list_runs()
    reader = RunReader(found.directory)
    events = reader.poll().events
    log = without_times((found.directory / LOG).read_text(encoding="utf-8"))
    assert has_lines(log, without_times(recorded.output))
    check_end(row, events)
    if row.patterns:
        check_values(row.patterns, reader, recorded.output)
        return
    parts = fits(events)
    check_parts(row, parts, json.loads(history_bytes(recorded, row)) if row.parts else [])
    check_steps(row, parts, reader)


def run(folder: Path, command: list[str], input_file: str) -> Result:
    """Run a command in a folder with the scripts."""
    shutil.copytree(SCRIPTS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    source = folder / input_file if input_file else Path(os.devnull)
    with source.open("rb") as file:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **ONE_THREAD},
            stdin=file,
            capture_output=True,
            text=True,
            check=False,
        )
    return Result(done.returncode, done.stdout, done.stderr, folder)


def history_bytes(result: Result, row: Script) -> bytes:
    """The history that the script wrote; nothing for a custom loop."""
    return b"" if row.patterns else (result.folder / row.history).read_bytes()


def without_times(output: str) -> list[str]:
    """The lines of an output without its durations, and without progress bars, which are drawn by time."""
    lines = [line for line in output.splitlines() if "\x08" not in line and "━" not in line]
    return [re.sub(r"\b\d+(\.\d+)?(ms|us|s| sec)\b(/step)?", "TIME", line) for line in lines if line]


def has_lines(log: Sequence[str], output: Sequence[str]) -> bool:
    """Whether the lines of the output are in the log, in their order; standard error comes between them."""
    following = iter(log)
    return all(any(line in each for each in following) for line in output)


def check_end(row: Script, events: Sequence[Event]) -> None:
    """The run ends as the script does, after its steps."""
    ended = events[-1]
    assert isinstance(ended, RunEnded)
    assert ended.outcome is (Outcome.FAILED if row.status else Outcome.FINISHED), ended.reason
    assert not row.status or f"status {row.status}" in ended.reason
    if not row.patterns:
        assert ended.steps == sum(part.epochs * part.steps + part.last_steps for part in row.parts)
        assert ended.epochs == sum(part.epochs for part in row.parts)


def fits(events: Sequence[Event]) -> list[RecordedFit]:
    """The parts of a run, each with the events between its start and its end."""
    parts: list[RecordedFit] = []
    started: PartStarted | None = None
    epochs: list[EpochEnded] = []
    validations: list[Validated] = []
    for event in events:
        match event:
            case PartStarted():
                assert started is None
                started, epochs, validations = event, [], []
            case EpochEnded():
                epochs.append(event)
            case Validated():
                validations.append(event)
            case PartEnded():
                assert started is not None
                parts.append(RecordedFit(started, event, epochs, validations))
                started = None
    assert started is None
    return parts


def check_parts(row: Script, parts: Sequence[RecordedFit], written: Any) -> None:
    """The parts are the script's, in its order, and their metrics are those that it wrote."""
    assert [part.started.part for part in parts] == [*range(1, len(row.parts) + 1)]
    assert [(part.started.name, len(part.epochs)) for part in parts] == [(part.name, part.epochs) for part in row.parts]
    step = 0
    for expected, part in zip(row.parts, parts, strict=True):
        assert part.started.step == step
        ends = [step, *(epoch.step for epoch in part.epochs)]
        assert [end - start for start, end in pairwise(ends)] == [expected.steps] * expected.epochs
        step += expected.epochs * expected.steps + expected.last_steps
        assert part.ended.step == step
        assert part.ended.outcome is (Outcome.FAILED if expected.last_steps else Outcome.FINISHED), part.ended.reason
    for part, history in zip([part for part in parts if part.epochs], histories(written), strict=True):
        check_metrics(part, history)


def histories(written: Any) -> list[History]:
    """The histories in a script's file: one, or several in a list or by name."""
    if isinstance(written, dict) and all(isinstance(value, list) for value in written.values()):
        return [written]
    return [*(written.values() if isinstance(written, dict) else written)]


def check_metrics(part: RecordedFit, history: History) -> None:
    """The metrics of each epoch and validation equal the history's."""
    training = {name for name in history if not name.startswith("val_") and name != "learning_rate"}
    validation = {name.removeprefix("val_") for name in history if name.startswith("val_")}
    assert len(part.validations) == (len(part.epochs) if validation else 0)
    for number, epoch in enumerate(part.epochs):
        assert epoch.metrics == pytest.approx({name: history[name][number] for name in training}, rel=1e-5)
    for number, validated in enumerate(part.validations):
        expected = {name: history[f"val_{name}"][number] for name in validation}
        assert validated.metrics == pytest.approx(expected, rel=1e-5)


def check_steps(row: Script, parts: Sequence[RecordedFit], reader: RunReader) -> None:
    """Every step was recorded, and the losses of an epoch's steps have its mean."""
    taken = sum(part.epochs * part.steps + part.last_steps for part in row.parts)
    batches = [*reader.steps(0, taken + 1)]
    assert [step for batch in batches for step in batch.steps.tolist()] == [*range(taken)]
    assert all(np.isfinite([*batch.series.values()]).any(axis=0).all() for batch in batches if len(batch.steps))
    if "loss" in reader.series():
        losses = [float(loss) for batch in batches for loss in batch.series["loss"]]
        for expected, part in zip(row.parts, parts, strict=True):
            weights = [1.0] * (expected.steps - 1) + [expected.last_batch]
            for epoch in part.epochs:
                mean = np.average(losses[epoch.step - expected.steps : epoch.step], weights=weights)
                assert mean == pytest.approx(epoch.metrics["loss"], rel=1e-4)


def check_values(patterns: Sequence[str], reader: RunReader, output: str) -> None:
    """Each line with a value is a step, and the series of each pattern has the values that the script printed."""
    lines = [line for line in output.splitlines() if any(re.search(pattern, line) for pattern in patterns)]
    batches = [*reader.steps(0, len(lines) + 1)]
    assert sum(len(batch.steps) for batch in batches) == len(lines) > 0
    for pattern in patterns:
        (name,) = re.compile(pattern).groupindex.keys() - {"step"}
        values = np.concatenate([batch.series[name] for batch in batches])
        printed = [float(found[name]) for line in lines for found in re.finditer(pattern, line)]
        assert values[np.isfinite(values)].tolist() == pytest.approx(printed, rel=1e-6)
