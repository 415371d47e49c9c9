"""What a look at data shows of it."""

from pathlib import Path

import numpy as np
import pytest

from accel_engine import data
from accel_engine.data import DataOptions
from accel_engine.data_profile.picture import BINS, SIDE, DataPicture, data_picture

HOUSES = 60


def picture_of(spec: str | Path, **options: object) -> DataPicture:
    found = data_picture(data.load(str(spec), DataOptions(**options)), str(options.get("task", "auto")))
    assert found is not None
    return found


@pytest.fixture
def houses(tmp_path: Path) -> Path:
    rows = [f"{50 + index},{('Bonn', 'Ulm')[index % 2]},{1000 * (50 + index)}" for index in range(HOUSES)]
    path = tmp_path / "houses.csv"
    path.write_text("\n".join(["area,city,price", *rows, rows[0], rows[0]]))
    return path


def test_columns_of_a_table_are_shown_in_their_units_and_words(houses):
    found = {column.name: column for column in picture_of(houses, target=("price",), split="none").columns}
    assert [*found] == ["area", "city", "price"]
    area, city, price = found.values()
    assert (area.low, area.high, area.count, area.distinct) == (50, 109, HOUSES + 2, HOUSES)
    assert len(area.counts) == BINS
    assert sum(area.counts) == area.count
    assert city.frequent == (("Bonn", 32), ("Ulm", 30))
    assert (price.low, price.high) == (50_000, 109_000)


def test_the_smallest_and_the_largest_number_have_no_digits_that_float32_has_made_up(tmp_path):
    rows = [f"{2 * row},{row % 3},{row % 5 / 10},{row * 1e-20},{1000 * row}" for row in range(50)]
    (tmp_path / "mine.csv").write_text("\n".join(["even,small,tenths,tiny,target", *rows]))
    found = picture_of(tmp_path / "mine.csv", target=("target",), split="none", task="regression").columns
    ranges = {column.name: (column.low, column.high) for column in found}
    assert ranges.pop("tiny") == pytest.approx((0, 49e-20), abs=1e-25)
    assert ranges == {"even": (0, 98), "small": (0, 2), "tenths": (0, 0.4), "target": (0, 49_000)}


def test_equal_rows_and_the_error_of_the_mean_are_found(houses):
    found = picture_of(houses, target=("price",), split="none")
    assert found.equal.duplicates == 2
    prices = np.array([*(1000 * (50 + np.arange(HOUSES))), 50_000, 50_000])
    assert found.baseline == "mean of the training targets"
    assert dict(found.metrics)["mean_absolute_error"] == pytest.approx(np.abs(prices - prices.mean()).mean(), rel=1e-4)
    assert found.model == "tabular"


def test_the_baseline_of_classes_is_their_most_frequent_one(tmp_path):
    labels = np.array([0] * 10 + [2] * 30)
    np.savez(tmp_path / "mine.npz", x=np.arange(80, dtype=np.float32).reshape(40, 2), y=labels)
    found = picture_of(tmp_path / "mine.npz", split="none")
    assert found.baseline == "most frequent class: 2"
    assert dict(found.metrics) == {"accuracy": 0.75}
    assert [column.is_constant for column in found.columns] == [False, False]


def test_the_baseline_of_a_series_is_its_last_value_in_its_unit(tmp_path):
    values = np.cumsum(np.where(np.arange(100) % 3, 5.0, -2.0))
    (tmp_path / "load.csv").write_text("\n".join(["load", *map(str, values)]))
    found = picture_of(tmp_path / "load.csv", target=("load",), window=4, split="none")
    assert found.baseline == "last known value"
    expected = np.abs(np.diff(values))[3:].mean()
    assert dict(found.metrics)["mean_absolute_error"] == pytest.approx(expected, rel=1e-4)


def test_a_look_at_each_class_is_reduced(tmp_path):
    pixels = np.zeros((20, 80, 40, 3), np.uint8)
    pixels[:, :, :20] = 255
    np.savez(tmp_path / "mine.npz", x=pixels, y=np.arange(20) // 10)
    shown = picture_of(tmp_path / "mine.npz", split="none").pictures
    assert [picture.label for picture in shown[:2]] == ["0", "1"]
    height, width, channels = shown[0].shape
    assert height <= SIDE
    assert (height, width, channels) == (27, 14, 3)
    drawn = np.frombuffer(shown[0].pixels, np.uint8).reshape(shown[0].shape)
    assert drawn[0, 0].tolist() == [255] * 3
    assert drawn[0, -1].tolist() == [0] * 3


def test_a_column_without_a_difference_and_texts_of_their_own_are_named(tmp_path):
    np.savez(tmp_path / "mine.npz", x=np.stack([np.ones(30), np.arange(30)], 1).astype(np.float32), y=np.arange(30) % 2)
    first, second = picture_of(tmp_path / "mine.npz").columns
    assert first.is_constant
    assert not second.is_constant


def test_all_of_it_can_be_written_as_json(houses):
    written = picture_of(houses, target=("price",)).to_json()
    assert written["duplicates"] == 2
    assert "pictures" not in written
    assert written["baseline_metrics"].keys() == {"mean_absolute_error"}
