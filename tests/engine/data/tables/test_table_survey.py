import subprocess
import sys

import pytest

from accel_engine.data import DataOptions, find, load, survey
from accel_engine.errors import DataError, PlanError
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
    assert {note for note in entry.notes if "missing" not in note} <= set(dataset.notes)


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
