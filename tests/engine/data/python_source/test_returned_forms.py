from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine import data
from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.structure import ArraySpec, Batch, flatten
from accel_engine.errors import DataError, PlanError

START = """
import keras, numpy as np, tensorflow as tf
rng = np.random.default_rng(0)
x, y = rng.random((40, 3)), np.arange(40) % 4
xv, yv = rng.random((10, 3)), np.arange(10) % 4
images = np.zeros((40, 9, 8, 1), np.uint8)
class Odd:
    def __array__(self, dtype=None, copy=None): raise TypeError("not of this type")
def ds(*parts): return tf.data.Dataset.from_tensor_slices(parts if len(parts) > 1 else parts[0])
"""


@pytest.fixture
def write(tmp_path: Path):
    def write(text: str, start: str = START) -> str:
        (tmp_path / "mine.py").write_text(f"{start}\n{text}\n")
        return f"{tmp_path / 'mine.py'}:load"

    return write


@pytest.fixture
def load(write):
    def load(returned: str, parameters: str = "", before: str = "", **options: Any) -> Dataset:
        return data.load(write(f"{before}\ndef load({parameters}): return {returned}"), DataOptions(**options))

    return load


def sizes(dataset: Dataset) -> list[int | None]:
    parts = (dataset.train, dataset.validation, dataset.test)
    return [None if part is None else len(part) if isinstance(part, Split) else part.batches for part in parts]


def first(part: Any) -> Batch:
    return next(iter(part.read(0, 0)))


@pytest.mark.parametrize(
    ("returned", "expected", "inputs", "targets"),
    [
        ("x", [36, 4, None], "float32 3", None),
        ("(x,)", [36, 4, None], "float32 3", None),
        ("(x, None)", [36, 4, None], "float32 3", None),
        ("(x, y)", [36, 4, None], "float32 3", "int32"),
        ("[x, y]", [36, 4, None], "float32 3", "int32"),
        ("(x, y, x[:, 0])", [36, 4, None], "float32 3", "int32"),
        ("(x.tolist(), y.tolist())", [36, 4, None], "float32 3", "int32"),
        ("(tf.constant(x), tf.constant(y))", [36, 4, None], "float32 3", "int32"),
        ("((x, y), (xv, yv))", [40, 10, None], "float32 3", "int32"),
        ("((x, y), (x, y))", [40, 40, None], "float32 3", "int32"),
        ("[(x, y), (xv, yv)]", [40, 10, None], "float32 3", "int32"),
        ("((x, y), (xv, yv), (xv, yv))", [40, 10, 10], "float32 3", "int32"),
        ("((x, y, y), (xv, yv, yv))", [40, 10, None], "float32 3", "int32"),
        ("((x, x), y)", [36, 4, None], ["float32 3", "float32 3"], "int32"),
        ("([x, x[:, :2]], y)", [36, 4, None], ["float32 3", "float32 2"], "int32"),
        ("((x, x), (y, x))", [36, 4, None], ["float32 3", "float32 3"], ["int64", "float32 3"]),
        ("({'a': x, 'b': y}, y)", [36, 4, None], ["float32 3", "int64"], "int32"),
        ("{'a': x, 'b': y}", [36, 4, None], ["float32 3", "int64"], None),
        ("(x, {'a': y, 'b': x})", [36, 4, None], "float32 3", ["int64", "float32 3"]),
        ("{'train': (x, y)}", [36, 4, None], "float32 3", "int32"),
        ("{'train': (x, y), 'validation': None}", [36, 4, None], "float32 3", "int32"),
        ("{'train': (x, y), 'test': (xv, yv)}", [36, 4, 10], "float32 3", "int32"),
        ("{'train': (x, y), 'validation': (xv, yv), 'test': (xv, yv)}", [40, 10, 10], "float32 3", "int32"),
        ("(np.array(['a', 'bc'] * 20), y)", [36, 4, None], "string", "int32"),
        ("ds(x, y)", [5, None, None], "float64 3", "int64"),
        ("ds(x, y).batch(20)", [2, None, None], "float64 3", "int64"),
        ("ds(x)", [5, None, None], "float64 3", None),
        ("ds({'a': x, 'b': y}, y).batch(8)", [5, None, None], ["float64 3", "int64"], "int64"),
        ("(ds(x, y).batch(8), ds(xv, yv).batch(5))", [5, 2, None], "float64 3", "int64"),
        ("(ds(x, y).batch(8), None)", [5, None, None], "float64 3", "int64"),
        ("(ds(x, y).batch(8), (xv.astype('float32'), yv))", [5, 10, None], "float64 3", "int64"),
        ("((x, y), ds(xv, yv).batch(5))", [40, 2, None], "float32 3", "int32"),
        ("{'train': ds(x, y).batch(8), 'test': ds(xv, yv).batch(5)}", [5, None, 2], "float64 3", "int64"),
    ],
)
def test_forms(load, returned: str, expected: list[int], inputs: Any, targets: Any) -> None:
    dataset = load(returned, batch_size=8)
    assert sizes(dataset) == expected
    for structure, specs in ((dataset.spec.inputs, inputs), (dataset.spec.targets, targets)):
        found = [str(spec) for spec in flatten(structure)]
        assert found == ([] if specs is None else [specs] if isinstance(specs, str) else specs)
    assert isinstance(dataset.spec.inputs, ArraySpec) == isinstance(inputs, str)


STREAMS = """
class Py(keras.utils.PyDataset):
    def __init__(self, x, y):
        super().__init__()
        self.x, self.y = x, y
    def __len__(self): return -(-len(self.x) // 8)
    def __getitem__(self, index): return self.x[8 * index : 8 * index + 8], self.y[8 * index : 8 * index + 8]
def batches(x=x, y=y, size=8):
    for first in range(0, len(x), size):
        yield x[first : first + size], y[first : first + size]
def examples():
    yield from zip(x, y)
class Again:
    def __iter__(self): return batches()
    def __len__(self): return 5
"""


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("Py(x, y)", [5, None, None]),
        ("(Py(x, y), Py(xv, yv))", [5, 2, None]),
        ("batches()", [None, None, None]),
        ("batches", [None, None, None]),
        ("iter(list(batches()))", [None, None, None]),
        ("(batches(), batches(xv, yv))", [None, None, None]),
        ("examples()", [None, None, None]),
        ("Again()", [5, None, None]),
        ("((x, y), batches(xv, yv))", [40, None, None]),
    ],
)
def test_streams(load, returned: str, expected: list[int | None]) -> None:
    dataset = load(returned, before=STREAMS, batch_size=8)
    assert sizes(dataset) == expected
    assert (dataset.validation is not None) == returned.startswith("(")
    if isinstance(dataset.train, Split):
        return
    assert dataset.train.batch_size == 8
    whole = list(dataset.train.read(0, 0))
    assert [len(batch.inputs) for batch in whole] == [8] * 5
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(
        np.concatenate([batch.inputs for batch in whole]), rng.random((40, 3), np.float64).astype(np.float32)
    )
    np.testing.assert_array_equal(np.concatenate([batch.targets for batch in whole]), np.arange(40) % 4)


def test_a_function_that_yields_is_the_data(write) -> None:
    spec = write("def load():\n    for _ in range(3):\n        yield x[:4], y[:4]")
    dataset = data.load(spec, DataOptions())
    assert not isinstance(dataset.train, Split)
    assert [len(batch.targets) for batch in dataset.train.read(1, 1)] == [4, 4]


def test_what_is_known_about_the_data(load) -> None:
    about = "'class_names': ['a', 'b', 'c', b'd'], 'vocabulary': ['x'], 'feature_names': ('f', 'g', 'h')"
    dataset = load(f"{{'train': ds(x, y).batch(8), {about}}}")
    assert (dataset.class_names, dataset.task) == (("a", "b", "c", "d"), "classification")
    assert (dataset.vocabulary, dataset.feature_names) == (("x",), ("f", "g", "h"))
    assert load("{'train': (x, y), 'task': 'regression'}").spec.targets == ArraySpec((), "float32")
    assert load("(x, y)", task="regression").task == "regression"
    images = load("(np.zeros((40, 9, 8), 'uint8'), y)")
    assert (images.shape, images.kind) == ((9, 8), "arrays")  # as fit would take them


@pytest.mark.parametrize(
    ("element", "task"),
    [
        ("(x, y)", "auto"),
        ("(x, x[:, 0])", "regression"),
        ("(x, x)", "regression"),
        ("(x, np.stack([y, y], 1))", "sequence"),
        ("(x, {'a': y})", "auto"),
        ("(np.zeros((40, 16, 16, 3)), np.zeros((40, 16, 16, 1), int))", "segmentation"),
        ("(np.zeros((40, 16, 16, 3)), np.zeros((40, 16, 16, 3)))", "reconstruction"),
    ],
)
def test_shapes_suggest_the_task_of_a_stream(load, element: str, task: str) -> None:
    assert load(f"ds(*{element}).batch(8)").task == task


def test_the_function_gets_what_it_asks_for(load) -> None:
    dataset = load(
        "(np.zeros((batch_size, *image_size, seed)), None)", "batch_size, image_size, *, seed, more=1",
        batch_size=20, image_size="5x4", seed=7, split="none",
    )  # fmt: skip
    assert (sizes(dataset)[0], dataset.shape) == (20, (5, 4, 7))
    assert load("(x, y) if image_size is None else 1", "image_size").shape == (3,)
    with pytest.raises(PlanError, match="image_size"):
        load("(x, y)", image_size="5x4")
    with pytest.raises(DataError, match=r"requires width; available arguments: batch_size, image_size, seed$"):
        load("x", "width")


def test_a_function_that_asks_for_the_split_is_called_for_each(load) -> None:
    whole = "{'train': (x, y), 'validation': (xv, yv), 'test': None}[split]"
    assert sizes(load(whole, "split")) == [40, 10, None]
    assert sizes(load("(x, y) if split == 'train' else None", "split")) == [36, 4, None]
    assert sizes(load("ds(x, y).batch({'train': 8, 'validation': 10, 'test': 20}[split])", "split")) == [5, 4, 2]
    tuples = load("((x, x), (x, x)) if split == 'train' else None", "split")  # never a pair of splits
    assert len(flatten(tuples.spec)) == 4
    with pytest.raises(DataError, match=r"mine.py:load returned nothing"):
        load("None", "split")


def test_validation_data_of_its_own(load, write, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text(START + "def load(): return xv, yv")
    dataset = load("(x, y)", validation_data=f"{tmp_path / 'other.py'}:load")
    assert sizes(dataset) == [40, 10, None]
    with pytest.raises(PlanError, match=r"validation_data .* must be FILE.py:FUNCTION"):
        load("(x, y)", validation_data="other.npz")


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ("None", "mine.py:load returned nothing; it must return the data"),
        ("'text'", "returned 'text', which is not data"),
        ("keras.Sequential", "which is not data"),
        ("(1, 2, 3, 4)", "expected x, .* not 4 parts"),
        ("(x, y[:3])", "training inputs has 40 rows but training targets has 3"),
        ("{'train': (x, y), 'val': (xv, yv)}", "unknown key 'val'; known keys: train, validation"),
        ("{'train': (x, y), 'class_name': 'abcd'}", "unknown key 'class_name'; did you mean class_names"),
        ("{'train': (x, y), 'class_names': 'abcd'}", "class_names = 'abcd'; must be a list of texts"),
        ("{'train': (x, y), 'task': 'win'}", "the task 'win'; must be one of auto, classification"),
        ("{'validation': (x, y)}", "a dictionary of splits without train"),
        ("((x, x), None)", "a tuple and None, which may be inputs or a split; return {'train'"),
        ("((x, x), (x, x))", "arrays of one shape, which may be inputs or splits; return {'train'"),
        ("(ds(x), y)", "a stream beside an array: a stream gives inputs and targets together"),
        ("(tf.ragged.constant([[1], [1, 2]]), [1, 2])", "inputs: a ragged tensor; make it dense"),
        ("(tf.sparse.from_dense(x), y)", "inputs: a sparse tensor; make it dense"),
        ("([[1], [1, 2]], [1, 2])", "inputs: examples of different lengths; pad them"),
        ("ds(tf.ragged.constant([[1], [1, 2]])).batch(2)", "ragged tensors; make them dense"),
        ("ds(x, y, y, y)", "has 4 parts"),
        (
            "(ds(x, y).batch(4), ds(xv[:, :2], yv).batch(5))",
            "examples are float64 3 in training inputs but float64 2 in validation inputs",
        ),
        (
            "(ds(x, y).batch(4), ds(xv).batch(5))",
            "training targets and validation targets differ, one array and nothing: all splits",
        ),
        ("(ds(x, y).batch(4), ds(xv, yv).batch(5).repeat())", "validation dataset never ends"),
        (
            "(ds(images, y).batch(4), ds(images / 255, y).batch(5))",
            "examples are uint8 in training inputs but float64 in validation inputs: both must",
        ),
        ("(np.ma.masked_greater(x, 0.9), y)", r"training inputs\[\d+\] has values that are NaN or infinite"),
        ("(np.ma.masked_equal(y, 2), y)", r"training inputs\[2\] has values that are NaN or infinite"),
        ("(x * 1e300, y)", r"training inputs\[0\] has values that are NaN or infinite"),
        ("(x + 1j, y)", "holds complex numbers; examples must be numbers or text"),
        ("(np.array([None, 1.0] * 20), y)", "holds Python objects; examples must be numbers or text"),
        ("(Odd(), y)", "inputs: Odd cannot be an array of NumPy: not of this type"),
        ("iter([])", "the data has no examples"),
        ("[]", "inputs has no examples"),
        ("(x, 1 / 0)", r"mine.py:load failed in mine.py, line \d+: ZeroDivisionError"),
    ],
)
def test_what_cannot_be_used_is_explained(load, returned: str, words: str) -> None:
    with pytest.raises(DataError, match=words) as caught:
        load(returned)
    assert str(caught.value).startswith("data mine.py:load")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ("x.astype('>f8')", "x"),
        ("(x * 9).astype('>i2')", "(x * 9).astype('i2')"),
        ("x.astype(np.float16)", "x.astype(np.float16)"),
        ("x.astype(np.longdouble)", "x"),
        ("tf.cast(x, tf.bfloat16)", "tf.cast(tf.cast(x, tf.bfloat16), 'float32').numpy()"),
        ("np.asfortranarray(x)", "x"),
        ("x[::-1]", "x[::-1]"),
        ("np.ma.array(x, mask=False)", "x"),
        ("x > 0.5", "x > 0.5"),
        ("x.tolist()", "x"),
    ],
)
def test_odd_arrays_are_taken_as_they_are_meant(load, values: str, expected: str) -> None:
    one, other = (load(f"({each}, y)", split="none").train.inputs for each in (values, expected))
    assert one.dtype == other.dtype
    assert one.dtype.isnative
    np.testing.assert_array_equal(one, other)


def test_the_error_of_a_function_is_the_cause(load) -> None:
    with pytest.raises(DataError) as caught:
        load("(x, 1 / 0)")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_table_options_are_for_files(load) -> None:
    with pytest.raises(PlanError, match=r"target .* only for files"):
        load("(x, y)", target=("y",))


def test_a_module_is_found_in_the_current_folder(write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("def load(): return x, y")
    monkeypatch.chdir(tmp_path)
    assert data.load("mine:load", DataOptions()).shape == (3,)
