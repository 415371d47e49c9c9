import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from accel_engine.data.data_options import DataOptions
from accel_engine.data.roles import Roles
from accel_engine.data.tables.column_reading import read_columns
from accel_engine.data.tables.columns import Columns
from accel_engine.errors import DataError, PlanError


def read_text(path, text: str, **options) -> Columns:
    path.write_text(text)
    return read_columns(path, DataOptions(**options))


def kinds(columns: Columns) -> dict[str, str]:
    return {name: column.kind for name, column in columns.columns.items()}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "table.csv"


def test_kinds_are_told_apart_by_values(file):
    columns = read_text(
        file,
        "id,age,job,when,ok,empty\n1, 39, State-gov,2020-01-02,yes,\n2,?, ?,2020-01-03 10:00,no,\n3,40.5,x,,yes,NA\n",
    )
    assert kinds(columns) == {
        "id": "key",
        "age": "number",
        "job": "category",
        "when": "date",
        "ok": "boolean",
        "empty": "empty",
    }
    np.testing.assert_array_equal(columns.columns["age"].values, [39, np.nan, 40.5])
    assert columns.columns["job"].values.tolist() == ["State-gov", None, "x"]
    assert columns.columns["job"].categories == ("State-gov", "x")
    assert columns.columns["when"].values[1] == np.datetime64("2020-01-03T10:00", "s").astype(int)
    assert [column.missing for column in columns.columns.values()] == [0, 1, 1, 1, 0, 3]


def test_many_different_texts_are_text_or_keys(file):
    rows = [f"the movie number {n} was good,A/{n * 7919},{n % 3}x" for n in range(300)]
    columns = read_text(file, "review,ticket,group\n" + "\n".join(rows))
    assert kinds(columns) == {"review": "text", "ticket": "key", "group": "category"}


def test_declared_kinds_win(file):
    columns = read_text(file, "zip,year,n\n01234,2020,5\n99999,2021,6\n", kinds=("zip=category", "year=date", "n=text"))
    assert kinds(columns) == {"zip": "category", "year": "date", "n": "text"}
    assert columns.columns["zip"].categories == ("01234", "99999")
    assert columns.columns["year"].values[0] == np.datetime64("2020-01-01", "s").astype(int)


def test_few_values_that_are_no_numbers_count_as_missing_and_are_noted(file):
    columns = read_text(file, "a,b\n" + "".join(f"{n * 1.5},1\n" for n in range(200)) + "unknown,1\n")
    assert columns.columns["a"].kind == "number"
    assert columns.columns["a"].missing == 1
    change = "1 of 201 values of a read as missing: no numbers, such as 'unknown' in row 201"
    assert [*map(str, columns.changes_of(Roles(("a",), ("b",))))] == [change]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-12-31T23:59:59Z", "2024-12-31T23:59:59"),
        ("31.12.2024 23:59:59", "2024-12-31T23:59:59"),
        ("12/31/2024", "2024-12-31"),
        ("31/12/2024", "2024-12-31"),
        ("2024/12/31 23:59", "2024-12-31T23:59"),
        ("12/31/24", "2024-12-31"),
        ("31 Dec 2024", "2024-12-31"),
    ],
)
def test_dates_in_common_formats(file, text, expected):
    column = read_text(file, f"when;a\n{text};1\n").columns["when"]
    assert (column.kind, column.values[0]) == ("date", np.datetime64(expected, "s").astype(int))


def test_numbers_with_separators_of_thousands(file):
    assert read_text(file, 'a,b\n"1,234.5",x\n"1,234,567",y\n12,z\n').columns["a"].values.tolist() == [
        1234.5,
        1234567,
        12,
    ]


@pytest.mark.parametrize(
    "text", ["a;b\n1,5;x\n2;y\n", "a\tb\n1.5\tx\n2\ty\n", "\ufeffa,b\r\n1.5,x\r\n\r\n2,y\r\n", "\n\na,b\n1.5,x\n2,y\n"]
)
def test_delimiters_and_decimal_commas(file, text):
    columns = read_text(file, text).columns
    assert columns["a"].values.tolist() == [1.5, 2]
    assert columns["b"].values.tolist() == ["x", "y"]


@pytest.mark.parametrize(
    ("first", "names"),
    [
        ("5.1,3.5,Iris-setosa", ["column 1", "column 2", "column 3"]),
        ("0,1,2", ["0", "1", "2"]),
        ("country,2019,2020", ["country", "2019", "2020"]),
        ("a,,a", ["a", "column 2", "a (2)"]),
    ],
)
def test_headers(file, first, names):
    columns = read_text(file, f"{first}\n4.9,3.0,Iris-virginica\n")
    assert list(columns.columns) == names
    assert columns.rows == (2 if "5.1" in first else 1)
    assert bool(columns.notes) == (first[0] in "5a")


def test_quoted_fields_may_have_delimiters_and_lines(file):
    assert list(read_text(file, '"a\nc",b\n1,2\n').columns) == ["a\nc", "b"]
    assert read_text(file, 'a,b\n1,"x, ""y""\nz"\n').columns["b"].values.tolist() == ['x, "y"\nz']


def test_row_with_the_wrong_number_of_fields(file):
    text = "a,b\n1,2\n1,2,3\n3,4\n"
    with pytest.raises(DataError, match=r"table.csv, line 3: 3 fields instead of 2: '1,2,3'"):
        read_text(file, text)
    columns = read_text(file, text, invalid_examples="skip")
    assert (columns.rows, columns.invalid) == (2, 1)
    assert [*map(str, columns.row_changes)] == ["1 row of table.csv left out: they cannot be parsed"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"a,b\n", "has no rows"),
        (b"a,b", "has no rows"),
        (b"a,b\n1,\x81\n", "is not text in UTF-8"),
        (b"a,\x81\n1,2\n", "is not text in UTF-8"),
    ],
)
def test_files_that_cannot_be_read(file, content, message):
    file.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_columns(file, DataOptions())


@pytest.mark.parametrize(
    ("options", "field", "message"),
    [
        ({"target": ("pric",)}, "target", "did you mean price"),
        ({"features": ("x",)}, "features", "the data has no column"),
        ({"ignore": ("x",)}, "ignore", "the data has no column"),
        ({"time": "x"}, "time", "the data has no column"),
        ({"split": "column:x"}, "split", "the data has no column"),
        ({"kinds": ("x=number",)}, "kinds", "the data has no column"),
        ({"kinds": ("price=numbr",)}, "kinds", "did you mean number"),
        ({"kinds": ("price",)}, "kinds", "price=category"),
        ({"target": ("price",), "ignore": ("price",)}, "ignore", "also named by target"),
    ],
)
def test_wrong_names(file, options, field, message):
    with pytest.raises(PlanError, match=message) as caught:
        read_text(file, "price,size\n1,2\n", **options)
    assert caught.value.field == field


def test_json_lines(tmp_path):
    file = tmp_path / "table.jsonl"
    file.write_text('{"a": 1, "b": "x"}\n{"a": null, "b": "y"}\n{"b": "y", "c": true}\n')
    columns = read_columns(file, DataOptions())
    assert kinds(columns) == {"a": "number", "b": "category", "c": "boolean"}
    assert columns.columns["a"].missing == 2
    file.write_text('{"a": 1}\n{"a": \n{"a": "x"}\n')
    with pytest.raises(DataError, match="line 2"):
        read_columns(file, DataOptions())
    columns = read_columns(file, DataOptions(invalid_examples="skip"))
    assert (columns.columns["a"].values.tolist(), columns.invalid) == (["1", "x"], 1)
    assert read_columns(file, DataOptions(), limit=1).file_rows is None


def test_parquet(tmp_path):
    file = tmp_path / "table.parquet"
    table = pa.table(
        {
            "n": pa.array([1, None, 3], pa.int32()),
            "c": pa.array(["x", "y", "x"]).dictionary_encode(),
            "d": pa.array([0, 86_400_000, None], pa.timestamp("ms")),
            "flag": pa.array([True, False, None]),
            "list": pa.array([[1], [2], [3]]),
            "time": pa.array([60, None, 3600], pa.time32("s")),
        }
    )
    parquet.write_table(table, file)
    columns = read_columns(file, DataOptions())
    assert kinds(columns) == {
        "n": "number",
        "c": "category",
        "d": "date",
        "flag": "boolean",
        "list": "other",
        "time": "number",
    }
    np.testing.assert_array_equal(columns.columns["d"].values, [0, 86400, np.nan])
    assert columns.columns["flag"].values.tolist() == ["true", "false", None]
    assert read_columns(file, DataOptions(), limit=1).file_rows == 3


def test_another_file_has_the_kinds_of_the_training_file(file):
    training = read_text(file, "a,when\nx,01/02/2020\n1,13/02/2020\n")
    file.write_text("a,when\n1,01/02/2020\n2,03/04/2020\n")
    columns = read_columns(file, DataOptions(), like=training.formats)
    assert columns.columns["a"].values.tolist() == ["1", "2"]
    assert columns.columns["when"].values[1] == np.datetime64("2020-04-03", "s").astype(int)


@pytest.mark.parametrize(
    ("name", "numbers", "kind"),
    [
        ("n", range(40), "key"),  # they count the rows
        ("n", range(1, 41), "key"),
        ("n", range(2, 42), "number"),
        ("n", range(0, 80, 2), "number"),
        ("n", range(10), "number"),  # too few to tell
        ("row", [*range(20, 40), *range(20)], "key"),
        ("passenger_id", [*range(20, 40), *range(20)], "key"),
        ("__index_level_0__", [*range(20, 40), *range(20)], "key"),
        ("", [*range(20, 40), *range(20)], "key"),
        ("paid", [*range(20, 40), *range(20)], "number"),
        ("id", [0, 1] * 20, "number"),
    ],
)
def test_row_numbers_are_keys(file, name, numbers, kind):
    columns = read_text(file, f"{name},b\n" + "".join(f"{number},x\n" for number in numbers))
    assert next(iter(columns.columns.values())).kind == kind


def test_numbers_that_count_are_no_row_numbers_elsewhere(file):
    text = "n,m\n" + "".join(f"{row},{row}\n" for row in range(40))
    assert kinds(read_text(file, text)) == {"n": "key", "m": "number"}
    assert kinds(read_text(file, text, window=2)) == {"n": "number", "m": "number"}  # a series may count
