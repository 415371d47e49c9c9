"""The look at data before training."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from accel_engine import data as datasets
from accel_engine.data import DataOptions, DatasetEntry
from accel_engine.data.source import EntryColumn
from accel_engine.data.structure import ArraySpec, Batch
from accel_engine.data_profile.described_data import DescribedData

HOUSES = DatasetEntry(
    "houses",
    "A table",
    "tables:TableSource",
    examples=90,
    validation_examples=8,
    test_examples=2,
    classes=0,
    kind="table",
    task="regression",
    spec=Batch({"area": ArraySpec((), "float32"), "city": ArraySpec((), "string")}, ArraySpec((), "float32")),
    columns=(
        EntryColumn("area", "number", "input", 3, "20 to 410"),
        EntryColumn("c\x1b[2Jity", "category", "input", 0, "Bonn, Köln"),
        EntryColumn("price", "number", "target", 0, "0.1 to 9"),
    ),
    samples=(("0", "area 120, city Bonn, price 3"),),
    notes=("the column id is not used",),
)
PETS = DatasetEntry(
    "pets", "Images", "folders.image_folder:ImageFolder", (32, 32, 3), 3, 90, 10,
    class_names=("cat", "dog", "emu"), class_counts=(60, 30, 0),
)  # fmt: skip


@pytest.fixture
def npz(tmp_path: Path) -> Path:
    path = tmp_path / "mine.npz"
    np.savez(path, x=np.zeros((50, 4), np.float32), y=np.arange(50) % 5)
    return path


def survey_is(monkeypatch: pytest.MonkeyPatch, entry: DatasetEntry) -> list[DataOptions]:
    asked: list[DataOptions] = []

    def survey(_: DatasetEntry, options: DataOptions) -> DatasetEntry:
        asked.append(options)
        return entry

    monkeypatch.setattr(datasets, "survey", survey)
    return asked


def test_what_only_tensorflow_reads_is_read_by_an_engine(monkeypatch, run_command, tmp_path):
    asked = []
    monkeypatch.setattr(
        "accel_tui.cli.data.ask", lambda request: asked.append(request.plan.data) or DescribedData.of(PETS)
    )
    survey_is(monkeypatch, replace(HOUSES, reader="prepared.tfrecord:TFRecord"))
    (tmp_path / "mine.tfrecord").touch()
    for arguments in ("", "--brief"):
        assert not run_command(f"data {tmp_path / 'mine.tfrecord'} {arguments}").status
    assert asked == [str(tmp_path / "mine.tfrecord")]


def test_a_file_is_looked_at_without_reading_it(run_command, npz):
    result = run_command(f"data {npz} --brief --validation-split 0.2 --split ordered")
    assert result.status == 0
    rows = [line.split() for line in result.lines]
    assert ["inputs", "float32", "4"] in rows
    assert ["classes", "5"] in rows
    assert ["training", "40", "examples"] in rows
    assert ["validation", "10", "examples"] in rows
    assert not any(row[:1] == ["test"] for row in rows)


def test_the_examples_of_a_file_are_looked_at(run_command, npz):
    result = run_command(f"data {npz}")
    rows = [line.split("  ", 1) for line in result.lines]
    assert ["constant", "     column 0, column 1, column 2, column 3"] in rows
    assert ["duplicates", "   44 of 45 examples equal another one"] in rows
    assert any(row[0] == "baseline" and "most frequent class" in row[1] for row in rows)


def test_columns_missing_values_and_examples_are_listed_without_control_characters(run_command, npz, monkeypatch):
    asked = survey_is(monkeypatch, HOUSES)
    result = run_command(f"data {npz} --brief --target price --ignore id,name --window 3")
    assert result.status == 0
    assert asked[0] == DataOptions(target=("price",), ignore=("id", "name"), window=3, takes_texts=True)
    assert "\x1b" not in result.out
    rows = [line.split() for line in result.lines]
    assert ["area", "number", "input", "3", "20", "to", "410"] in rows
    assert ["task", "regression"] in rows
    assert ["test", "2", "examples"] in rows
    assert any("c\\x1b[2Jity" in line for line in result.lines)
    assert "inputs      area: float32, city: string" in result.lines
    assert "0        area 120, city Bonn, price 3" in result.lines
    assert "Note: the column id is not used" in result.lines
    assert all(len(line) <= 80 for line in result.lines)


def test_the_balance_of_classes_is_drawn(run_command, npz, monkeypatch):
    survey_is(monkeypatch, PETS)
    lines = run_command(f"data {npz}").lines
    bars = {line.split()[0]: line.count("━") for line in lines if line.startswith(PETS.class_names)}
    assert bars == {"cat": 30, "dog": 15, "emu": 0}
    assert any(line.split()[:3] == ["dog", "30", "33%"] for line in lines)


def test_of_many_classes_the_largest_and_the_smallest_are_shown(run_command, npz, monkeypatch):
    survey_is(monkeypatch, replace(PETS, classes=100, class_names=(), class_counts=tuple(range(1, 101))))
    lines = run_command(f"data {npz} --brief").lines
    start = next(index for index, line in enumerate(lines) if line.startswith("CLASS "))
    table = lines[start + 1 :]
    assert table[0].split()[:2] == ["99", "100"]
    assert table[12] == "(83 more)"
    assert table[-1].split()[:2] == ["0", "1"]


def test_data_of_which_nothing_is_found_is_shown(run_command, tmp_path):
    table = tmp_path / "cars.csv"
    table.write_text("power,price,size\n" + "".join(f"{n / 8},{n % 40},{'ab'[n % 2]}\n" for n in range(100)))
    assert run_command(f"data {table} --target price,size").status == 0


def test_a_script_gets_all_as_json(run_command, npz, monkeypatch):
    survey_is(monkeypatch, HOUSES)
    [line] = run_command(f"data {npz} --json").lines
    known = json.loads(line)
    assert known["targets_spec"] == {"": "float32"}
    assert known["inputs_spec"] == {"area": "float32", "city": "string"}
    assert known["columns"][0] == {
        "name": "area", "kind": "number", "role": "input", "missing": 3, "detail": "20 to 410"
    }  # fmt: skip
    assert known["test_examples"] == 2


def test_built_in_data_has_a_look_of_its_own(run_command):
    result = run_command("data digits")
    assert "training    1,437 examples" in result.lines
    assert "classes     10" in result.lines


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ("data nowhere.csv", 2, "no such file"),
        ("data digit", 2, "did you mean digits"),
        ("data digits --window 0", 2, "an integer of at least 1"),
        ("data --target price", 2, "--target needs DATA"),
        ("data --split ordered --json", 2, "--split needs DATA"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(run_command, words, status, said):
    result = run_command(words)
    assert result.status == status
    assert said in result.err


def test_a_damaged_file_is_an_error(run_command, tmp_path):
    (tmp_path / "bad.npz").write_bytes(b"PK nonsense")
    result = run_command(f"data {tmp_path / 'bad.npz'}")
    assert result.status == 1
    assert "damaged" in result.err


def test_a_function_is_run_by_an_engine(run_command, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("def load(): ...\n")
    asked = []
    monkeypatch.setattr("accel_tui.cli.data.ask", lambda request: asked.append(request.plan) or DescribedData.of(PETS))
    result = run_command(f"data {tmp_path / 'mine.py'}:load --batch-size 8")
    assert result.status == 0
    assert asked[0].batch_size == 8
    assert any(line.split()[:2] == ["cat", "60"] for line in result.lines)


def test_what_is_understood_is_shown_before_what_is_wrong_with_an_example(run_command, tmp_path):
    path = tmp_path / "houses.csv"
    path.write_text(
        "rooms (all),price\n" + "".join(f"{row % 7},{row * 1.5 if row != 4 else ''}\n" for row in range(50))
    )
    command = f"data {path} --brief --features 'rooms (all)'"
    result = run_command(command)
    assert result.status == 1
    assert any(line.startswith("rooms (all)") for line in result.lines)
    first, second = result.err.splitlines()
    assert first == "accel-tui: shown without the invalid examples, which training leaves out only if it is told to:"
    assert "row 5 has no value in the target, the column price (--invalid-examples skip" in second
    skipped = run_command(f"{command} --invalid-examples skip")
    assert (skipped.status, skipped.lines) == (0, result.lines)
