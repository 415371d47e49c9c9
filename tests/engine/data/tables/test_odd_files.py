"""Odd files: what each must give, or the clear error."""

import bz2
import io
import json
import lzma
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from accel_engine.data import DataOptions, find, load, survey
from accel_engine.data.tables.column_reading import read_columns
from accel_engine.errors import DataError, PlanError

WIDE = ",".join(f"a column with a long name {number}" for number in range(8000))


def parquet_bytes(rows: int = 2) -> bytes:
    """A Parquet file."""
    file = io.BytesIO()
    parquet.write_table(pa.table({"a": pa.array(range(rows), pa.int64())}), file)
    return file.getvalue()


FILES: dict[str, tuple[str | bytes, dict[str, list[Any]]]] = {
    "lines end with CR": ("a,b\r1,x\r2,y\r", {"a": [1, 2], "b": ["x", "y"]}),
    "lines end with CR LF, and BOM": ("\ufeffa,b\r\n1,x\r\n2,y\r\n", {"a": [1, 2], "b": ["x", "y"]}),
    "no line end at the end": ("a,b\n1,x\n2,y", {"a": [1, 2], "b": ["x", "y"]}),
    "sep= for Excel": ("sep=;\na;b\n1,5;x\n2,5;y\n", {"a": [1.5, 2.5], "b": ["x", "y"]}),
    "quoted sep=": ('"sep=|"\r\na|b\r\n1|x\r\n', {"a": [1], "b": ["x"]}),
    "empty lines first": ("\n\n\na,b\n1,x\n", {"a": [1], "b": ["x"]}),
    "empty lines between": ("a,b\n\n1,x\n\n\n2,y\n\n", {"a": [1, 2], "b": ["x", "y"]}),
    "pipes and decimal commas": ("a|b\n0,476|x\n1,5|y\n", {"a": [0.476, 1.5], "b": ["x", "y"]}),
    "tabs and decimal commas": ("a\tb\n0,476\tx\n0,512\ty\n", {"a": [0.476, 0.512], "b": ["x", "y"]}),
    "quotes and decimal commas": ('a,b\n"0,476",x\n"1,5",y\n', {"a": [0.476, 1.5], "b": ["x", "y"]}),
    "commas in names": ("a, b;c, d, e;f\n1;2;x\n", {"a, b": [1], "c, d, e": [2], "f": ["x"]}),
    "quoted names": ('"a, b","c ""d"""\n1,x\n', {"a, b": [1], 'c "d"': ["x"]}),
    "a comma in the header and in a number": ("a;b,c\n1;2,5\n", {"a": [1], "b,c": [2.5]}),
    "no header": ("1,5,x\n2,6,y\n", {"column 1": [1, 2], "column 2": [5, 6], "column 3": ["x", "y"]}),
    "a year in the header": ("state,2022\nOhio,-29.1\nIowa,1.5\n", {"state": ["Ohio", "Iowa"], "2022": [-29.1, 1.5]}),
    "years in the header": ("a,1990,2010\nx,12,18900\n", {"a": ["x"], "1990": [12], "2010": [18900]}),
    "years above years": ("a,2019,2020\nx,1950,2010\n", {"a": ["x"], "2019": [1950], "2020": [2010]}),
    "no header, but a number like a year": ("x,1800\ny,35\n", {"column 1": ["x", "y"], "column 2": [1800, 35]}),
    "no header, texts only": (
        "yes,low\n" + "yes,high\nno,low\n" * 2,
        {"column 1": ["yes", *["yes", "no"] * 2], "column 2": ["low", *["high", "low"] * 2]},
    ),
    "names that are values once": ("a,b\na,c\nd,b\n", {"a": ["a", "d"], "b": ["c", "b"]}),
    "the header again": ("a,b\nx,y\na,b\nz,y\n", {"a": ["x", "a", "z"], "b": ["y", "b", "y"]}),
    "no header, but a year": ("Ohio,1999\nIowa,2001\n", {"column 1": ["Ohio", "Iowa"], "column 2": [1999, 2001]}),
    "no header, decimal commas": ("1,5;x\n2,5;y\n", {"column 1": [1.5, 2.5], "column 2": ["x", "y"]}),
    "several lines in a cell": ('a,b\n1,"x\ny, z"\n2,"p\n\nq"\n', {"a": [1, 2], "b": ["x\ny, z", "p\n\nq"]}),
    "quotes within a field": ("a,b\n1,5\" nails\n2,x\n", {"a": [1, 2], "b": ['5" nails', "x"]}),
    "doubled quotes": ('a,b\n1,"say ""hi"""\n2,x\n', {"a": [1, 2], "b": ['say "hi"', "x"]}),
    "one column": ("a\n1\n2\n", {"a": [1, 2]}),
    "one column with decimal commas": ("a\n0,476\n1,5\n", {"a": [0.476, 1.5]}),
    "marks of spreadsheets": ("a,b\n1,#N/A\n#DIV/0!,y\n#REF!,z\n", {"a": [1, None, None], "b": [None, "y", "z"]}),
    "blanks around": ("a , b\n 1 , x \n2,\ty\n", {"a": [1, 2], "b": ["x", "y"]}),
    "signs behind": ("a,b\n1.5-,x\n2,y\n", {"a": [-1.5, 2], "b": ["x", "y"]}),
    "money": ('a,b\n"$1,234.50",x\n$7,y\n', {"a": [1234.5, 7], "b": ["x", "y"]}),
    "French": ("a;b\n1\u202f234,5;x\n12;y\n", {"a": [1234.5, 12], "b": ["x", "y"]}),
    "Swiss": ("a;b\n1'234.50;x\n12.-;y\n", {"a": [1234.5, 12], "b": ["x", "y"]}),
    "German": ("a;b\n1.234,50 €;x\n-12,00 €;y\n", {"a": [1234.5, -12], "b": ["x", "y"]}),
    "Indian": ('a,b\n"12,34,567",x\n"1,00,000",y\n', {"a": [1234567, 100000], "b": ["x", "y"]}),
    "names of rows, as of R": ('"x","y"\n"a",1,2\n"b",3,4\n', {"column 1": ["a", "b"], "x": [1, 3], "y": [2, 4]}),
    "a separator ends rows": ("x,y\n1,2,\n3,4,\n", {"x": [1, 3], "y": [2, 4], "column 3": [None, None]}),
    "a separator ends all": ("x,y,\n1,2,\n3,4,\n", {"x": [1, 3], "y": [2, 4], "column 3": [None, None]}),
    "UTF-16, as Unicode text of Excel": ("a\tb\r\n1,5\tä\r\n".encode("utf-16"), {"a": [1.5], "b": ["ä"]}),
    "UTF-16 without a mark": ("a,b\n1,ä\n".encode("utf-16-le"), {"a": [1], "b": ["ä"]}),
    "Latin-1": ("ä;b\n1;\xdf\n".encode("latin1"), {"ä": [1], "b": ["ß"]}),
    "Windows-1252": ("a;b\n1.234,50 €;\u201ex\n7 €;y\n".encode("cp1252"), {"a": [1234.5, 7], "b": ["\u201ex", "y"]}),
    "several lines in a cell, in Latin-1": ('a,b\n1,"ä\ny, z"\n'.encode("latin1"), {"a": [1], "b": ["ä\ny, z"]}),
    "lines of comments": ("# by a logger\n# of 2020, in Ulm\n\na,b\n1,x\n2,y\n", {"a": [1, 2], "b": ["x", "y"]}),
    "names in a comment": ("# version 2\n# a,b\n1,5\n2,6\n", {"a": [1, 2], "b": [5, 6]}),
    "names of texts in a comment": ("#a,b\nBo,x\nJo,y\n", {"a": ["Bo", "Jo"], "b": ["x", "y"]}),
    "a column called #": ("#,b\n1,x\n2,y\n", {"#": [1, 2], "b": ["x", "y"]}),
    "hours of Americans": ("a\n1/31/23 1:05 PM\n2/1/23 12:00 AM\n", {"a": [1675170300, 1675209600]}),
    "a title in the first cell": ("Sales,,\na,b,c\n1,x,3\n2,y,4\n", {"a": [1, 2], "b": ["x", "y"], "c": [3, 4]}),
    "a title of two lines": ("Sales\nAsia,,\n\na,b,c\n1,x,3\n2,y,4\n", {"a": [1, 2], "b": ["x", "y"], "c": [3, 4]}),
    "a title and an empty line": ("Sales\n\na;b;c\n1;x;3\n2;y;4\n", {"a": [1, 2], "b": ["x", "y"], "c": [3, 4]}),
    "blanks before quotes": ('a, b\n1, "x, y"\n2, "z"\n', {"a": [1, 2], "b": ["x, y", "z"]}),
    "quotes with backslashes": ('a,b\n1,"say \\"hi\\", x"\n2,"""p"""\n', {"a": [1, 2], "b": ['say "hi", x', '"p"']}),
    "columns of blanks": (" a    b  c\n 1   20  x\n10    2  y \n", {"a": [1, 10], "b": [20, 2], "c": ["x", "y"]}),
    "blanks in one column": ("name of it\nBo 1 x\nJo Bo y\n", {"name of it": ["Bo 1 x", "Jo Bo y"]}),
    "blanks between thousands": ("price now\n203 795,36\n7 000\n", {"price now": [203795.36, 7000]}),
    "comments with %": ("% by a logger\n% of Ulm\na,b\n1,x\n", {"a": [1], "b": ["x"]}),
    "comments with //": ("// by a logger\na,b\n1,x\n", {"a": [1], "b": ["x"]}),
    "comments with ;": ("; by a logger\n; of Ulm\na,b\n1,x\n", {"a": [1], "b": ["x"]}),
    "a title above texts": ("Report 2024\n\na;b\nx;p\ny;q\n", {"a": ["x", "y"], "b": ["p", "q"]}),
    "a title above Swiss numbers": ("Report\na|b|c\nx|1'234.50|p\n", {"a": ["x"], "b": [1234.5], "c": ["p"]}),
    "comments above one column": ("# by a logger\n# of Ulm\na\nx\ny\n", {"a": ["x", "y"]}),
    "properties first": ("Device: X1\nDate: 2020-01-01\n\nt,v\n1,20.5\n2,21.5\n", {"t": [1, 2], "v": [20.5, 21.5]}),
    "two marks of UTF-8": ("\ufeff\ufeffa,b\n1,x\n", {"a": [1], "b": ["x"]}),
    "a line of blanks": ("a,b\n1,x\n   \n2,y\n", {"a": [1, 2], "b": ["x", "y"]}),
    "parentheses after a currency": ('a,b\n$ (7.00),x\n"$1,234.50",y\n', {"a": [-7, 1234.5], "b": ["x", "y"]}),
    "marks in other cases": ("a\n1\nNAN\nNONE\n(blank)\n2\n", {"a": [1, None, None, None, 2]}),
    "digits beyond float64": ("a\n9007199254740993\n9007199254740992\n", {"a": [f"900719925474099{n}" for n in "32"]}),
    "days with dots": ("a\n31.01.24\n29.02.24 12:00\n", {"a": [1706659200, 1709208000]}),
    "versions": ("a\n1.2.10\n1.3.11\n", {"a": ["1.2.10", "1.3.11"]}),
    "days of the week": ('a;b\nThu, 01 Feb 2024 10:00:00 GMT;1\n', {"a": [1706781600], "b": [1]}),
    "months in letters": ("a\n01-Feb-24\n29-Feb-24\n", {"a": [1706745600, 1709164800]}),
    "ISO with commas": ("a;b\n2024-02-01 00:00:00,500;1\n", {"a": [1706745600.5], "b": [1]}),
    "ISO without marks": ("a\n20240201T000000Z\n20240229T010203Z\n", {"a": [1706745600, 1709168523]}),
    "marks among dates": ("a\n2024-02-29\n-\n2024-02-28\n", {"a": [1709164800, None, 1709078400]}),
    "days that are none": ("a\n2024-02-30\n2024-02-29\n", {"a": ["2024-02-30", "2024-02-29"]}),
    "empty rows at the end": ("a,b\n1,x\n,\n2,y\n,\n,\n", {"a": [1, None, 2], "b": ["x", None, "y"]}),
    "times of day": ("t,b\n08:30,x\n17:45:00.5,y\n,z\n", {"t": [30600, 63900.5, None], "b": ["x", "y", "z"]}),
    "a header like the first bytes of Parquet": ("PAR1\tpar2\n1\tx\n", {"PAR1": [1], "par2": ["x"]}),
    "a header almost like them": ("par1,par2\n1,x\n", {"par1": [1], "par2": ["x"]}),
    "a header like the first bytes of bzip2": ("BZh,BZd\n1,x\n", {"BZh": [1], "BZd": ["x"]}),
    "zip codes": ("a,b\n01234,x\n99999,y\n", {"a": ["01234", "99999"], "b": ["x", "y"]}),
}  # fmt: skip

ERRORS: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "is empty"),
    "line ends only": ("\r\r\n", "is empty"),
    "a header only": ("a,b\n", "has no rows"),
    "sep= only": ("sep=;\n", "is empty"),
    "UTF-16 that ends within a character": ("a,b\n1,2\n".encode("utf-16")[:-1], "is not text in UTF-8, UTF-16"),
    "an encoding of Japan": ("a,b\n1,\u7533\n".encode("shift-jis") + b"\x81\n", "is not text in UTF-8, UTF-16"),
    "too many fields": ("a,b\n1,2\n1,2,3\n", "line 3: 3 fields instead of 2: '1,2,3'"),
    "too few fields": ("sep=,\na,b\n\n1,2\n1\n", "line 5: 1 fields instead of 2: '1'"),
    "ragged after a cell of lines": ('a,b\n1,"x\ny"\n\n1,2,3\n', "line 5: 3 fields instead of 2"),
    "a quote that never closes": ('a,b\n1,x\n2,"y\n' + "3,z\n" * 200, "line 3: the quote does not close"),
    "closed by another row": ('a,b\n1,x\n2,"y\n' + "3,z\n" * 150 + '4,"w"\n5,v\n', "line 3: the quote does not"),
    "closed by a quote, other fields": ('a,b\n"1,x\n' + "3,z\n" * 150 + '"4",w\n5,v\n', "line 2: the quote does not"),
    "no line ends": (b"x" * 5_000_000, "has no line end in its first 4.0 MiB"),
    "packed": (b"\x1f\x8b\x08\0\0\0\0\0", "is packed with gzip: unpack it first"),
    "packed by bzip2": (bz2.compress(b"a,b\n1,2\n"), "is packed with bzip2: unpack it first"),
    "packed by xz": (lzma.compress(b"a,b\n1,2\n"), "is packed with xz: unpack it first"),
    "Parquet": (parquet_bytes(), "is a Parquet file: name it .parquet"),
    "Parquet without rows": (parquet_bytes(rows=0), "is a Parquet file: name it .parquet"),
    "a workbook": (b"PK\x03\x04\x14\0", "a workbook of a spreadsheet: unpack it, or save it as CSV"),
    "a web page": ("\n<!DOCTYPE html>\n<html></html>\n", "is a web page, no table"),
    "a pointer of Git": ("version https://git-lfs.github.com/spec/v1\n", "git lfs pull fetches it"),
    "a quote in the header": ('a,"b\n1,2\n3,4\n', "line 1: the quote does not close"),
}  # fmt: skip


def written(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "odd.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def values(path: Path, **options: Any) -> dict[str, list[Any]]:
    columns = read_columns(path, DataOptions(**options))
    return {
        name: [
            None if lacks else value for value, lacks in zip(column.values.tolist(), column.missing_rows, strict=True)
        ]
        for name, column in columns.columns.items()
    }


@pytest.mark.parametrize("name", FILES)
def test_what_an_odd_file_gives(tmp_path: Path, name: str) -> None:
    content, expected = FILES[name]
    path = written(tmp_path, content)
    assert values(path) == expected
    assert read_columns(path, DataOptions(), limit=1).rows == 1


@pytest.mark.parametrize("invalid", ["fail", "skip"])
@pytest.mark.parametrize("name", ERRORS)
def test_the_error_of_an_odd_file(tmp_path: Path, name: str, invalid: str) -> None:
    content, message = ERRORS[name]
    if invalid == "skip" and "fields instead" in message:
        assert read_columns(written(tmp_path, content), DataOptions(invalid_examples=invalid)).invalid == 1
        return
    with pytest.raises(DataError) as caught:
        read_columns(written(tmp_path, content), DataOptions(invalid_examples=invalid))
    assert message in str(caught.value)


@pytest.mark.parametrize(("encoding", "name"), [("latin1", "Windows-1252"), ("utf-16", "UTF-16")])
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_another_encoding_is_said(tmp_path: Path, encoding: str, name: str, suffix: str) -> None:
    text = "a,b\n1,x\n2,ä\n" if suffix == "csv" else '{"a": 1, "b": "x"}\n{"a": 2, "b": "ä"}\n'
    path = tmp_path / f"t.{suffix}"
    path.write_bytes(text.encode(encoding))
    assert values(path) == {"a": [1, 2], "b": ["x", "ä"]}
    hint = "; save it as UTF-8 if letters are wrong" if encoding == "latin1" else ""
    said = f"1 of 4 cells of t.{suffix} with letters outside ASCII converted: from {name}, such as 'ä'{hint}"
    assert [*map(str, read_columns(path, DataOptions()).row_changes)] == [said]
    path.write_bytes(text.encode() + b"\n")
    assert read_columns(path, DataOptions()).row_changes == ()


def test_lines_of_comments_are_counted_and_an_error_names_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, "# one\r\n# two\r\na,b\r\n1,2\r\n3\r\n")
    assert [*map(str, read_columns(path, DataOptions(invalid_examples="skip")).row_changes)] == [
        "2 lines before the table left out",
        "1 row of odd.csv left out: they cannot be parsed",
    ]
    with pytest.raises(DataError, match=r"line 5: 1 fields instead of 2"):
        values(path)


def test_headers_of_any_length(tmp_path: Path) -> None:
    row = ",".join("12" for _ in range(8000))
    found = values(written(tmp_path, f"{WIDE}\n{row}\n"))
    assert (len(WIDE) > 1 << 17, len(found), [*found][-1]) == (True, 8000, "a column with a long name 7999")


def test_a_row_of_many_megabytes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"odd.csv has a row of more than 4.0 MiB"):
        values(written(tmp_path, "a,b\n1,2\n3," + "x" * 9_000_000 + "\n"))


def test_only_what_is_read_of_a_file_with_odd_quotes_is_converted(tmp_path: Path) -> None:
    row = b'1,"say \\"x\\" to %s"\n' % (b"y" * 1000)
    path = written(tmp_path, b"a,b\n" + row * 6000 + b"2,\xe4\n")
    assert read_columns(path, DataOptions(), limit=2).row_changes == ()
    assert "from Windows-1252" in str(read_columns(path, DataOptions()).row_changes[0])


def test_a_quote_that_does_not_close_in_a_large_file_is_found_within_a_row(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 3: the quote does not close"):
        values(written(tmp_path, 'a,b\n1,"x \\"y\\""\n2,"z\n' + "3,z\n" * 1_100_000 + '4,"w"\n'))


def test_many_columns_are_described_and_loaded_as_one_matrix(tmp_path: Path) -> None:
    rows = [[*(f"{(row * number) % 7}.5" for number in range(3000)), "ab"[row % 2]] for row in range(12)]
    names = [*(f"n{number}" for number in range(3000)), "kind"]
    path = str(written(tmp_path, "\n".join(",".join(row) for row in [names, *rows])))
    entry, dataset = survey(find(path), DataOptions()), load(path, DataOptions())
    assert entry.shape == dataset.shape
    assert len(dataset.preprocess().inputs) == 1


def test_columns_of_json_and_parquet_have_texts_with_numbers_too(tmp_path: Path) -> None:
    rows = [{"price": "1.234,50 €", "seen": None}, {"price": "12 €", "seen": "x"}]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    large = pa.schema([("price", pa.large_string()), ("seen", pa.large_string())])
    parquet.write_table(pa.Table.from_pylist(rows, large), tmp_path / "large.parquet")
    found = read_columns(tmp_path / "large.parquet", DataOptions()).columns
    assert (found["price"].values.tolist(), found["seen"].values.tolist()) == ([1234.5, 12], [None, "x"])
    for suffix in ("jsonl", "parquet"):
        assert read_columns(tmp_path / f"t.{suffix}", DataOptions()).columns["price"].values.tolist() == [1234.5, 12]


def test_objects_in_json_and_parquet_are_columns_and_times_are_seconds(tmp_path: Path) -> None:
    rows = [{"a": {"b": number, "c": {"d": "x"}}, "e": [1]} for number in range(3)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = pa.Table.from_pylist(rows)
    times = {pa.time32("ms"): 30_600_000, pa.time64("ns"): 30_600 * 10**9, pa.duration("s"): 30_600}
    for kind, time in times.items():
        table = table.append_column(str(kind), pa.array([time] * 3, kind))
    parquet.write_table(table, tmp_path / "t.parquet")
    for suffix in ("jsonl", "parquet"):
        for limit in (None, 2):
            found = read_columns(tmp_path / f"t.{suffix}", DataOptions(), limit=limit).columns
            assert [*found][:3] == ["a.b", "a.c.d", "e"]
            assert found["a.b"].values.tolist() == [0, 1, 2][:limit]
    assert {found[str(kind)].values[0] for kind in times} == {30_600}


@pytest.mark.parametrize(
    ("name", "hint"), [("t.csv.gz", "unpack it first"), ("t.xlsx", "save it as CSV"), ("t.json", "name it .jsonl")]
)
def test_what_helps_with_other_suffixes(tmp_path: Path, name: str, hint: str) -> None:
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(PlanError, match=f"nor a file that ends with .*; .*{hint}"):
        find(str(tmp_path / name))


def test_a_file_without_permission(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\n1,2\n")
    path.chmod(0)
    if os.access(path, os.R_OK):
        return  # the administrator may read everything
    with pytest.raises(DataError, match="cannot be read"):
        values(path)
