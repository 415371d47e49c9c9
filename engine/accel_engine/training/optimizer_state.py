"""Keeps the state of an optimizer in host memory, or divides it over the replicas of a model (ZeRO 1).

Each weight is updated once, by Keras' own code, on its device; with several replicas by one owner, which sends the new
value to the others. So losses stay the same, and the state of a weight is whole, as checkpoints have it. State in host
memory moves to the device of the weight and back, one weight after the other: the transfer overlaps with the updates of
other weights, and the host's processors would take longer for the arithmetic.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

import keras
import tensorflow as tf

from accel_engine.errors import FieldValue, PlanError
from accel_engine.keras_support.model_structure import override_calls, parameter_count
from accel_engine.keras_support.optimizers import inner_optimizer, optimizer_name
from accel_engine.plan import Plan
from accel_engine.plan.array_bytes import FLOAT32_BYTES, MOVED_AT_A_TIME
from accel_engine.private_names.keras_graph_names import move_variable
from accel_engine.private_names.keras_names import SUM_OF_GRADIENTS, UPDATE_OF_AVERAGES, slots_by_weight
from accel_engine.words import numbers

HOST = "/CPU:0"

LEAST_VALUES = 1 << 12
"""The fewest values of a variable that is in host memory: moving a smaller one takes more time than its memory is
worth."""


def has_state(optimizer: keras.Optimizer) -> bool:
    """Whether an optimizer has state that would be worth moving."""
    return any(_is_large(each) for each in inner_optimizer(optimizer).variables)


def _is_large(variable: keras.Variable) -> bool:
    return bool(variable.shape.num_elements() >= LEAST_VALUES)


def weight_owners(sizes: Sequence[int], replicas: int) -> list[int]:
    """The replica that has the state of each weight, so that all have about as much: the largest weights come first."""
    found, sums = [0] * len(sizes), [0] * replicas
    for index in sorted(range(len(sizes)), key=lambda each: -sizes[each]):
        found[index] = sums.index(min(sums))
        sums[found[index]] += sizes[index]
    return found


class OptimizerState:
    """Where the state of an optimizer is, if not beside its weights on every replica.

    Builds the optimizer, unless it is built, with its state in its place: no device has all of it meanwhile. Made in
    the scope of the strategy.

    Args:
        plan: The plan, which says where the state is.
        optimizer: The optimizer.
        weights: All weights that it updates, now or after a later epoch.

    Raises:
        PlanError: Each replica would accumulate its own gradients.
    """

    def __init__(self, plan: Plan, optimizer: keras.Optimizer, weights: Sequence[keras.Variable]) -> None:
        self._inner: Any = inner_optimizer(optimizer)
        self._on_host = plan.optimizer_state == "host"
        copies = [_copies(each) for each in weights]
        self._replicas = len(copies[0])
        if self._replicas > 1 and self._inner.gradient_accumulation_steps:
            reason = f"{optimizer_name(optimizer)} has gradient_accumulation_steps: use "
            raise PlanError("optimizer_state", plan.optimizer_state, reason, FieldValue("micro_batches"), " instead")
        self._owners = weight_owners([each.shape.num_elements() for each in weights], self._replicas)
        self._devices = [every[owner].device for every, owner in zip(copies, self._owners, strict=True)]
        self._device_of = {id(each.value): device for each, device in zip(weights, self._devices, strict=True)}
        self._others: dict[int, list[tf.Variable] | None] = {}  # by the id of a copy; None for what no owner has
        for every, owner in zip(copies, self._owners, strict=True):
            self._others |= dict.fromkeys(map(id, every))
            self._others[id(every[owner])] = [*every[:owner], *every[owner + 1 :]]
        self._weights: dict[int, int] = {}  # the weight's index of each variable in its place, by the variable's id
        self._build(optimizer, weights)
        self._copies = {id(each): _copies(each) for each in self._inner.variables}
        self._moved = {id(each): each.value for each in self._inner.variables if self._is_moved(each)}

    def _build(self, optimizer: keras.Optimizer, weights: Sequence[keras.Variable]) -> None:
        keras_add, indices = self._inner.add_variable_from_reference, {id(each): n for n, each in enumerate(weights)}

        def add(reference_variable: Any, *arguments: Any, **options: Any) -> keras.Variable:
            variable: keras.Variable = keras_add(reference_variable, *arguments, **options)
            self._place(variable, indices[id(reference_variable)])
            return variable

        with override_calls({self._inner: add}, "add_variable_from_reference"):
            optimizer.build(list(weights))
        # of a compiled model, whose optimizer was built before, and what is smaller than its weight
        for index, variable in slots_by_weight(self._inner):
            self._place(variable, index)

    def _place(self, variable: keras.Variable, index: int) -> None:
        if id(variable) not in self._weights:
            self._weights[id(variable)] = index
            move_variable(variable, HOST if self._is_moved(variable) else self._devices[index])

    def _is_moved(self, variable: keras.Variable) -> bool:
        return self._on_host and id(variable) in self._weights and _is_large(variable)

    @property
    def placed(self) -> list[keras.Variable]:
        """The variables that are in host memory, or that only one replica has."""
        chosen = self._moved if self._on_host else self._weights
        return [each for each in self._inner.variables if id(each) in chosen]

    @property
    def note(self) -> str:
        """The note for the user: how much state is moved or divided."""
        name, placed = optimizer_name(self._inner), self.placed
        if not placed:
            return f"optimizer_state has no effect: {name} has no large state for the model's weights"
        if self._on_host:
            return f"{_size(placed)} of the state of {name} are in host memory"
        shares = [
            _size([each for each in placed if self._owners[self._weights[id(each)]] == replica])
            for replica in range(self._replicas)
        ]
        return f"the state of {name}, {_size(placed)}, is divided over {self._replicas} replicas: {', '.join(shares)}"

    @contextmanager
    def use(self) -> Iterator[None]:
        """Update with the state in its place, in steps that are traced inside the ``with`` block."""
        inner, moved = self._inner, defaultdict[Any, list[list[tf.Operation]]](list)
        keras_update: Any = inner.update_step
        keras_averages: Any = getattr(inner, UPDATE_OF_AVERAGES, None)

        def update_step(gradient: Any, weight: Any, learning_rate: Any) -> None:
            others = self._others.get(id(weight), [])
            if others is None:
                return  # the owner sends it
            before = moved[tf.compat.v1.get_default_graph(), weight.device]
            ended = before[-MOVED_AT_A_TIME] if len(before) >= MOVED_AT_A_TIME else ()
            scope = _StateOfUpdate(self._copies, self._moved, ended)
            with ExitStack() as stack:
                for name in _ASSIGNMENTS:
                    stack.enter_context(override_calls({inner: scope.assignment(name, getattr(inner, name))}, name))
                stack.enter_context(scope)
                keras_update(gradient, weight, learning_rate)
            if done := scope.assign_all():
                before.append(done)
            _assign(others, weight)

        def averages(weights: Any) -> None:
            replica = tf.get_static_value(tf.distribute.get_replica_context().replica_id_in_sync_group)
            scope = _StateOfUpdate(self._copies, self._moved)
            with tf.device(HOST) if self._on_host else nullcontext(), scope:  # only the weights are moved
                keras_averages(weights)
            scope.assign_all(lambda each: self._owners[self._weights[id(each)]] == replica)

        def sum_of_gradients(pairs: Any) -> list[tuple[Any, Any]]:
            devices = [self._device_of[id(weight)] for _, weight in pairs]

            def to_owners(strategy: Any, gradients: Any) -> Any:
                return strategy.extended.batch_reduce_to("SUM", list(zip(gradients, devices, strict=True)))

            context, gradients = tf.distribute.get_replica_context(), [gradient for gradient, _ in pairs]
            found = context.merge_call(to_owners, args=(gradients,))
            return [(each, weight) for each, (_, weight) in zip(found, pairs, strict=True)]

        with ExitStack() as stack:
            stack.enter_context(override_calls({inner: update_step}, "update_step"))
            if keras_averages is not None:
                stack.enter_context(override_calls({inner: averages}, UPDATE_OF_AVERAGES))
            if self._replicas > 1 and hasattr(inner, SUM_OF_GRADIENTS):
                stack.enter_context(override_calls({inner: sum_of_gradients}, SUM_OF_GRADIENTS))
            yield


def _size(variables: Sequence[keras.Variable]) -> str:
    return numbers.size(FLOAT32_BYTES * parameter_count(variables))


def _copies(variable: keras.Variable) -> Sequence[tf.Variable]:
    """A variable on each replica, or the only one, in the scope of a strategy."""
    return tf.distribute.get_strategy().experimental_local_results(variable.value)


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


def _assign(variables: Sequence[tf.Variable], value: Any) -> list[tf.Operation]:
    """Assign a value to variables, each on its device."""
    assigned = []
    for each in variables:
        with tf.device(each.device):
            assigned.append(each.assign(value, read_value=False))
    return assigned


class _StateOfUpdate(keras.StatelessScope):  # type: ignore[misc]
    """The state of a weight while it is updated: what is assigned is kept, and what is on the host is moved once.

    Args:
        copies: The copies of each variable of the optimizer, by its id.
        moved: The variables on the host, by their id.
        before: What must have ended before they are moved.
    """

    def __init__(
        self,
        copies: Mapping[int, Sequence[tf.Variable]],
        moved: Mapping[int, tf.Variable],
        before: Sequence[tf.Operation] = (),
    ) -> None:
        super().__init__(initialize_variables=False)
        self._copies, self._moved, self._before = copies, moved, before
        self._assigned: dict[int, keras.Variable] = {}

    def add_update(self, update: tuple[keras.Variable, Any]) -> None:
        self._assigned[id(update[0])] = update[0]
        super().add_update(update)

    def get_current_value(self, variable: keras.Variable) -> Any:
        if id(variable) in self._moved and id(variable) not in self.state_mapping:
            with tf.device(HOST), tf.control_dependencies(self._before):
                self.state_mapping[id(variable)] = self._moved[id(variable)].read_value()
        return super().get_current_value(variable)

    def assignment(self, name: str, keras_assign: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
        """The method of an optimizer that assigns to state that is elsewhere too, and to the rest as Keras does."""

        def assign(variable: Any, value: Any) -> None:
            if id(variable) not in self._moved and len(self._copies.get(id(variable), ())) < 2:
                keras_assign(variable, value)
            else:
                self.add_update((variable, _changed(name, tf.convert_to_tensor(variable), value)))

        return assign

    def assign_all(self, is_chosen: Callable[[keras.Variable], bool] = lambda _: True) -> list[tf.Operation]:
        """Assign what was assigned in the scope to all copies of variables; outside of it."""
        chosen = [each for each in self._assigned.values() if is_chosen(each)]
        found = [_assign(self._copies[id(each)], self.state_mapping[id(each)]) for each in chosen]
        return [operation for each in found for operation in each]
