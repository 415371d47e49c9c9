"""Model and data files from elsewhere run no code: the files of ``tests/hostile_files`` try, and would make a file."""

import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path

import h5py
import keras
import numpy as np
import pytest

from accel_engine import data
from accel_engine.data import DataOptions
from accel_engine.errors import AccelError, ModelError
from accel_engine.models.model_entry import BuildOptions
from accel_engine.models.saved_model import load_saved
from accel_engine.plan.plan_file import read_plan_file
from hostile_files.make import FOLDER, MARKER

MODELS = sorted(path.name for path in FOLDER.glob("*.keras"))

pytestmark = pytest.mark.filterwarnings("ignore:Skipping invalid path during archive extraction")


@pytest.fixture(autouse=True)
def _nothing_ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run the test in a separate directory, in which and beside which no file may be made."""
    place = tmp_path / "inside"
    place.mkdir()
    monkeypatch.chdir(place)
    yield
    assert not list(tmp_path.rglob(MARKER))
    assert not Path("/tmp", MARKER).exists()


def test_the_files_would_run_code_if_they_were_trusted() -> None:
    pickle.loads((FOLDER / "pickle.keras").read_bytes())
    Path(MARKER).unlink()
    np.load(FOLDER / "pickle.npy", allow_pickle=True)
    Path(MARKER).unlink()


@pytest.mark.parametrize("name", MODELS)
def test_a_model_runs_no_code(name: str) -> None:
    with pytest.raises(ModelError) as refused:
        load_saved(str(FOLDER / name), BuildOptions())
    assert "Traceback" not in str(refused.value)


@pytest.mark.parametrize("name", ["pickle.npy", "pickle.npz", "code_in_header.npy"])
def test_arrays_run_no_code(name: str) -> None:
    path = str(FOLDER / name)
    with pytest.raises(AccelError):
        data.survey(data.find(path), DataOptions())
    with pytest.raises(AccelError):
        data.load(path, DataOptions())


def test_formulas_of_a_table_are_texts() -> None:
    path = str(FOLDER / "formulas.csv")
    entry = data.survey(data.find(path), DataOptions(target=("y",)))
    assert {column.name: column.kind for column in entry.columns}["a"] in ("category", "text")
    data.load(path, DataOptions(target=("y",)))


@pytest.mark.parametrize(("name", "copies"), [("huge.png", 4), ("huge.wav", 4)])
def test_files_that_claim_to_be_huge_run_no_code_and_fill_no_memory(name: str, copies: int, tmp_path: Path) -> None:
    for label in ("a", "b"):
        (tmp_path / "folder" / label).mkdir(parents=True)
        for index in range(copies):
            shutil.copy(FOLDER / name, tmp_path / "folder" / label / f"{index}{Path(name).suffix}")
    with pytest.raises(AccelError):
        data.load(str(tmp_path / "folder"), DataOptions(image_size=(8, 8) if name.endswith("png") else None))


@pytest.mark.filterwarnings("ignore:A total of 1 objects could not be loaded")
@pytest.mark.parametrize("name", ["other_file.weights.h5", "huge.weights.h5"])
def test_weights_run_no_code_and_fill_no_memory(name: str) -> None:
    with h5py.File("secret.h5", "w") as file:
        file["secret"] = np.full((2, 1), 42.0, np.float32)
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    shutil.copy(FOLDER / name, "mine.weights.h5")
    model.load_weights("mine.weights.h5", skip_mismatch=True)
    if tuple(map(int, keras.__version__.split(".")[:2])) >= (3, 15):  # earlier ones read what the file links to
        assert not np.any(model.get_weights()[0] == 42.0)


def test_the_texts_of_a_plan_are_no_commands() -> None:
    assert read_plan_file(FOLDER / "plan.toml").values["name"].startswith("$(touch")
