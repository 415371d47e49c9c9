import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine import data, memory
from accel_engine.data import array_file, npz
from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.source import EntryColumn
from accel_engine.data.structure import ArraySpec, Batch
from accel_engine.errors import AccelError, DataError, PlanError

RNG = np.random.default_rng(0)
X = RNG.integers(0, 256, (30, 9, 8)).astype(np.uint8)
Y = np.arange(30) % 3
NONE = DataOptions()

Save = Callable[..., str]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    def save(file: str = "mine.npz", **arrays: Any) -> str:
        np.savez(tmp_path / file, **arrays)
        return str(tmp_path / file)

    return save


def sizes(dataset: Dataset) -> list[int | None]:
    return [None if part is None else len(part) for part in (dataset.train, dataset.validation, dataset.test)]


def train(dataset: Dataset) -> Split:
    assert isinstance(dataset.train, Split)
    return dataset.train


def test_keras_form(save: Save) -> None:
    dataset = data.load(save(x_train=X, y_train=Y, x_test=X[:6], y_test=Y[:6]), NONE)
    assert (dataset.name, dataset.shape) == ("mine", (9, 8, 1))
    assert sizes(dataset) == [30, 6, None]
    np.testing.assert_array_equal(dataset.validation.inputs[..., 0], X[:6])
    assert any("validating on the test arrays, as there is no validation split" in note for note in dataset.notes)


FORMS: dict[str, tuple[dict[str, Any], dict[str, Any], list[int | None]]] = {
    "x and y": ({"x": X, "y": Y}, {}, [27, 3, None]),
    "only x": ({"x": X}, {}, [27, 3, None]),
    "train": ({"x_train": X, "y_train": Y}, {}, [27, 3, None]),
    "train and test": ({"x_train": X, "y_train": Y, "x_test": X[:6], "y_test": Y[:6]}, {}, [30, 6, None]),
    "train and test, split": (
        {"x_train": X, "y_train": Y, "x_test": X[:6], "y_test": Y[:6]},
        {"split": "random"},
        [27, 3, 6],
    ),
    "train and test, not split": (
        {"x_train": X, "y_train": Y, "x_test": X[:6], "y_test": Y[:6]},
        {"split": "none"},
        [30, None, 6],
    ),
    "all": (
        {f"{a}_{b}": v[:n] for a, v in (("x", X), ("y", Y)) for b, n in (("train", 30), ("val", 5), ("test", 6))},
        {},
        [30, 5, 6],
    ),
    "x and x_test": ({"x": X, "y": Y, "x_test": X[:4], "y_test": Y[:4]}, {}, [30, 4, None]),
    "weights": ({"x": X, "y": Y, "sample_weight": Y + 1}, {}, [27, 3, None]),
    "weights of splits": (
        {"x_train": X, "y_train": Y, "sample_weight_train": Y + 1.0, "x_val": X, "y_val": Y, "sample_weight_val": Y},
        {},
        [30, 30, None],
    ),
    "several inputs": ({"image": X, "age": Y * 2.0, "y": Y}, {}, [27, 3, None]),
    "named": (
        {"image": X, "age": Y * 2.0, "price": Y / 3, "id": Y},
        {"target": ("price",), "ignore": ("id",)},
        [27, 3, None],
    ),
    "several targets": ({"a": X, "b": Y, "c": Y / 3}, {"target": ("b", "c"), "features": ("a",)}, [27, 3, None]),
    "named splits": (
        {"train_images": X, "train_labels": Y, "val_images": X[:7], "val_labels": Y[:7]},
        {},
        [30, 7, None],
    ),
    "series": ({"x": RNG.random((30, 12, 4)), "y": RNG.random(30)}, {}, [27, 3, None]),
    "masks": ({"x": np.stack([X] * 3, 3), "y": X // 64}, {}, [27, 3, None]),
    "tokens": ({"x": RNG.integers(0, 50, (30, 12)), "y": RNG.integers(0, 50, (30, 12))}, {}, [27, 3, None]),
    "one-hot": ({"x": RNG.random((30, 12)), "y": np.eye(3)[Y]}, {}, [27, 3, None]),
    "text": ({"x": np.array(["some text", "more"] * 15), "y": Y}, {}, [27, 3, None]),
    "text labels": ({"x": RNG.random((30, 2)), "y": np.array(["no", "yes"] * 15)}, {}, [27, 3, None]),
    "class names": ({"x": X, "y": Y, "class_names": np.array(["a", "b", "c", "d"])}, {}, [27, 3, None]),
    "columns first": ({"x": np.asfortranarray(RNG.random((30, 5))), "y": Y}, {}, [27, 3, None]),
    "test share": ({"x": X, "y": Y}, {"test_split": 0.2}, [21, 3, 6]),
}


@pytest.mark.parametrize("form", FORMS)
def test_survey_finds_what_reading_gives(save: Save, form: str) -> None:
    arrays, options, expected = FORMS[form]
    spec = save(**arrays)
    entry = data.survey(data.find(spec), DataOptions(**options))
    dataset = data.load(spec, DataOptions(**options))
    assert sizes(dataset) == expected
    assert [entry.examples, entry.validation_examples, entry.test_examples] == [size or 0 for size in expected]
    assert entry.spec is not None
    assert entry.spec[:2] == dataset.spec[:2]
    assert (entry.shape, entry.task, entry.kind) == (dataset.shape, dataset.task, dataset.kind)
    assert entry.value_range == dataset.value_range
    assert (entry.classes, entry.class_names) == (dataset.classes, dataset.class_names)
    assert {column.name for column in entry.columns} | {"class_names"} >= set(arrays)
    assert len(entry.samples) == 3


def test_what_the_arrays_become(save: Save) -> None:
    everything = {}
    for form, (arrays, options, _) in FORMS.items():
        names = {field: value for field, value in options.items() if "split" not in field}
        everything[form] = data.load(save(**arrays), DataOptions(split="none", **names))
    weighted = train(everything["weights"])
    assert weighted.weights.dtype == np.float32
    np.testing.assert_array_equal(weighted.weights, Y + 1)
    assert everything["weights of splits"].validation.weights.dtype == np.float32
    assert everything["several inputs"].spec.inputs == {
        "image": ArraySpec((9, 8), "uint8"),
        "age": ArraySpec((), "float32"),
    }
    assert (everything["several inputs"].task, everything["several inputs"].classes) == ("classification", 3)
    assert set(everything["named"].spec.inputs) == {"image", "age"}
    assert everything["named"].task == "regression"
    assert everything["several targets"].spec == Batch(
        ArraySpec((9, 8, 1), "uint8"), {"b": ArraySpec((), "int64"), "c": ArraySpec((), "float32")}
    )
    assert (everything["series"].shape, everything["series"].task) == ((12, 4), "regression")
    assert (everything["tokens"].spec.inputs, everything["tokens"].task) == (ArraySpec((12,), "int64"), "sequence")
    assert (everything["masks"].task, everything["masks"].kind) == ("segmentation", "images")
    assert (everything["one-hot"].task, everything["one-hot"].spec.targets) == (
        "classification",
        ArraySpec((3,), "float32"),
    )
    assert (everything["text"].spec.inputs, everything["text"].kind) == (ArraySpec((), "string"), "text")
    assert everything["text labels"].class_names == ("no", "yes")
    assert everything["class names"].class_names == ("a", "b", "c", "d")
    assert everything["only x"].spec.targets is None
    assert any("no targets: x used as inputs; --target names" in note for note in everything["only x"].notes)
    np.testing.assert_array_equal(train(everything["columns first"]).targets, Y)


def test_survey_describes_arrays_and_examples(save: Save) -> None:
    spec = save(x=X, y=Y, age=Y / 4, note=np.array(["a"] * 30), odd=np.zeros(3))
    entry = data.survey(data.find(spec), DataOptions(features=("x", "age"), ignore=("note",)))
    assert entry.columns == (
        EntryColumn("age", "number", "input", detail="float64 [30]"),
        EntryColumn("x", "image", "input", detail="uint8 [30, 9, 8]"),
        EntryColumn("y", "label", "target", detail="int64 [30], 3 classes"),
        EntryColumn("odd", "number", "unused", detail="float64 [3]"),
        EntryColumn("note", "ignored", "unused", detail="<U1 [30]"),
    )
    assert entry.class_counts == (10, 10, 10)
    assert entry.samples[1][0] == "1"
    assert entry.samples[1][1] == f"age: 0.25, x: 9x8, {X[1].min()} to {X[1].max()}, target: 1"


@pytest.mark.parametrize(
    ("more", "note"),
    [
        ({}, None),
        ({"extra": Y, "about": Y}, "unused arrays in the file: 'about', 'extra'"),
        ({"x_test": X}, "unused arrays in the file: 'x_test'"),
        ({"a\x1b]0;X\x07\u202e": Y}, r"unused arrays in the file: 'a\x1b]0;X\x07\u202e'"),
        (
            {f"a{index}": Y for index in range(10)},
            "unused arrays in the file: 'a0', 'a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7' and 2 more",
        ),
    ],
)
def test_unused_arrays_are_named(save: Save, more: dict[str, Any], note: str | None) -> None:
    spec = save(x=X, y=Y, **more)
    expected = () if note is None else (note,)
    for notes in (data.survey(data.find(spec), NONE).notes, data.load(spec, NONE).notes):
        assert tuple(each for each in notes if "unused" in each) == expected


def test_validation_data_of_its_own(save: Save) -> None:
    other = save("other.npz", x=X[:5], y=Y[:5])
    spec = save(x_train=X, y_train=Y, x_test=X[:6], y_test=Y[:6])
    options = DataOptions(validation_data=other)
    entry, dataset = data.survey(data.find(spec), options), data.load(spec, options)
    assert sizes(dataset) == [30, 5, 6]
    assert [entry.examples, entry.validation_examples, entry.test_examples] == [30, 5, 6]
    save("other.npz", x=X[:5, :4], y=Y[:5])
    for action in (lambda: data.survey(data.find(spec), options), lambda: data.load(spec, options)):
        with pytest.raises(DataError, match=r"examples are uint8 9x8 in x_train but uint8 4x8 in other.npz: x_train"):
            action()
    for wrong, words in (("gone.npz", "no such file"), ("other.csv", "must be an .npz or .npy file")):
        with pytest.raises(PlanError, match=words):
            data.survey(data.find(spec), DataOptions(validation_data=wrong))


def test_a_single_array(tmp_path: Path) -> None:
    np.save(tmp_path / "mine.npy", RNG.random((20, 6, 2)))
    entry = data.survey(data.find(str(tmp_path / "mine.npy")), NONE)
    dataset = data.load(str(tmp_path / "mine.npy"), NONE)
    assert entry.spec == dataset.spec == Batch(ArraySpec((6, 2), "float32"))
    assert sizes(dataset) == [18, 2, None]


def test_large_arrays_are_not_read_by_a_survey(save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = save(x=np.zeros((5000, 100)), y=np.zeros((5000, 20, 20)))
    monkeypatch.setattr(np.lib.format, "read_array", lambda *_, **__: pytest.fail("the array was read"))
    entry = data.survey(data.find(spec), NONE)
    assert (entry.examples, entry.task) == (4500, "regression")


@pytest.mark.parametrize("names", [[f"breed {row}" for row in range(47)], ["cat"] * 64 + ["dog"]])
@pytest.mark.parametrize("as_text", [True, False])
def test_the_first_of_many_labels_do_not_tell_all_classes(
    save: Save, monkeypatch: pytest.MonkeyPatch, names: list[str], as_text: bool
) -> None:
    monkeypatch.setattr(npz, "MAX_TARGET_BYTES", 100)
    labels = np.resize(np.array(names), 500)
    spec = save(x=np.zeros((500, 4)), y=labels if as_text else np.unique(labels, return_inverse=True)[1])
    options = DataOptions(task="classification", split="none")
    entry, dataset = data.survey(data.find(spec), options), data.load(spec, options)
    assert (entry.task, entry.classes, entry.class_names, entry.class_counts) == ("classification", None, (), ())
    assert entry.spec == dataset.spec
    assert dataset.classes == len(set(names))


@pytest.mark.parametrize(
    ("arrays", "options", "words"),
    [
        ({}, {}, "the file has no arrays; expected x and y, "),
        ({"y": Y}, {}, "no inputs are left: the data has y"),
        ({"x": X, "y": Y[:4]}, {}, "x has 30 rows but y has 4"),
        ({"x": X, "y": Y - 1}, {"task": "classification"}, r"y\[0\] is -1"),
        ({"x": X, "y": np.array([object()] * 30)}, {}, "Python objects, which are not loaded as they could run code"),
        ({"x": X, "y": Y}, {"target": ("z",)}, "target = 'z': the data has no array 'z'; "),
        ({"x": X, "why": Y}, {"target": ("wy",)}, "did you mean why"),
        ({"x": X, "y": Y}, {"features": ("x", "y"), "target": ("y",)}, "features = 'y': is the target"),
        ({"x": X, "y": Y}, {"time": "date"}, "only for tables"),
        ({"x": X, "y": Y, "x_val": X[:, :3], "y_val": Y}, {}, "examples are uint8 9x8 in x but uint8 3x8 in x_val"),
        ({"x": X, "y": Y, "class_names": np.array(["a"])}, {}, "y has 3 classes, but there are 1 class names"),
    ],
)
def test_bad_arrays_are_explained_before_they_are_read(
    save: Save, arrays: dict[str, Any], options: dict[str, Any], words: str
) -> None:
    spec = save(**arrays)
    plan = DataOptions(**options)
    for action in (lambda: data.load(spec, plan), lambda: data.survey(data.find(spec), plan)):
        with pytest.raises(AccelError, match=words) as caught:
            action()
        assert isinstance(caught.value, PlanError) or "mine.npz" in str(caught.value)


@pytest.mark.parametrize("keep", [0, 10, 2000, -300])
def test_a_broken_file_is_explained(save: Save, tmp_path: Path, keep: int) -> None:
    whole = Path(save(x=X, y=Y)).read_bytes()
    (tmp_path / "mine.npz").write_bytes(whole[:keep])
    for action in (lambda spec: data.load(spec, NONE), lambda spec: data.survey(data.find(spec), NONE)):
        with pytest.raises(DataError, match=r"mine.npz is damaged or not an .npz file: \S"):
            action(str(tmp_path / "mine.npz"))


@pytest.mark.parametrize("name", ["x.npy", "y.npy"])
def test_flipped_bits_are_noticed(save: Save, name: str) -> None:
    path = Path(save(x=X, y=Y))
    content = bytearray(path.read_bytes())
    content[content.index(name.encode()) + 300] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(DataError, match="is damaged"):
        data.load(str(path), NONE)


def test_plain_array_is_no_npz_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    with path.open("wb") as file:
        np.save(file, X)
    for action in (lambda: data.load(str(path), NONE), lambda: data.survey(data.find(str(path)), NONE)):
        with pytest.raises(DataError, match="is damaged or not an"):
            action()


def test_size_is_for_images_only(save: Save) -> None:
    with pytest.raises(PlanError, match="only for a folder of images; data is mine"):
        data.load(save(x=X, y=Y), DataOptions(image_size="8x8"))


def test_file_that_vanishes_is_explained(save: Save) -> None:
    entry = data.find(save(x=X, y=Y))
    assert entry.path is not None
    entry.path.unlink()
    with pytest.raises(DataError, match="No such file"):
        data.survey(entry, NONE)


def zipped(path: Path, **members: bytes) -> str:
    """Write members of an .npz file as they are, compressed."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return str(path)


def header(text: str, version: int = 1) -> bytes:
    """An array's file without its values, with a header of any text."""
    return b"\x93NUMPY" + struct.pack("<BBH" if version == 1 else "<BBI", version, 0, len(text)) + text.encode()


def of_shape(shape: object) -> bytes:
    return header(str({"descr": "<f8", "fortran_order": False, "shape": shape}))


def test_arrays_are_compared_with_the_memory_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each fits, both do not; those that are not used do not count."""
    x = of_shape((10**5, 2000))
    spec = zipped(tmp_path / "mine.npz", x=x, y=x, unused=of_shape((10**5, 9000)))
    monkeypatch.setattr(memory, "available_memory", lambda: 2 * 10**9)
    monkeypatch.setattr(array_file.ArrayFile, "_size", lambda *_: 10**10)  # as if the values were there
    for action in (lambda: data.load(spec, NONE), lambda: data.survey(data.find(spec), NONE)):
        with pytest.raises(DataError, match=r"mine.npz: reading 2 arrays takes 3.0 GiB of memory, and 1.9 GiB are"):
            action()


def test_a_small_file_that_holds_a_huge_array_is_refused_by_its_header(tmp_path: Path) -> None:
    spec = zipped(tmp_path / "mine.npz", x=of_shape((10**6, 10**9)) + bytes(1 << 20), y=of_shape((10**6,)))
    for action in (lambda: data.load(spec, NONE), lambda: data.survey(data.find(spec), NONE)):
        with pytest.raises(DataError, match=r"the array x has 1,048,[\d]+ of 8,000,000,000,000,[\d]+ bytes"):
            action()


def test_what_follows_an_array_is_not_inflated(tmp_path: Path) -> None:
    """The header says 8 bytes an example; 256 MB of zeros follow them."""
    spec = zipped(tmp_path / "mine.npz", x=of_shape((20, 1)) + bytes(1 << 28), y=of_shape((20,)) + bytes(160))
    tracemalloc.start()
    try:
        assert sizes(data.load(spec, NONE)) == [18, 2, None]
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "content",
    [
        header("{'descr': '<f8', 'shape': (3,"),
        header("{'descr': " + "[" * 3000 + "}"),
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9" * 5000 + ",)}"),
        header("{'descr': ',,', 'fortran_order': False, 'shape': (3,)}"),
        header("'''"),
        header("\x00"),
        of_shape((-1,)),
        of_shape((10**30,)),
        of_shape((0, 10**30)),
        of_shape((1,) * 99),
        header("x", version=2)[:8] + b"\xff\xff\xff\xff" + bytes(1 << 20),
        b"\x93NUMPY\x09\x00",
    ],
    ids=range(12),
)
def test_headers_that_cannot_be_parsed_are_explained(tmp_path: Path, content: bytes) -> None:
    spec = zipped(tmp_path / "mine.npz", x=content, y=of_shape((3,)) + bytes(24))
    for action in (lambda: data.load(spec, NONE), lambda: data.survey(data.find(spec), NONE)):
        with pytest.raises(DataError, match=r"mine.npz is damaged or not an .npz file: \S") as caught:
            action()
        assert len(str(caught.value)) < 1000


def test_a_file_of_countless_arrays_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_file, "MAX_ARRAYS", 2)
    spec = zipped(tmp_path / "mine.npz", x=of_shape((3,)), y=of_shape((3,)), z=of_shape((3,)))
    with pytest.raises(DataError, match=r"it has 3 arrays; at most 2 are read"):
        data.survey(data.find(spec), NONE)


@pytest.mark.parametrize("suffix", [".npz", ".npy"])
def test_an_array_with_fewer_bytes_than_its_header_says_is_damaged(tmp_path: Path, suffix: str) -> None:
    whole = BytesIO()
    np.save(whole, np.zeros((100, 8)))
    path = tmp_path / f"cut{suffix}"
    content = whole.getvalue()[:-800]
    if suffix == ".npy":
        path.write_bytes(content)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x.npy", content)
    words = r"is damaged or not an \.np. file: the array x has 5,728 of 6,528 bytes"
    with pytest.raises(DataError, match=words), array_file.opened(path):
        pass


def test_an_array_that_is_cut_within_its_header_is_told_in_words(tmp_path: Path) -> None:
    path = tmp_path / "cut.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00v\x00{")
    with pytest.raises(DataError, match=r"the header of x is cut short$"), array_file.opened(path):
        pass


POINTS = np.array([(1.5, 2, b"a"), (2.5, 3, b"b")] * 10, [("width", "<f8"), ("count", ">i4"), ("label", "S1")])
FLOATS = RNG.random((20, 3))
LABELS = np.arange(20) % 2
GREY = RNG.integers(0, 60_000, (20, 9, 8)).astype(">u2")

ODD: dict[str, tuple[dict[str, Any], Any]] = {
    "Fortran order": ({"x": np.asfortranarray(FLOATS), "y": LABELS}, FLOATS),
    "Fortran order, three axes": ({"x": np.asfortranarray(X[:20]), "y": LABELS}, X[:20, ..., np.newaxis]),
    "other byte order": ({"x": FLOATS.astype(">f8"), "y": LABELS.astype(">i8")}, FLOATS),
    "integers of the other byte order": ({"x": (FLOATS * 99).astype(">i2"), "y": LABELS}, (FLOATS * 99).astype("i2")),
    "16-bit images of the other byte order": ({"x": GREY, "y": LABELS}, GREY.astype("=u2")[..., np.newaxis]),
    "half precision": ({"x": FLOATS.astype(np.float16), "y": LABELS}, FLOATS.astype(np.float16)),
    "long double": ({"x": FLOATS.astype(np.longdouble), "y": LABELS}, FLOATS),
    "booleans": ({"x": FLOATS > 0.5, "y": LABELS}, FLOATS > 0.5),
    "bytes as labels": ({"x": FLOATS, "y": np.array([b"no", b"yes"] * 10)}, FLOATS),
    "single numbers beside": ({"x": FLOATS, "y": LABELS, "version": np.array(3)}, FLOATS),
    "empty beside": ({"x": FLOATS, "y": LABELS, "more": np.zeros((0, 4))}, FLOATS),
    "objects beside": ({"x": FLOATS, "y": LABELS, "about": np.array([{}])}, FLOATS),
    "records beside": ({"x": FLOATS, "y": LABELS, "points": POINTS}, FLOATS),
    "objects as labels": ({"x": FLOATS, "y": np.array(["a", "b"] * 10, object)}, "array y has Python objects.*astype"),
    "a pickled dictionary": ({"x": np.array({"a": FLOATS})}, "array x has Python objects.*astype"),
    "complex numbers": ({"x": FLOATS.astype(complex), "y": LABELS}, "x holds complex numbers; examples must be"),
    "dates": ({"x": np.array(["2026-01-02"] * 20, "M8[D]"), "y": LABELS}, "x holds dates; examples must be numbers"),
    "a single number": ({"x": np.array(3.0), "y": LABELS}, "x is a single value, not an array of examples"),
    "a single label": ({"x": FLOATS, "y": np.array(1)}, "y is a single value, not an array of examples"),
    "no examples": ({"x": np.zeros((0, 3)), "y": np.zeros(0, int)}, "x has no examples"),
    "empty examples": ({"x": np.zeros((20, 0)), "y": LABELS}, r"x has the shape \(20, 0\): its examples are empty"),
    "a sparse matrix": (
        {"format": np.array(b"csr"), "shape": np.array([20, 3]), "data": np.ones(4), "indices": np.arange(4)},
        "it is a sparse matrix of SciPy: save it as an array",
    ),
    "missing numbers": (
        {"x": np.where(FLOATS > 0.9, np.nan, FLOATS), "y": LABELS},
        r"x\[\d+\] has values that are NaN",
    ),
}


@pytest.mark.parametrize("form", ODD)
def test_odd_arrays_are_read_right_or_refused(save: Save, form: str) -> None:
    arrays, expected = ODD[form]
    spec = save(**arrays)
    if isinstance(expected, str):
        with pytest.raises(DataError, match=f"mine.npz: .*{expected}"):
            data.load(spec, NONE)
        if "NaN" not in expected:  # only reading finds them
            with pytest.raises(DataError, match=expected):
                data.survey(data.find(spec), NONE)
        return
    dataset, entry = data.load(spec, DataOptions(split="none")), data.survey(data.find(spec), DataOptions(split="none"))
    inputs = train(dataset).inputs
    assert inputs.dtype.isnative
    np.testing.assert_array_equal(inputs, expected if expected.dtype.kind != "f" else expected.astype(np.float32))
    assert train(dataset).targets.tolist() == LABELS.tolist()
    assert (entry.spec, entry.value_range, entry.examples) == (dataset.spec, dataset.value_range, 20)


def test_fields_of_records_are_arrays(tmp_path: Path, save: Save) -> None:
    np.save(tmp_path / "points.npy", POINTS)
    for spec, names in (
        (str(tmp_path / "points.npy"), ("width", "count", "label")),
        (save(points=POINTS), ("points.width", "points.count", "points.label")),
    ):
        options = DataOptions(target=names[2:], split="none")
        dataset, entry = data.load(spec, options), data.survey(data.find(spec), options)
        assert sorted(train(dataset).inputs) == sorted(names[:2])
        assert train(dataset).inputs[names[0]].tolist() == [1.5, 2.5] * 10
        assert train(dataset).inputs[names[1]].tolist() == [2, 3] * 10
        assert (dataset.class_names, train(dataset).targets.tolist()) == (("a", "b"), [0, 1] * 10)
        assert (entry.spec, entry.class_names) == (dataset.spec, dataset.class_names)


def test_what_is_not_an_array_in_an_archive_is_named(save: Save) -> None:
    spec = save(x=X, y=Y, class_names=np.array(["a", "b", "c"], object))
    with zipfile.ZipFile(spec, "a") as archive:
        archive.writestr("readme.txt", "about them")
    for notes in (data.survey(data.find(spec), NONE).notes, data.load(spec, NONE).notes):
        assert "files in it that are not arrays: 'readme.txt'" in notes
        assert "unused arrays in the file: 'class_names'" in notes
