from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine import data
from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.series.array_series import windowed_arrays
from accel_engine.data.structure import flatten
from accel_engine.errors import DataError, PlanError

START = """
import numpy as np
t = np.arange(60.0)
x = np.stack([t, t + 1000], axis=1)
"""
T = np.arange(60.0)
X = np.stack([T, T + 1000], axis=1)


@pytest.fixture
def load(tmp_path: Path):
    def load(returned: str, parameters: str = "", **options: Any) -> Dataset:
        path = tmp_path / "mine.py"
        path.write_text(f"{START}\ndef load({parameters}): return {returned}\n")
        chosen = DataOptions(**{"window": 4, "scale": "none", **options})
        data.survey(data.find(f"{path}:load"), chosen)
        return data.load(f"{path}:load", chosen)

    return load


@pytest.mark.parametrize(
    ("returned", "arrays", "options"),
    [
        ("t", {"x": T}, {}),
        ("x", {"x": X}, {"horizon": 3}),
        ("(x, t)", {"x": X, "y": T}, {}),
        ("x", {"x": X}, {"target": ("x[1]",), "scale": "auto"}),
        ("{'a': t, 'b': x}", {"a": T, "b": X}, {"target": ("a",), "ignore": ("b[0]",)}),
        ("{'a': t, 'b': x}", {"a": T}, {"ignore": ("b",)}),
        ("(t, t, None)", {"x": T, "y": T}, {"split": "none"}),
    ],
)
def test_arrays_give_the_windows_of_a_file(
    load, returned: str, arrays: dict[str, Any], options: dict[str, Any]
) -> None:
    made = load(returned, **options)
    expected = windowed_arrays("mine", arrays, DataOptions(**{"window": 4, "scale": "none", **options}))
    for split in ("train", "validation", "test"):
        own, like = getattr(made, split), getattr(expected, split)
        assert (own is None) == (like is None)
        for mine, theirs in zip(flatten(own and own.batch), flatten(like and like.batch), strict=True):
            np.testing.assert_array_equal(mine, theirs)
    assert (made.task, made.kind, made.target_names) == (expected.task, "series", expected.target_names)


@pytest.mark.parametrize(
    ("returned", "parameters"),
    [
        ("{'train': t, 'validation': t + 100, 'test': t + 200}", ""),
        ("{'train': {'a_train': t}, 'validation': {'a_train': t + 100}, 'test': {'a_train': t + 200}}", ""),
        ("t + {'train': 0, 'validation': 100, 'test': 200}[split]", "split"),
    ],
)
def test_splits_stay_apart(load, returned: str, parameters: str) -> None:
    made = load(returned, parameters)
    for split, low in (("train", 0), ("validation", 100), ("test", 200)):
        part = getattr(made, split)
        assert isinstance(part, Split)
        assert (part.inputs.min(), part.targets.max(), len(part)) == (low, low + 59, 56)


def test_a_test_split_is_not_for_validation(load) -> None:
    made = load("{'train': t, 'test': t + 200}")
    assert made.test.inputs.min() == 200
    assert 0 < made.validation.inputs.min() < 60


def test_validation_data_is_a_function_too(load, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("import numpy as np\ndef later(): return np.arange(60.) + 100")
    made = load("t", validation_data=f"{tmp_path / 'other.py'}:later")
    assert (len(made.train), made.validation.inputs.min()) == (56, 100)


@pytest.mark.parametrize(
    ("returned", "error", "words"),
    [
        ("(each for each in [t])", PlanError, "^window = 4: needs arrays.*the train data is a stream"),
        ("{'train': t, 'validation': iter([t])}", PlanError, "the validation data is a stream"),
        ("(t, t, t)", PlanError, "windows have no sample weights"),
        ("x[None]", DataError, r"^data mine.py:load: x has the shape \(1, 60, 2\); a time series is"),
        ("({'y': t}, t)", DataError, "inputs and targets both have an array 'y'"),
        ("np.array(['a', 'b'] * 30)", DataError, "has text"),
        ("t[:6]", PlanError, "^window = 4"),
    ],
)
def test_what_has_no_windows(load, returned: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        load(returned)


def test_only_kinds_are_for_files(load) -> None:
    with pytest.raises(PlanError, match=r"^kinds"):
        load("t", kinds=("x=number",))
    with pytest.raises(PlanError, match=r"^target"):
        load("t", target=("z",))
    with pytest.raises(PlanError, match=r"^ignore.*no array is left"):
        load("t", ignore=("x",))
