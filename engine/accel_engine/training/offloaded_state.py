"""Keeps the state of an optimizer in host memory, and moves the state of one weight after the other to its device.

The update is computed where the weight is, by Keras' own code: the state's way there and back overlaps with the updates
of other weights, the processors of the host would take longer for the arithmetic, and losses stay the same.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import keras
import tensorflow as tf

from accel_engine.keras_support.model_structure import override_calls
from accel_engine.keras_support.optimizers import inner_optimizer
from accel_engine.plan.array_bytes import MOVED_AT_A_TIME
from accel_engine.private_names.keras_graph_names import move_variable
from accel_engine.private_names.keras_names import UPDATE_OF_AVERAGES

HOST = "/CPU:0"

LEAST_VALUES = 1 << 12
"""The fewest values of a variable that is moved: smaller ones take longer on their way than their memory is worth."""


def build_on_host(optimizer: keras.Optimizer, variables: Sequence[keras.Variable]) -> None:
    """Build an optimizer, unless it is built, with its state in host memory; no device holds all of it meanwhile."""
    inner = inner_optimizer(optimizer)
    keras_add = inner.add_variable_from_reference

    def add(*arguments: Any, **options: Any) -> keras.Variable:
        variable = keras_add(*arguments, **options)
        _offload(variable)
        return variable

    with override_calls({inner: add}, "add_variable_from_reference"):
        optimizer.build(list(variables))
    for variable in inner.variables:  # of a compiled model, whose optimizer was built before
        _offload(variable)


def _offload(variable: keras.Variable) -> None:
    if _is_moved(variable):
        move_variable(variable, HOST)


def has_state(optimizer: keras.Optimizer) -> bool:
    """Whether an optimizer has state that would be worth moving."""
    return any(_is_moved(each) for each in inner_optimizer(optimizer).variables)


def _is_moved(variable: keras.Variable) -> bool:
    return bool(variable.shape.num_elements() >= LEAST_VALUES)


def offloaded(optimizer: keras.Optimizer) -> list[keras.Variable]:
    """The variables of an optimizer that was built on the host which are moved."""
    on_host = (each for each in inner_optimizer(optimizer).variables if each.value.device.endswith(HOST.lstrip("/")))
    return [each for each in on_host if _is_moved(each)]


@contextmanager
def use_offloaded_updates(optimizer: keras.Optimizer) -> Iterator[None]:
    """Move the state of an optimizer that was built on the host, in steps that are traced inside the ``with`` block."""
    inner, state = inner_optimizer(optimizer), {id(each): each.value for each in offloaded(optimizer)}
    keras_update: Any = inner.update_step
    keras_averages: Any = getattr(inner, UPDATE_OF_AVERAGES, None)
    moved: list[list[tf.Operation]] = []

    def update_step(gradient: Any, variable: Any, learning_rate: Any) -> None:
        graph = tf.compat.v1.get_default_graph()
        before = [each for each in moved if each[0].graph is graph]
        scope = _StateOnDevice(state, before[-MOVED_AT_A_TIME] if len(before) >= MOVED_AT_A_TIME else [])
        with ExitStack() as stack:
            for name in _ASSIGNMENTS:
                stack.enter_context(override_calls({inner: scope.assignment(name, getattr(inner, name))}, name))
            stack.enter_context(scope)
            keras_update(gradient, variable, learning_rate)
        if done := scope.move_back():
            moved.append(done)

    def averages(variables: Any) -> None:
        with tf.device(HOST):  # only the weights are moved
            keras_averages(variables)

    calls: dict[Any, Callable[..., None]] = {inner: averages} if keras_averages is not None else {}
    with override_calls({inner: update_step}, "update_step"), override_calls(calls, UPDATE_OF_AVERAGES):
        yield


_ASSIGNMENTS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "assign": (lambda _, value: value, tf.tensor_scatter_nd_update),
    "assign_add": (tf.add, tf.tensor_scatter_nd_add),
    "assign_sub": (tf.subtract, tf.tensor_scatter_nd_sub),
}
"""The methods with which optimizers change variables, as functions of the old value; of all rows, and of some."""


def _changed(name: str, before: Any, value: Any) -> Any:
    """The new value of a variable to which an optimizer assigns; an embedding may have gradients of some rows."""
    of_all, of_rows = _ASSIGNMENTS[name]
    value = tf.cast(value, before.dtype)
    is_sparse = isinstance(value, tf.IndexedSlices)
    return of_rows(before, value.indices[:, tf.newaxis], value.values) if is_sparse else of_all(before, value)


class _StateOnDevice(keras.StatelessScope):  # type: ignore[misc]
    """The state of a weight while it is updated: what is read is moved to the device, what is assigned is kept there.

    Args:
        state: The variables on the host, by the id of Keras' variable.
        before: What must have ended before the state is moved.
    """

    def __init__(self, state: Mapping[int, tf.Variable], before: Sequence[tf.Operation]) -> None:
        super().__init__(initialize_variables=False)
        self._state, self._before = state, before
        self._assigned: dict[int, keras.Variable] = {}

    def add_update(self, update: tuple[keras.Variable, Any]) -> None:
        self._assigned[id(update[0])] = update[0]
        super().add_update(update)

    def get_current_value(self, variable: keras.Variable) -> Any:
        if id(variable) in self._state and id(variable) not in self.state_mapping:
            with tf.device(HOST), tf.control_dependencies(self._before):
                self.state_mapping[id(variable)] = self._state[id(variable)].read_value()
        return super().get_current_value(variable)

    def assignment(self, name: str, keras_assign: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
        """The method of an optimizer that assigns to the state on the device, and to other variables as Keras does."""

        def assign(variable: Any, value: Any) -> None:
            if id(variable) not in self._state:
                keras_assign(variable, value)
                return
            self.add_update((variable, _changed(name, self.get_current_value(variable), value)))

        return assign

    def move_back(self) -> list[tf.Operation]:
        """Assign what was assigned on the device to the variables on the host; outside of the scope."""
        with tf.device(HOST):
            return [
                variable.value.assign(self.state_mapping[key], read_value=False)
                for key, variable in self._assigned.items()
            ]
