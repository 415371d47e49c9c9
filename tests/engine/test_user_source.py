import sys
from pathlib import Path

import pytest

from accel_engine import data
from accel_engine.data.data_options import DataOptions
from accel_engine.data.source import DatasetEntry
from accel_engine.devices.device_types import Device
from accel_engine.errors import DataError, ModelError, PlanError
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve_to_train
from accel_engine.user_code import UserFunction
from accel_engine.user_source import check_source

HOST = (Device("cpu:0", "cpu", "a processor"),)
RAISES = "raise RuntimeError('was imported')\n"


@pytest.fixture
def survey(tmp_path: Path):
    """Survey a file of a user, whose function is ``load``."""

    def survey(text: str, **options: object) -> DatasetEntry:
        (tmp_path / "mine.py").write_text(RAISES + text)
        found = data.find(f"{tmp_path / 'mine.py'}:load")
        return data.survey(found, DataOptions(**options))  # type: ignore[arg-type]

    return survey


@pytest.mark.parametrize(
    "text",
    [
        "def load(): ...",
        "def load(batch_size, *, seed, split='train', image_size=None, other=3, **more): ...",
        "class load: ...",
        "async def load(): ...",
        "load = lambda: 3",
        "from other import load",
        "from other import *",
        "if 1:\n  def load(seed): ...\nelse:\n  def load(what): ...",
        "try:\n  from other import load\nexcept ImportError:\n  def load(): ...",
        "@decorated\ndef load(what): ...",
        "def __getattr__(name): ...",
        "globals()['load'] = 3",
        "def make():\n  global load\n  load = 3",
        "for load in [1]: ...",
        "with open('x') as load: ...",
        "a, (b, load) = 1, (2, 3)",
        "print('\\d')\ndef load(): ...",
    ],
)
def test_functions_that_exist_are_accepted_without_being_run(survey, text: str) -> None:
    assert survey(text).name == "mine:load"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def load(:\n  pass", r"data mine.py:load failed in mine.py, line 2: SyntaxError"),
        ("def load(): ...\nreturn 3", r"mine.py, line 3: SyntaxError: 'return' outside function"),
        ("def lod(): ...", r"has no function load; did you mean lod\?"),
        ("def first(): ...\ndef second(): ...\ndef _own(): ...", r"has no function load; known: first, second$"),
        ("class Other:\n  def load(self): ...", r"has no function load; it has no functions"),
        ("def other():\n  load = 3", r"has no function load"),
        ("import load_other", r"has no function load"),
        ("import other as load", r"load in .*mine.py is a module, not a function: name a function in it"),
        ("import load.other", r"is a module, not a function"),
        ("def load(path): ...", r"load in .*mine.py requires path; available arguments: batch_size, image_size, seed,"),
        ("def load(seed, a, b=3, *, c, d=4): ...", r"requires a, c; available"),
        ("def load(seed, /): ...", r"requires seed; available"),
        ("\0", r"data mine.py:load failed.*null bytes"),
    ],
)
def test_errors_are_found_without_running_the_file(survey, text: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        survey(text)


@pytest.mark.parametrize("name", ["target", "features", "ignore", "kinds"])
def test_columns_are_for_files(survey, name: str) -> None:
    with pytest.raises(PlanError, match="only for files"):
        survey("def load(): ...", **{name: ("a",)})


def test_an_image_size_needs_the_parameter(survey) -> None:
    survey("def load(image_size): ...", image_size="8x8")
    with pytest.raises(PlanError, match="mine:load has no parameter image_size"):
        survey("def load(): ...", image_size="8x8")


def test_the_function_of_validation_data_is_checked(survey, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    survey("def load(): ...", validation_data=f"{file}:load")
    with pytest.raises(DataError, match="did you mean load"):
        survey("def load(): ...", validation_data=f"{file}:lood")
    with pytest.raises(PlanError, match="as the data is"):
        survey("def load(): ...", validation_data="valid.csv")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "mine_of_user" / "inner"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text(RAISES)
    (folder / "sets.py").write_text(f"{RAISES}\ndef load(seed): ...")
    return folder.parent


def module_error(target: str, function: str = "load") -> str:
    user = UserFunction(target, function, f"data {target}:{function}", DataError)
    with pytest.raises(DataError) as caught:
        check_source(user, ("seed",))
    return str(caught.value)


def test_a_module_is_found_without_importing_its_package(package: Path) -> None:
    before = set(sys.modules)
    user = UserFunction("mine_of_user.inner.sets", "load", "data", DataError)
    assert check_source(user, ("seed",)) == {"seed"}
    assert "requires seed" in str(module_error_of(user))
    assert not {name for name in set(sys.modules) - before if name.startswith("mine_of_user")}


def module_error_of(user: UserFunction) -> DataError:
    with pytest.raises(DataError) as caught:
        check_source(user, ())
    return caught.value


def test_a_missing_module_is_named(package: Path) -> None:
    assert module_error("mine_of_user.inner.set") == (
        "data mine_of_user.inner.set:load failed: there is no module mine_of_user.inner.set"
    )
    assert "there is no module nowhere_at_all" in module_error("nowhere_at_all.inner")
    assert "did you mean load?" in module_error("mine_of_user.inner.sets", "laod")


def test_packages_that_find_their_modules_themselves_are_left_to_the_import(package: Path) -> None:
    (package / "__init__.py").write_text("import pkgutil\n__path__ = pkgutil.extend_path(__path__, __name__)")
    assert check_source(UserFunction("mine_of_user.elsewhere", "load", "data", DataError), ()) is None
    assert check_source(UserFunction("os.path", "join", "data", DataError), ()) is None
    assert check_source(UserFunction("math", "sqrt", "data", DataError), ()) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def build(classes, vocabulary, element_spec, input_shape, num_classes, class_names): ...", ""),
        ("class build: ...", ""),
        ("def built(): ...", r"has no function build; did you mean built\?"),
        ("def build(width): ...", "requires width; available arguments: input_shape, classes,"),
        ("import keras as build", "build in .*nets.py is a module, not a function: name a function in it"),
        ("build = keras.Sequential([])", "build in .*nets.py is a model, not a function: write one that returns it, e"),
        ("build = [1, 2]", "build in .*nets.py is a value, not a function"),
        ("build = 3\ndef build(): ...", ""),
        ("build = make()", ""),
        ("def build(:", r"model nets:build failed in nets.py, line 2: SyntaxError"),
    ],
)
def test_a_model_is_checked_before_it_is_trained(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "nets.py").write_text(RAISES + text)
    plan = Plan(model=f"{tmp_path / 'nets.py'}:build")
    if not words:
        assert resolve_to_train(plan, HOST).model.name == "nets:build"
        return
    with pytest.raises(ModelError, match=words):
        resolve_to_train(plan, HOST)
