"""What is known of data, in short."""

from accel_engine.data import DatasetEntry
from accel_engine.data.source import EntryColumn
from accel_engine.data.structure import ArraySpec, Batch
from accel_tui.plan import data_text


def entry(*columns: EntryColumn, **more: object) -> DatasetEntry:
    return DatasetEntry("mine", "", "tables:TableSource", columns=columns, **{"kind": "table", **more})  # type: ignore[arg-type]


def test_inputs_and_targets_are_put_in_a_line() -> None:
    columns = (
        EntryColumn("a", "number", "input"),
        EntryColumn("b", "text", "input"),
        EntryColumn("y", "number", "target"),
    )
    pair = Batch({"left": ArraySpec((8,), "float32"), "right": ArraySpec((8,), "float32")})
    assert data_text.structure(DatasetEntry("m", "", "npz", (8, 8, 1), 10)) == "8x8x1 → 10 classes"
    assert data_text.structure(DatasetEntry("m", "", "npz", (8,), 0)) == "8"
    assert data_text.structure(entry(*columns, classes=0)) == "2 columns → y"
    assert data_text.structure(entry(spec=pair)) == "left: float32 8, right: float32 8"
    assert data_text.structure(DatasetEntry("m", "", "npz")) == ""


def test_splits_are_counted() -> None:
    assert data_text.splits(entry(examples=1000, validation_examples=100)) == "1,000 + 100 validation"
    assert data_text.splits(entry(examples=10, validation_examples=0, test_examples=2)) == "10 + 2 test"
    assert data_text.splits(entry()) == "unknown until they are read"


def test_columns_classes_and_missing_values_are_counted() -> None:
    found = entry(
        EntryColumn("age", "number", "input", 3),
        EntryColumn("city", "category", "input", 12),
        EntryColumn("zip", "category", "input", 0),
        EntryColumn("id", "number", "unused", 5),
        EntryColumn("y", "category", "target", 0, "yes, no"),
        class_counts=(30, 1200),
    )
    assert {row.name: row.text for row in data_text.data_rows(found)} == {
        "columns": "1 number, 2 category",
        "target": "y, category, yes, no",
        "balance": "30 to 1,200 examples each",
        "missing": "city 12, id 5, age 3",
        "not used": "id",
    }
    assert data_text.data_rows(entry()) == []
    assert data_text.balance((5, 5)) == "5 examples each"
    assert data_text.join_names([str(index) for index in range(9)]) == "0, 1, 2, 3, 4, 5 and 3 more"
