"""Runs a part of a model without saving its activations: its gradient computes them again.

``keras.RematScope`` does not work inside ``tf.function``, and ``tf.recompute_grad`` draws other dropout masks and
updates moving averages twice. Here the part is a pure function. Its variables are inputs, random states included, so
that the recomputation draws the same numbers; what the first computation assigns is assigned once, after it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

import keras
import tensorflow as tf

from accel_engine.errors import ModelError
from accel_engine.private_names import keras_names
from accel_engine.private_names.tensorflow_names import function_graph
from accel_engine.training.model_analysis.flops import RECOMPUTED

PartFunction = Callable[[list[tf.Tensor]], list[tf.Tensor]]
"""Computes a part: from its input tensors, with their masks, to its output tensors."""


class NumberedDraws(Protocol):
    """Random numbers that are drawn ahead, outside of the step, in the order in which Python traces their uses."""

    next_number: int
    """The number of the next draw."""


_DRAWS: ContextVar[NumberedDraws | None] = ContextVar("draws", default=None)


@contextmanager
def numbering_draws(draws: NumberedDraws) -> Iterator[None]:
    """Let the parts that are traced inside the ``with`` block take the same numbered draws when they recompute."""
    token = _DRAWS.set(draws)
    try:
        yield
    finally:
        _DRAWS.reset(token)


@contextmanager
def _with_same_draws(draws: NumberedDraws | None, first: int) -> Iterator[None]:
    """Surrounds every recomputation while it is traced: it takes the draws of its first computation again.

    Args:
        draws: What :func:`numbering_draws` gave in the first computation; ``None`` without it.
        first: The number of the first draw of the first computation.
    """
    if draws is None:
        yield
        return
    after, draws.next_number = draws.next_number, first
    try:
        yield
    finally:
        draws.next_number = after


@dataclass(frozen=True, slots=True)
class RecomputedPart:
    """A part of a model."""

    compute: PartFunction
    """Computes it."""
    layers: tuple[keras.Layer, ...]
    """Its layers, whose variables it uses."""
    caller: keras.Layer | None = None
    """The layer whose ``call`` is the part, for Keras' automatic casts; ``None`` for a sequence of layers."""

    @property
    def name(self) -> str:
        """Names the part in messages."""
        return f"the part with layer {self.layers[0].name}" if self.layers else "a part without layers"


@dataclass(frozen=True, slots=True)
class Tracing:
    """How steps are traced."""

    in_xla: bool = False
    """Whether XLA compiles them."""
    unseeded: tuple[keras.Variable, ...] = ()
    """The state of Keras' global random generator, for layers without a seed. Keras has one for each thread, so
    that this is not looked up where a replica is traced."""


def run_part(part: RecomputedPart, tensors: Sequence[tf.Tensor], tracing: Tracing) -> list[tf.Tensor]:
    """Run a part whose gradient will compute it again; inside the ``call`` of a Keras model, in a graph.

    Args:
        part: The part.
        tensors: Its inputs, with their masks.
        tracing: How the step is traced.

    Raises:
        ModelError: The part changes a variable that none of its layers has.
    """
    draws = _DRAWS.get()
    run = _Run(part, tensors, keras_names.call_context_training(part.layers[0]) if part.layers else None, tracing)
    first = draws.next_number if draws else 0

    def computed(*values: tf.Tensor) -> Any:
        def gradient(*upstream: tf.Tensor, variables: Sequence[tf.Variable] = ()) -> Any:
            with _with_same_draws(draws, first):
                return run.gradients(values, upstream, variables)

        return run.compute(values), gradient

    return run.finish(tf.custom_gradient(computed)(*run.values))


class _Scope(keras.StatelessScope):  # type: ignore[misc]
    """Holds assigned values and added losses.

    Attributes:
        assigned: The variables that were assigned to, by id.
    """

    def __init__(self, mapping: Iterator[tuple[keras.Variable, tf.Tensor]]) -> None:
        super().__init__(collect_losses=True, initialize_variables=False)
        self.assigned: dict[int, keras.Variable] = {}
        for pair in mapping:
            super().add_update(pair)  # the mapping of the constructor would be cast to the dtype of an autocast

    def add_update(self, update: tuple[keras.Variable, tf.Tensor]) -> None:
        self.assigned[id(update[0])] = update[0]
        super().add_update(update)


class _Run:
    """One use of a part: its first computation, and the one for the gradient.

    Attributes:
        values: All that it depends on: inputs, their masks, and its layers' variables.
    """

    def __init__(self, part: RecomputedPart, tensors: Sequence[tf.Tensor], training: Any, tracing: Tracing) -> None:
        self._part = part
        self._training = training
        self._in_xla = tracing.in_xla
        masks = [keras_names.mask_of(tensor) for tensor in tensors]
        self._masked = [index for index, mask in enumerate(masks) if mask is not None]
        self._count = len(tensors)
        every = [*(variable for layer in part.layers for variable in layer.variables), *tracing.unseeded]
        self._variables = list({id(variable): variable for variable in every}.values())
        self.values = [*tensors, *(masks[index] for index in self._masked)]
        self.values += [keras_names.unautocast_value(variable) for variable in self._variables]
        self._output_masks: list[Any] = []
        self._scope: _Scope | None = None

    def compute(self, values: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The first computation: the outputs, then the losses that layers added."""
        graph = tf.compat.v1.get_default_graph()
        before = len(graph.get_operations())
        outputs, scope = self._call(values)
        if kind := next(unrepeatable(graph.get_operations()[before:]), None):
            raise ModelError(
                f"rematerialization: {self._part.name} computes {kind}, which cannot be repeated: use keras.random and "
                "keras.Variable, --remat off, or --remat-layers with other layers"
            )
        self._output_masks = [keras_names.mask_of(output) for output in outputs]
        self._scope = scope
        return [*outputs, *scope.losses]

    def finish(self, computed: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Assign and add what the first computation did, once, and return the outputs with their masks."""
        assert self._scope is not None  # noqa: S101 (it was computed)
        known = {id(variable) for variable in self._variables}
        for key, variable in self._scope.assigned.items():
            if key not in known:
                raise ModelError(
                    f"rematerialization: {self._part.name} changes the variable {variable.path}, which does not "
                    "belong to its layers: use --remat off, or --remat-layers with other layers"
                )
            variable.assign(self._scope.get_current_value(variable))
        outputs = list(computed[: len(self._output_masks)])
        for output, mask in zip(outputs, self._output_masks, strict=True):
            if mask is not None:
                keras_names.set_mask(output, mask)
        for loss, own in zip(computed[len(outputs) :], self._scope.losses, strict=True):
            keras_names.layer_of_loss(self._part.layers, own).add_loss(loss)
        return outputs

    def gradients(
        self, values: Sequence[tf.Tensor], upstream: Sequence[tf.Tensor], variables: Sequence[tf.Variable]
    ) -> Any:
        """Compute the part again, and return the gradients of its values, and of variables that it reads otherwise."""
        gated = self._gate(values, upstream)
        sources = [index for index in range(len(values)) if self._has_gradient(index, values[index])]
        with tf.GradientTape() as tape:
            tape.watch([gated[index] for index in sources])
            # An absolute name scope, so that the operations of the gradient are in another.
            with tf.name_scope(f"{RECOMPUTED}/"), tf.control_dependencies([] if self._in_xla else list(upstream)):
                results = self._replay(gated)
        pairs = [(result, given) for result, given in zip(results, upstream, strict=True) if result.dtype.is_floating]
        found = tape.gradient(
            [result for result, _ in pairs],
            [*(gated[index] for index in sources), *variables],
            output_gradients=[given for _, given in pairs],
        )
        found = [tf.convert_to_tensor(each) if isinstance(each, tf.IndexedSlices) else each for each in found]
        inputs: list[Any] = [None] * len(values)
        for index, each in zip(sources, found, strict=False):
            inputs[index] = each
        return (inputs, found[len(sources) :]) if variables else inputs

    def _has_gradient(self, index: int, value: tf.Tensor) -> bool:
        variable = self._variable(index)
        return value.dtype.is_floating and (variable is None or bool(variable.trainable))

    def _variable(self, index: int) -> keras.Variable | None:
        """The variable of a value; ``None`` for inputs and masks."""
        first = self._count + len(self._masked)
        return self._variables[index - first] if index >= first else None

    def _gate(self, values: Sequence[tf.Tensor], upstream: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The same values, but not before the gradients of the outputs are known.

        Otherwise TensorFlow or XLA would merge the recomputation with the first computation, as both are the same.
        """
        if not self._in_xla:
            with tf.control_dependencies(list(upstream)):
                return [tf.identity(value) for value in values]
        known = _unfoldable_truth(upstream)
        frozen = [(variable := self._variable(index)) is None or not variable.trainable for index in range(len(values))]
        return [
            tf.where(known, value, tf.zeros_like(value)) if gates else value
            for value, gates in zip(values, frozen, strict=True)
        ]

    def _replay(self, values: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The outputs and losses of the recomputation, called by Keras as the first computation was."""
        results: list[tf.Tensor] = []

        def compute() -> None:
            outputs, scope = self._call(values)
            results.extend([*outputs, *scope.losses])

        FunctionLayer(compute, self._part.caller)(tf.constant(0), training=self._training)
        return results

    def _call(self, values: Sequence[tf.Tensor]) -> tuple[list[tf.Tensor], _Scope]:
        """Compute the part from all its values, changing nothing outside of the scope."""
        tensors = list(values[: self._count])
        for index, mask in zip(self._masked, values[self._count :], strict=False):
            keras_names.set_mask(tensors[index], mask)
        scope = _Scope(zip(self._variables, values[self._count + len(self._masked) :], strict=True))
        with scope:
            return self._part.compute(tensors), scope


def _unfoldable_truth(tensors: Sequence[tf.Tensor]) -> tf.Tensor:
    """``True``, computed from some tensors in a way that XLA does not fold, as ``tf.recompute_grad`` does it.

    XLA ignores control dependencies, and on CPUs removes its ``OptimizationBarrier`` before it merges equal operations.
    """
    firsts = [tf.reshape(each, [-1])[:1] for each in tensors if each.dtype.is_floating]
    truth = tf.cast(tf.reduce_max(tf.concat([tf.cast(each, tf.float32) for each in firsts], 0)), tf.bool)
    return truth == truth


class FunctionLayer(keras.Layer):  # type: ignore[misc]
    """Calls a function within the call of a layer: with its ``training`` for inner layers, and its casts of weights."""

    def __init__(self, function: Callable[[], None], caller: keras.Layer | None) -> None:
        casts = caller is not None and caller.autocast
        super().__init__(dtype=caller.dtype_policy if caller is not None and casts else "float32", autocast=casts)
        self._function = function
        self.built = True

    def call(self, placeholder: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Call the function, and return the argument."""
        self._function()
        return placeholder


_FUNCTIONS = ("body", "cond", "then_branch", "else_branch", "f")
"""Attributes that name functions which an operation calls."""

_RANDOM = ("Random", "TruncatedNormal", "Multinomial", "ParameterizedTruncatedNormal")
_STATEFUL_RANDOM = ("StatefulStandardNormal", "StatefulUniform", "StatefulTruncatedNormal", "StatefulRandom")
_ASSIGNMENTS = ("Assign", "ResourceScatter", "ResourceApply")
"""How the types begin of operations that draw from TensorFlow's own generators, or change a variable."""


def unrepeatable(operations: Iterable[tf.Operation]) -> Iterator[str]:
    """Yield the types of operations that must not be computed again, also in functions that they call."""
    for operation in operations:
        if operation.type.startswith((*_RANDOM, *_STATEFUL_RANDOM, *_ASSIGNMENTS)):
            yield operation.type
        for attribute in {each.name for each in operation.op_def.attr} & set(_FUNCTIONS):
            yield from unrepeatable(_called(operation, attribute))


def _called(operation: tf.Operation, attribute: str) -> list[tf.Operation]:
    """The operations of a function that an operation calls; none if its graph is unknown."""
    found = function_graph(operation.graph, getattr(operation.get_attr(attribute), "name", ""))
    return [] if found is None else list(found.get_operations())
