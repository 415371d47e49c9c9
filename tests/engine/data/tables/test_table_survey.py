import os
import subprocess
import sys

import pyarrow as pa
import pytest
from pyarrow import parquet

from accel_engine.data import DataOptions, find, load, survey
from accel_engine.data.tables import table, table_file
from accel_engine.data.tables.table_file import read_cells
from accel_engine.data_profile.described_data import describe_loaded
from accel_engine.errors import DataError, PlanError
from accel_engine.models import CATALOGUE
from accel_engine.models.data_description import describe_entry
from engine.data.tables.test_table import mixed_columns, write


@pytest.fixture
def file(tmp_path):
    return write(tmp_path / "people.csv", mixed_columns())


def test_survey_agrees_with_what_is_read(file):
    options = DataOptions(target=("left",), test_split=0.1)
    entry, dataset = survey(find(file), options), load(file, options)
    assert (entry.kind, entry.task, entry.class_names) == (dataset.kind, dataset.task, dataset.class_names)
    assert entry.shape == dataset.shape
    assert entry.spec == dataset.spec
    assert entry.classes == 2
    counts = (len(dataset.train), len(dataset.validation), len(dataset.test))
    assert (entry.examples, entry.validation_examples, entry.test_examples) == counts
    assert sum(entry.class_counts) == sum(counts)
    assert set(entry.notes) <= set(dataset.notes)
    assert entry.changes == dataset.changes


def test_columns(file):
    entry = survey(find(file), DataOptions(ignore=("note",), split="ordered"))
    columns = {column.name: column for column in entry.columns}
    assert {name: (column.kind, column.role) for name, column in columns.items()} == {
        "age": ("number", "input"),
        "job": ("category", "input"),
        "joined on": ("date", "input"),
        "note": ("text", "unused"),
        "left": ("boolean", "input"),
        "pay": ("number", "target"),
    }
    assert columns["age"].missing == 9
    assert columns["joined on"].detail.startswith("2020-01-0")
    assert "%" in columns["job"].detail
    assert entry.samples[0][0] == "row 1"
    assert entry.samples[0][1].startswith("age=missing, job=")
    assert entry.samples[0][1].count("→") == 1


def test_prices_have_all_their_digits(tmp_path):
    path = tmp_path / "houses.csv"
    path.write_text("rooms,price\n" + "3.5,315204\n4.5,1331440\n" * 10)
    entry = survey(find(str(path)), DataOptions())
    assert [column.detail for column in entry.columns] == ["3.5 to 4.5", "315204 to 1331440"]
    assert entry.samples[1][1] == "rooms=4.5 → price=1331440"


def test_only_the_first_rows_of_a_large_file_are_read(tmp_path):
    file = tmp_path / "large.csv"
    file.write_text("x,y\n" + "".join(f"{row}.5,{row % 2}\n" for row in range(600_000)))
    entry = survey(find(str(file)), DataOptions())
    assert (entry.examples, entry.shape) == (None, None)
    assert entry.class_names == ("0", "1")
    note = next(note for note in entry.notes if "first 2,000 rows of about" in note)
    rows = int(note.rsplit(" ", 1)[1].replace(",", ""))
    assert 400_000 < rows < 900_000


def test_errors_are_found_before_training(tmp_path, file):
    with pytest.raises(PlanError, match="did you mean pay"):
        survey(find(file), DataOptions(target=("pays",)))
    with pytest.raises(PlanError, match="no such file"):
        survey(find(file), DataOptions(validation_data="none.csv"))
    invalid = tmp_path / "invalid.csv"
    invalid.write_text("a,b\n1,2\n1\n")
    with pytest.raises(DataError, match="line 3"):
        survey(find(str(invalid)), DataOptions())


def test_survey_does_not_import_tensorflow(file):
    script = (
        "import sys\n"
        "from accel_engine.data import DataOptions, find, survey\n"
        f"survey(find({file!r}), DataOptions())\n"
        "assert not {'tensorflow', 'keras'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_a_table_that_outgrows_the_memory_is_no_longer_read(tmp_path, name, monkeypatch):
    """Of a small file, too: the same value a million times takes a kilobyte of a Parquet file."""
    path = tmp_path / name
    if name.endswith("csv"):
        path.write_text("a,b\n" + "1,2\n" * 1_000_000)
    else:
        parquet.write_table(pa.table({"a": pa.array([7] * 1_000_000), "b": pa.array([1] * 1_000_000)}), path)
    monkeypatch.setattr(table_file, "available_memory", lambda: 5_000_000)
    with pytest.raises(
        DataError, match=rf"{name} does not fit in memory: its first [\d,]+ rows take [\d.]+ MiB, and [\d.]+ MiB"
    ):
        load(str(path), DataOptions())


def test_a_table_is_a_file(tmp_path):
    os.mkfifo(tmp_path / "people.csv")
    with pytest.raises(PlanError, match=r"people.csv': it is a pipe, not a file"):
        find(str(tmp_path / "people.csv"))
    with pytest.raises(DataError, match="it is a pipe, not a file"):
        read_cells(tmp_path / "people.csv", skip_invalid=False)


def test_a_line_of_endless_lists_is_named(tmp_path):
    path = tmp_path / "people.jsonl"
    path.write_text('{"a": 1}\n' + "[" * 100_000)
    with pytest.raises(DataError, match=r"people.jsonl, line 2: maximum recursion depth exceeded"):
        read_cells(path, skip_invalid=False)
    assert read_cells(path, skip_invalid=True).invalid == 1


def test_a_target_beyond_single_precision_is_no_number_to_learn(tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text("size,price\n" + "1,2.5\n3,4.5\n" * 10 + "5,1e39\n")
    options = DataOptions(target=("price",), task="regression")
    for read in (lambda: survey(find(str(path)), options), lambda: load(str(path), options)):
        with pytest.raises(DataError, match=r"row 21 has no number in the target, the column price"):
            read()


def test_a_file_may_be_called_synthetic(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "synthetic_fraud.csv").write_text("x,y\n1,a\n")
    assert find("synthetic_fraud.csv").name == "synthetic_fraud"
    with pytest.raises(PlanError, match="no such dataset or file"):
        find("synthetic_images")
    with pytest.raises(PlanError, match=r"must be synthetic\[:SHAPE"):
        find("synthetic:0")


@pytest.mark.parametrize(("first", "last", "task"), [("no", "fraud", "classification"), ("0", "1", "auto")])
def test_the_first_rows_do_not_tell_all_classes(tmp_path, monkeypatch, first, last, task):
    monkeypatch.setattr(table, "LARGE", 1000)
    file = tmp_path / "large.csv"
    file.write_text(
        "x,y\n" + "".join(f"{row}.5,{last if row % 10 == 9 and row > 2000 else first}\n" for row in range(3000))
    )
    options = DataOptions(class_weight=(f"{last}=50",), split="none")
    entry = survey(find(str(file)), options)
    assert (entry.examples, entry.task, entry.classes) == (None, task, None)
    data = describe_entry(entry, "auto")
    assert (CATALOGUE["tabular"].mismatch(data), data.is_size_unknown) == ("", True)
    dataset = load(str(file), options)
    assert (dataset.task, sorted(dataset.class_names)) == ("classification", sorted((first, last)))
    described = describe_loaded(str(file), options)
    found = described.entry
    assert (found.task, found.classes, found.examples) == ("classification", 2, 3000)
    assert dict(zip(found.class_names, found.class_counts, strict=True)) == {first: 2900, last: 100}
    assert list(described.targets.values()) == [str(dataset.spec.targets)]
    with pytest.raises(PlanError, match="no class 'other'"):
        load(str(file), DataOptions(class_weight=("other=50",)))
