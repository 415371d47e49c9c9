"""What can be chosen as data."""

from pathlib import Path

import pytest

from accel_tui.plan import data_places
from accel_tui.plan.data_places import DataPlace, completed, list_folder, matching, recent, typed_parts


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "shapes" / "circle").mkdir(parents=True)
    (tmp_path / "shapes" / "circle" / "0.png").touch()
    (tmp_path / "notes").mkdir()
    (tmp_path / ".hidden.csv").touch()
    (tmp_path / "houses.csv").write_text("a,b\n1,2\n")
    (tmp_path / "house-of-cards.txt").write_text("text")
    (tmp_path / "readme.md").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_data_comes_first_with_what_it_holds_and_its_size(folder: Path) -> None:
    listing = list_folder(folder)
    found = [(place.text, place.kind, place.size, place.is_data) for place in listing.places]
    assert found == [
        ("house-of-cards.txt", "text", "4B", True),
        ("houses.csv", "table", "8B", True),
        ("shapes/", "images", "", True),
        ("notes/", "folder", "", False),
    ]
    assert listing.others == 1  # readme.md; hidden files are not counted


def test_what_is_elsewhere_has_its_whole_path(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "far.npz").touch()
    (place,) = list_folder(other).places
    assert (place.text, place.name, place.kind) == (str(other / "far.npz"), "far.npz", "arrays")


def test_a_folder_with_more_than_can_be_listed_counts_the_others(tmp_path: Path) -> None:
    for number in range(data_places.MAX_LISTED + 7):
        (tmp_path / f"{number:04}.csv").touch()
    listing = list_folder(tmp_path)
    assert (len(listing.places), listing.others) == (data_places.MAX_LISTED, 7)


def test_a_folder_that_does_not_exist_says_so(tmp_path: Path) -> None:
    assert list_folder(tmp_path / "none").problem == "No such file or directory"


def test_what_is_typed_filters_and_names_a_folder(folder: Path) -> None:
    places = list_folder(folder).places
    assert [place.name for place in matching(places, "house")] == ["house-of-cards.txt", "houses.csv"]
    assert [place.name for place in matching(places, "cards")] == ["house-of-cards.txt"]
    assert typed_parts("hou") == (None, "hou")
    assert typed_parts("shapes/ci") == (folder / "shapes", "ci")
    assert typed_parts("..") == (folder.parent, "")
    assert typed_parts("/") == (Path("/"), "")


def test_a_path_is_completed_as_far_as_all_names_agree(folder: Path) -> None:
    places = list_folder(folder).places
    assert completed(places, "h") == "house"
    assert completed(places, "houses") == "houses.csv"
    assert completed(places, "sh") == "shapes/"
    assert completed(places, "x") is None
    assert completed(list_folder(folder / "shapes").places, "shapes/c") == "shapes/circle/"


def test_recent_data_is_listed_once_and_not_beside_itself(folder: Path) -> None:
    places = list_folder(folder).places
    trained = [str(folder / "houses.csv"), "digits", "/far/a.csv", "/far/a.csv", "mine.py:load"]
    assert recent(trained, places) == (
        DataPlace("/far/a.csv", "/far/a.csv", "recent"),
        DataPlace("mine.py:load", "mine.py:load", "recent"),
    )
