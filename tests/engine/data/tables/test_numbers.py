"""Numbers as people write them: one notation for a column, found from all its values, and said."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine.data import DataOptions, load
from accel_engine.data.data_options import Notation
from accel_engine.data.tables.column_reading import read_columns
from accel_engine.data.tables.columns import TableColumn
from accel_engine.errors import DataError, PlanError

NAN = float("nan")


def column(path: Path, texts: list[str], **options: Any) -> TableColumn:
    """The first column of a file, whose cells are separated by tabs so that commas need no quotes."""
    path.write_text("\n".join(["n\tother", *(f"{text}\tx{row % 2}" for row, text in enumerate(texts))]) + "\n")
    return read_columns(path, DataOptions(**options)).columns["n"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "table.tsv"


@pytest.mark.parametrize(
    ("texts", "numbers", "notation"),
    [
        (["0,476", "1,5"], [0.476, 1.5], Notation(",")),
        (["0,476", "0,512"], [0.476, 0.512], Notation(",")),
        (["1.234,50", "12,3", "3.600"], [1234.5, 12.3, 3600], Notation(",", ".")),
        (["1,234.50", "3,600"], [1234.5, 3600], Notation(".", ",")),
        (["1.234.567", "12"], [1234567, 12], Notation(",", ".")),
        (["1'234.50", "12.3"], [1234.5, 12.3], Notation(".", "'")),
        (["1\u2019234.50", "12"], [1234.5, 12], Notation(".", "'")),
        (["1 234,5", "12,3"], [1234.5, 12.3], Notation(",", " ")),
        (["1\u202f234,5", "1\u00a0234\u00a0567"], [1234.5, 1234567], Notation(",", " ")),
        (["12,34,567.5", "1,00,000"], [1234567.5, 100000], Notation(".", ",")),
        (["1_000", "2_500_000"], [1000, 2500000], Notation("", "_")),
        (["$1,234.50", "$ 12", "-$5", "$-7"], [1234.5, 12, -5, -7], Notation(".", ",", "$")),
        (["1.234,50 €", "12 €", "7"], [1234.5, 12, 7], Notation(",", ".", "€")),
        (["CHF 1'234.50", "CHF 12.-"], [1234.5, 12], Notation(".", "'", "CHF")),
        (["R$ 1.234,56", "R$ 7,00"], [1234.56, 7], Notation(",", ".", "R$")),
        (["₹1,23,456", "₹99"], [123456, 99], Notation(".", ",", "₹")),
        (["12 kr", "1 200,50 kr"], [12, 1200.5], Notation(",", " ", "kr")),
        (["12 %", "12.5%"], [12, 12.5], Notation(".", "", "%")),
        (["12,5%", "7%"], [12.5, 7], Notation(",", "", "%")),
        (["100-", "25.5-", "3"], [-100, -25.5, 3], Notation(".", has_signs=True)),
        (["(1,234.50)", "12", "(5)"], [-1234.5, 12, -5], Notation(".", ",", has_signs=True)),
        (["\u22125", "+3", "- 2"], [-5, 3, -2], Notation()),
        (["1,5E+03", "2,25e-1"], [1500, 0.225], Notation(",")),
        (["1,5", "-", "2,5", "n.a."], [1.5, NAN, 2.5, NAN], Notation(",")),
        (["1.5", "#DIV/0!", "#N/A", "<NA>", "None", "\\N", "nan", "2"], [1.5, *[NAN] * 6, 2], Notation(".")),
        (["1,234.5", "inf", "-Infinity"], [1234.5, np.inf, -np.inf], Notation(".", ",")),
        ([" 1,5 ", "\u00a02,5"], [1.5, 2.5], Notation(",")),
        (["5.", ".5", "1e3"], [5, 0.5, 1000], Notation(".")),
    ],
)
def test_one_notation_is_found_from_all_values(
    file: Path, texts: list[str], numbers: list[float], notation: Notation
) -> None:
    found = column(file, texts)
    assert found.kind == "number"
    np.testing.assert_array_equal(found.values, numbers)
    assert found.notation == notation
    said = [str(change) for change in found.changes if change.verb == "read as numbers"]
    assert len(said) == (not notation.is_plain)
    assert all(said_words in said[0] for said_words in str(notation).split(", ") if not notation.is_plain)
    again = column(file, texts * 3)  # other files by the same rules
    like = {"n": found.format}
    np.testing.assert_array_equal(read_columns(file, DataOptions(), like=like).columns["n"].values, numbers * 3)
    assert again.notation == notation


@pytest.mark.parametrize(
    "texts",
    [
        ["192.168.1.1", "10.0.0.1"],
        ["12:75", "7:15"],
        ["555-1234", "555-9876"],
        ["52.5, 13.4", "48.1, 11.6"],
        ["1.2.3", "1.10.0"],
        ["$5", "€7"],
        ["0,123,456", "1,2"],
        ["1,23", "1.23"],
        ["12 kg", "13 kg"],
        ["5%", "0.05"],
        ["A1", "B2"],
    ],
)
def test_what_is_no_number_in_one_notation_stays_text(file: Path, texts: list[str]) -> None:
    assert column(file, texts).values.tolist() == texts


@pytest.mark.parametrize(("text", "number", "hint"), [("1.234", 1.234, "a decimal point"), ("1,234", 1234, "commas")])
def test_what_is_ambiguous_is_read_as_before_and_said(file: Path, text: str, number: float, hint: str) -> None:
    found = column(file, [text, "2"])
    assert found.values.tolist() == [number, 2]
    (said,) = map(str, found.changes)
    assert f"'{text}' as {number}" in said
    assert hint in said
    assert "--decimal and --thousands say otherwise" in said


def test_other_columns_tell_how_an_ambiguous_one_is_meant(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("pay;rate;year\n3.600;0,5;2020\n12.750;1,25;2021\n")
    columns = read_columns(path, DataOptions())
    assert columns.columns["pay"].values.tolist() == [3600, 12750]
    assert columns.columns["rate"].values.tolist() == [0.5, 1.25]
    assert columns.columns["year"].values.tolist() == [2020, 2021]
    assert "otherwise" not in str(columns.columns["pay"].changes[0])
    assert "dots between thousands, such as '12.750' as 12750" in str(columns.columns["pay"].changes[0])
    path.write_text("pay;rate\n3,600;0.5\n12,750;1.25\n")
    assert read_columns(path, DataOptions()).columns["pay"].values.tolist() == [3600, 12750]
    path.write_text("pay;year\n3,600;2020\n12,750;2021\n")  # semicolons are where decimal commas are
    assert read_columns(path, DataOptions()).columns["pay"].values.tolist() == [3.6, 12.75]


def test_digits_of_one_length_that_begin_with_zeros_are_no_numbers(file: Path) -> None:
    found = column(file, ["01234", "99999", "01234"])
    assert found.kind == "category"
    (said,) = map(str, found.changes)
    assert said == (
        "values of n read as categories: digits of one length that begin with zeros; --kinds 'n=number' reads numbers"
    )
    assert column(file, ["01234", "99999"], kinds=("n=number",)).values.tolist() == [1234, 99999]
    assert column(file, ["007", "12", "3"]).values.tolist() == [7, 12, 3]
    assert column(file, ["0", "1", "0"]).values.tolist() == [0, 1, 0]
    assert column(file, ["0.5", "0.1"]).values.tolist() == [0.5, 0.1]


def test_the_plan_decides(file: Path) -> None:
    assert column(file, ["1.234", "2"], thousands=".").values.tolist() == [1234, 2]
    assert column(file, ["1.234", "2"], decimal=",").values.tolist() == [1234, 2]
    assert column(file, ["1,234", "2"], decimal=",").values.tolist() == [1.234, 2]
    assert column(file, ["1 234", "2"], thousands="none").values.tolist() == ["1 234", "2"]
    assert column(file, ["1 234", "2"], thousands="space").values.tolist() == [1234, 2]
    mostly = ["1,5", "2,5", "many", "few"]
    found = column(file, mostly)
    assert found.values.tolist() == mostly
    assert "2 of 4 values of n read as categories: no numbers, such as 'many' in row 3; --kinds 'n=number'" in str(
        found.changes[0]
    )
    np.testing.assert_array_equal(column(file, mostly, kinds=("n=number",)).values, [1.5, 2.5, NAN, NAN])
    np.testing.assert_array_equal(column(file, mostly, missing=("many", "few")).values, [1.5, 2.5, NAN, NAN])
    with pytest.raises(PlanError, match="is the decimal mark"):
        column(file, ["1"], decimal=",", thousands=",")


def test_texts_that_hardly_repeat_are_said(file: Path) -> None:
    (change,) = column(file, [f"name {row}" for row in range(30)]).changes
    assert str(change).startswith("values of n read as categories: 30 different ones in 30 rows; --ignore 'n'")
    assert column(file, ["a", "b"] * 15).changes == ()


def test_another_file_has_the_notation_of_the_training_file(tmp_path: Path) -> None:
    path, other = tmp_path / "t.csv", tmp_path / "other.csv"
    path.write_text("x;y\n" + "".join(f"{row},5;1.{row:03},25 €\n" for row in range(40)))
    other.write_text("x;y\n3.600;7\n0,5;1.000,50 €\n")
    options = DataOptions(target=("y",), validation_data=str(other))
    validation = load(str(path), options).validation
    assert validation is not None
    assert validation.targets[:, 0].tolist() == [7, 1000.5]
    inputs = []
    for text in ("x;y\n0,476;7\n3600;8\n", "x,y\n0.476,7\n3600,8\n"):  # also as programs write them
        other.write_text(text)
        inputs.append(load(str(path), options).validation.inputs)
    np.testing.assert_array_equal(*inputs)
    other.write_text("x;y\n0.5,1;7\n5 h;8\n")
    with pytest.raises(DataError, match=r"no numbers with decimal commas, such as '0.5,1' in row 1; not one value is"):
        load(str(path), options)


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["1.234,5", "1,234.5"], "'1.234,5' in row 1 (decimal commas, dots between thousands) and '1,234.5' in row 2"),
        (["EUR 7", "EUR 8", "USD 9.50"], "'EUR 7' in row 1 (EUR left out) and 'USD 9.50' in row 3 (USD left out)"),
    ],
)
def test_several_notations_in_a_column_are_named(tmp_path, cells, said):
    file = tmp_path / "t.csv"
    file.write_text("x;y\n" + "".join(f"{cell};1\n" for cell in cells))
    [change] = read_columns(file, DataOptions()).columns["x"].changes
    assert f"read as categories: its numbers are written in several ways, such as {said}" in str(change)
    assert "--kinds 'x=number'" in str(change)
    taken, left = read_columns(file, DataOptions(kinds=("x=number",))).columns["x"].changes
    assert f"such as {cells[0]!r} as" in str(taken)
    assert f"such as {cells[-1]!r} in row {len(cells)}" in str(left)


def test_zeros_before_numbers_of_several_lengths_are_said(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("x,y\n007,1\n1234,2\n")
    [change] = read_columns(file, DataOptions()).columns["x"].changes
    assert str(change) == (
        "1 of 2 values of x read as numbers: without zeros before them, such as '007'; --kinds 'x=category' keeps them"
    )


def test_a_decimal_comma_after_many_whole_numbers_is_the_notation_of_other_files(tmp_path):
    file, other = tmp_path / "t.csv", tmp_path / "other.csv"
    file.write_text("x;y\n" + "7;1\n" * 1500 + "0,5;1\n")
    column = read_columns(file, DataOptions()).columns["x"]
    assert (column.notation, column.values[-1]) == (Notation(","), 0.5)
    other.write_text('x,y\n"1,234",1\n')
    assert read_columns(other, DataOptions(), like={"x": column.format}).columns["x"].values[0] == 1.234
