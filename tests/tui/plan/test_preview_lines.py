"""The preview of data, as lines."""

from pathlib import Path

import numpy as np
import pytest

from accel_engine import data
from accel_engine.data import DataOptions
from accel_engine.data_profile.described_data import describe_loaded
from accel_tui.plan import data_reading
from accel_tui.plan.data_reading import Preview, not_read
from accel_tui.plan.preview_lines import PreviewLine, preview_lines

HOUSES = "area,city,price\n" + "".join(
    f"{40 + 3 * row if row % 5 else ''},{('Bonn', 'Trier')[row % 2]},{100.5 + row}\n" for row in range(60)
)


def lines_of(spec: str, *, read: bool = True, width: int = 60) -> list[PreviewLine]:
    entry = data.survey(data.find(spec), DataOptions())
    found = Preview(describe_loaded(spec, DataOptions(), entry)) if read else None
    lines = preview_lines(entry, found, width)
    assert all(line.content.cell_length <= width for line in lines)
    return lines


def text_of(lines: list[PreviewLine]) -> str:
    return "\n".join(line.content.plain for line in lines)


def test_a_table_has_columns_with_kinds_distributions_and_missing_values(tmp_path: Path) -> None:
    (tmp_path / "houses.csv").write_text(HOUSES)
    lines = lines_of(str(tmp_path / "houses.csv"))
    assert [line.column for line in lines if line.column] == ["area", "city", "price"]
    area, city, price = (line.content.plain for line in lines if line.column)
    assert "∅12" in area and "number" in area and "▇" in area  # noqa: PT018
    assert "category" in city and "2 values" in city  # noqa: PT018
    assert price.split()[1] == "target"
    text = text_of(lines)
    assert "54 + 6 validation" in text
    assert "distributions of all training rows" in text
    assert "--target" not in text  # the words of the form


def test_the_range_of_a_column_is_exact_and_of_all_rows(tmp_path: Path) -> None:
    rows = "".join(f"{row % 99},{row % 21 / 10},{row * 2.5}\n" for row in range(300))
    (tmp_path / "a.csv").write_text(f"whole,tenths,price\n{rows}")
    whole, tenths, price = (line.content.plain for line in lines_of(str(tmp_path / "a.csv")) if line.column)
    assert whole.endswith(" 0 to 98")
    assert tenths.endswith(" 0 to 2")
    assert price.endswith(" 0 to 747.5")


def test_names_of_wide_characters_are_whole_where_there_is_room(tmp_path: Path) -> None:
    (tmp_path / "houses.csv").write_text(HOUSES.replace("area", "日本語の列"))
    assert "日本語の列 number" in text_of(lines_of(str(tmp_path / "houses.csv")))


def test_before_it_is_read_the_preview_has_what_headers_tell(tmp_path: Path) -> None:
    (tmp_path / "houses.csv").write_text(HOUSES)
    text = text_of(lines_of(str(tmp_path / "houses.csv"), read=False))
    assert "reading the data…" in text
    assert "price" in text


@pytest.mark.parametrize(("classes", "drawn"), [(3, "━"), (20, "█")])
def test_classes_have_bars_and_many_of_equal_size_a_line(tmp_path: Path, classes: int, drawn: str) -> None:
    labels = np.arange(200) % classes
    np.savez(tmp_path / "a.npz", x=np.random.default_rng(0).normal(size=(200, 3)).astype("float32"), y=labels)
    text = text_of(lines_of(str(tmp_path / "a.npz"), width=40))
    assert f"{classes} classes" in text
    assert drawn in text


def test_a_text_shows_its_beginning_without_escape_sequences(tmp_path: Path) -> None:
    (tmp_path / "story.txt").write_text("Once upon \x1b[31ma time. " * 200)
    text = text_of(lines_of(str(tmp_path / "story.txt"), width=40))
    assert "│ Once upon" in text
    assert "\x1b" not in text


def test_what_is_not_read_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_reading, "MAX_BYTES", 100)
    monkeypatch.setattr(data_reading, "MAX_FILES", 2)
    (tmp_path / "large.csv").write_text(HOUSES)
    folder = tmp_path / "many" / "a"
    folder.mkdir(parents=True)
    for number in range(4):
        (folder / f"{number}.png").touch()
    (tmp_path / "mine.py").write_text("def load(): ...\n")
    reasons = {
        spec: not_read(data.find(spec))
        for spec in ("digits", "mnist", f"{tmp_path}/large.csv", f"{tmp_path}/many", f"{tmp_path}/mine.py:load")
    }
    assert [reason.partition(":")[0].partition(" before")[0] for reason in reasons.values()] == [
        "",
        "downloaded when it is first used",
        "only names and first rows",
        "only names",
        "your function is not run",
    ]
