"""What a script logs, held as it is at that moment."""

from typing import Any

import numpy as np
import pytest

from accel_engine.errors import DataError
from accel_engine.recording.value_snapshots import snapshot_array, snapshot_value
from accel_engine.run.store.series_names import MAX_ELEMENTS


class Tensor:
    """A stand-in for PyTorch's, which may have a type that NumPy lacks and may not count its changes."""

    def __init__(self, value: Any, *, half: bool = False, counts: bool = True) -> None:
        self.value, self.half, self.clones = np.asarray(value), half, 0
        self.requires_grad, self.is_leaf = False, True
        if counts:
            self._version = 0

    def detach(self) -> "Tensor":
        return self

    def clone(self) -> "Tensor":
        copy = Tensor(self.value.copy(), counts=hasattr(self, "_version"))
        copy.clones = self.clones + 1
        return copy

    def cpu(self) -> "Tensor":
        return self

    def float(self) -> "Tensor":
        return Tensor(self.value)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        if self.half:
            raise TypeError("no such type")
        return self.value


def is_copied(tensor: Tensor, **options: bool) -> bool:
    return snapshot_value(tensor, **options).tensor is not tensor


@pytest.mark.parametrize("plain", [True, 3, 0.5, np.float32(0.5), np.int8(3), np.True_])
def test_a_number_is_held_as_it_is(plain: Any) -> None:
    assert snapshot_value(plain) is plain
    assert snapshot_array(snapshot_value(plain)).item() == plain


def test_tensors_are_copied_only_where_they_must_be() -> None:
    loss, parameter, computed = Tensor(1.0), Tensor(1.0), Tensor(1.0)
    parameter.requires_grad = True
    computed.requires_grad, computed.is_leaf = True, False

    assert not is_copied(loss)
    assert not is_copied(computed)
    assert is_copied(loss, copies=True)
    assert is_copied(parameter)
    assert is_copied(Tensor(1.0, counts=False))


def test_a_tensor_of_a_type_that_numpy_lacks_is_converted() -> None:
    assert snapshot_array(snapshot_value(Tensor([0.5, 1.5], half=True))).tolist() == [0.5, 1.5]


@pytest.mark.parametrize(("value", "advice"), [(1.0, " or loss.item()"), ([1.0, 2.0], "")])
def test_a_tensor_that_has_changed_has_no_value(value: Any, advice: str) -> None:
    tensor = Tensor(value)
    kept = snapshot_value(tensor)
    tensor._version = 1

    with pytest.raises(DataError, match="changed in place") as caught:
        snapshot_array(kept, "loss")
    assert str(caught.value).endswith(f": log loss.detach().clone(){advice} instead")


def test_what_may_change_is_copied_and_nested_values_are_held_each() -> None:
    array, inner = np.zeros(2), [1.0, 2.0]
    kept = snapshot_value({"a": array, "b": inner, "c": (1, Tensor(3.0))}, copies=True)
    array[:] = inner[0] = 9.0

    assert snapshot_array(kept["a"]).tolist() == [0.0, 0.0]
    assert snapshot_array(kept["b"]).tolist() == [1.0, 2.0]
    assert snapshot_array(kept["c"]).tolist() == [1.0, 3.0]
    assert kept["c"][1].tensor.clones == 1


def test_a_long_list_is_one_array() -> None:
    assert isinstance(snapshot_value([1.0] * MAX_ELEMENTS), list)
    assert isinstance(snapshot_value([1.0] * (MAX_ELEMENTS + 1)), np.ndarray)


def test_what_is_nothing_of_these_is_converted_at_once() -> None:
    class Figure:
        pass

    class Array:
        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            return np.zeros(2)

        def __float__(self) -> float:
            raise AssertionError

    class Meter:
        def __float__(self) -> float:
            return 0.5

    assert snapshot_value(Figure(), lambda _: "converted") == "converted"
    assert snapshot_value(Array()).tolist() == [0.0, 0.0]
    assert snapshot_value(Meter()) == 0.5


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "NoneType is not a number"),
        ("1", "str is not a number"),
        (b"1", "bytes is not a number"),
        (np.array(["1"]), "<U1 is not a type of numbers"),
        (1j, "complex128 is not a type of numbers"),
    ],
)
def test_what_is_no_number_says_why(value: Any, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        snapshot_array(snapshot_value(value))


@pytest.mark.parametrize("value", [True, 3, 0.5, np.uint8(7)])
def test_each_kind_of_number_is_one(value: Any) -> None:
    assert snapshot_array(np.asarray(value)).item() == value


@pytest.mark.parametrize(("module", "is_kept"), [("jaxlib._jax", True), ("jax", True), ("mine.jax", False)])
def test_a_tensor_that_cannot_change_is_held_as_it_is(module: str, is_kept: bool) -> None:
    class Array:
        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            return np.zeros(2)

    Array.__module__ = module
    array = Array()

    assert (snapshot_value(array) is array) == is_kept
