"""Divides a model into stages, puts the weights of each on its device, and runs the model on them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any

import keras
import tensorflow as tf

from accel_engine.data.structure import Structure
from accel_engine.errors import FieldValue, PlanError, Words
from accel_engine.keras_support.divisibility import why_indivisible
from accel_engine.keras_support.model_structure import has_custom_train_step, parameter_count
from accel_engine.op_profile.op_names import innermost_mark
from accel_engine.plan import Plan, array_bytes
from accel_engine.private_names.keras_graph_names import graph_of_layers, move_variable, standard_inputs
from accel_engine.run.diagnostics import StageOfModel
from accel_engine.text import suggestion
from accel_engine.training.core.layer_uses import LayerUse, Tensors, layer_uses
from accel_engine.training.core.pipeline.cuts import LayerCost, choose_cuts
from accel_engine.training.core.rematerialization.division import is_usable
from accel_engine.training.core.rematerialization.parts import run_uses_as_part
from accel_engine.training.core.rematerialization.recomputation import Tracing
from accel_engine.training.model_analysis.activations import LayerActivations, trace_activations
from accel_engine.training.model_analysis.flops import count_operation
from accel_engine.training.model_analysis.layer_table import number_layers

MOST_STAGES = 8
"""Devices of a pipeline whose memory is estimated, at most."""

_BYTE_FLOPS = 10
"""Floating-point operations in the time in which a byte of an activation is written and read."""


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """Consecutive layers of a model, on one device."""

    device: str
    """TensorFlow's name of the device, such as ``/CPU:1``."""
    uses: tuple[LayerUse, ...]
    needed: tuple[int, ...]
    """Ids of the symbolic tensors that it reads of earlier stages and of the model's inputs."""
    given: tuple[int, ...]
    """Ids of the symbolic tensors that later stages read of it."""
    owned: tuple[Any, ...]
    """Its layers that no earlier stage has; their weights are on its device."""

    def run(self, tensors: Tensors, training: Any) -> None:
        """Run its layers on its device, and add their outputs to the tensors."""
        with tf.device(self.device):
            for use in self.uses:
                use.run(tensors, training)

    def run_in_parts(self, tensors: Tensors, tracing: Tracing) -> None:
        """The same in a training step, with all layers that can be computed again in parts for that."""
        first = 0
        for is_part, group in groupby(self.uses, is_usable):
            own = list(group)
            first += len(own)
            if is_part:
                later = {id(symbol) for use in self.uses[first:] for symbol in use.inputs} | set(self.given)
                run_uses_as_part(own, later, tensors, True, tracing)
                continue
            for use in own:
                use.run(tensors, True)


@dataclass(frozen=True, slots=True, eq=False)
class ModelStages:
    """A model in stages."""

    model: keras.Model
    functional: Any
    """The functional model that runs: itself, or the one inside a ``Sequential``."""
    stages: tuple[Stage, ...]
    micro_batches: int
    """Micro-batches of a whole step."""
    table: tuple[StageOfModel, ...] = ()
    """The stages for reports, known before they run."""
    information: tuple[str, ...] = ()
    """Notes for the user."""
    notes: tuple[str, ...] = ()
    """Warnings for the user."""

    def inputs(self, inputs: Structure, mask: Any = None) -> Tensors:
        """The model's inputs by the ids of their symbolic tensors, as its ``call`` makes them."""
        return dict(zip(map(id, self.functional.inputs), standard_inputs(self.functional, inputs, mask), strict=True))

    def outputs(self, tensors: Tensors) -> Structure:
        """The model's outputs, as its ``call`` returns them."""
        outputs = keras.tree.map_structure(lambda symbol: tensors[id(symbol)], self.functional.output)
        return outputs[0] if isinstance(outputs, list | tuple) and len(outputs) == 1 else outputs

    def run_in_place(self) -> None:
        """Let every call of the model run each stage on its device, also outside of training steps."""

        def call(inputs: Any, training: Any = None, mask: Any = None) -> Any:
            tensors = self.inputs(inputs, mask)
            for stage in self.stages:
                stage.run(tensors, training)
            return self.outputs(tensors)

        vars(self.model)["call"] = call  # not with setattr: Keras tracks what is assigned to its layers

    def place(self) -> None:
        """Move the weights of each stage to its device."""
        for stage in self.stages:
            for layer in stage.owned:
                for variable in layer.variables:
                    move_variable(variable, stage.device)


def divide(model: keras.Model, plan: Plan, devices: Sequence[str], batch: int, inputs: Structure) -> ModelStages:
    """Divide a model into a stage for each device.

    Args:
        model: Built; its optimizer is not.
        plan: The plan.
        devices: TensorFlow's names of the devices, such as ``CPU:0``.
        batch: Examples of a step.
        inputs: The :class:`~accel_engine.data.structure.ArraySpec` of every input of an example.

    Raises:
        PlanError: The model cannot be divided, or not where the plan says.
    """
    functional = None if has_custom_train_step(model) else graph_of_layers(model)
    if functional is None:
        raise PlanError("strategy", plan.strategy, *_why_not(model, plan))
    uses = layer_uses(functional)
    count, names = len(devices), [use.name for use in uses]
    if sum(bool(use.layers) for use in uses) < count:
        reason = f"model {plan.model} has fewer layers than there are devices ({count}): use "
        raise PlanError("strategy", plan.strategy, reason, FieldValue("strategy", "default"))
    micro_batches, problem = _micro_batch_count(model, plan, batch, count)
    costs = _costs(model, uses, plan, batch // micro_batches, traced_layers(model, inputs))
    cuts = _named_cuts(plan, names, count) if plan.stages else choose_cuts(costs, _crossing(uses), count, micro_batches)
    stages = _stages(functional, uses, cuts, devices)
    notes = [problem] if problem else []
    table = _table(stages, uses, cuts, costs, micro_batches, batch)
    return ModelStages(
        model,
        functional,
        stages,
        micro_batches,
        table,
        (_described(table, micro_batches), *_shared(stages)),
        tuple(notes),
    )


def _why_not(model: keras.Model, plan: Plan) -> Words:
    if has_custom_train_step(model):
        return (f"model {plan.model} has a custom train_step, which computes its gradients itself: choose another",)
    kind = "a layer of your code runs its parts" if not isinstance(model, keras.Sequential) else "it is not built"
    return (f"only a Sequential or a functional model can be cut into stages; of model {plan.model}, {kind}",)


def _micro_batch_count(model: keras.Model, plan: Plan, batch: int, stages: int) -> tuple[int, str]:
    """The number of micro-batches, and why it is 1 although the plan does not say so."""
    if plan.micro_batches:
        return plan.micro_batches, ""
    reason = why_indivisible(model)
    if reason:
        return 1, f"only one stage works at a time, as the batch is not divided into micro-batches: {reason}"
    return array_bytes.micro_batch_count(batch, stages), ""


def _named_cuts(plan: Plan, names: Sequence[str], count: int) -> tuple[int, ...]:
    """The cuts before the layers that the plan names.

    Raises:
        PlanError: There are no such layers, or they are not one for each device but the first, in their order.
    """
    if len(plan.stages) != count - 1:
        reason = f"must name the first layer of each stage but the first: {count - 1} for {count} devices"
        raise PlanError("stages", plan.stages, reason)
    cuts = list[int]()
    for name in plan.stages:
        if name not in names:
            known = list(filter(None, dict.fromkeys(names)))
            raise PlanError("stages", plan.stages, f"no layer is named {name!r}; {suggestion(name, known)}")
        cuts.append(names.index(name))
    if cuts[0] == 0:
        raise PlanError("stages", plan.stages, f"{plan.stages[0]} is the first layer: nothing would be before it")
    for index in range(1, len(cuts)):
        if cuts[index] <= cuts[index - 1]:
            reason = f"{plan.stages[index]} does not come after {plan.stages[index - 1]} in the model"
            raise PlanError("stages", plan.stages, reason)
    return tuple(cuts)


def _stages(
    functional: Any, uses: Sequence[LayerUse], cuts: Sequence[int], devices: Sequence[str]
) -> tuple[Stage, ...]:
    edges, owned, found = [0, *cuts, len(uses)], set[int](), list[Stage]()
    for index, device in enumerate(devices):
        first, last = edges[index], edges[index + 1]
        own, later = uses[first:last], uses[last:]
        made = {id(symbol) for use in own for symbol in use.outputs}
        read = dict.fromkeys(id(symbol) for use in own for symbol in use.inputs)
        wanted = {id(symbol) for use in later for symbol in use.inputs}
        if later:
            wanted |= {id(symbol) for symbol in functional.outputs}
        else:  # an earlier stage, or an input of the model, may be an output
            read |= dict.fromkeys(id(symbol) for symbol in functional.outputs)
        layers = {id(use.layer): use.layer for use in own if isinstance(use.layer, keras.Layer)}
        fresh = tuple(layer for key, layer in layers.items() if key not in owned)
        owned |= layers.keys()
        given = tuple(dict.fromkeys(id(each) for use in own for each in use.outputs if id(each) in wanted))
        found.append(Stage(f"/{device}", tuple(own), tuple(key for key in read if key not in made), given, fresh))
    return tuple(found)


def _shared(stages: Sequence[Stage]) -> list[str]:
    """Notes on layers that several stages use."""
    owners = {id(layer): stage for stage in stages for layer in stage.owned}
    shared = {
        use.name: owners[id(use.layer)].device
        for stage in stages
        for use in stage.uses
        if id(use.layer) in owners and owners[id(use.layer)] is not stage
    }
    return [
        f"layer {name} is used in several stages: its weights are on {device.strip('/')}, and are sent to the others"
        for name, device in shared.items()
    ]


def _crossing(uses: Sequence[LayerUse]) -> list[int]:
    """Bytes for an example that are made before each use, and read by it or a later one."""
    last = {id(symbol): index for index, use in enumerate(uses) for symbol in use.inputs}
    found, alive = list[int](), dict[int, int]()
    for index, use in enumerate(uses):
        alive = {key: nbytes for key, nbytes in alive.items() if last.get(key, -1) >= index}
        found.append(sum(alive.values()))
        alive |= {id(symbol): _bytes(symbol) for symbol in use.outputs}
    return found


def _bytes(symbol: Any) -> int:
    """Bytes of a symbolic tensor for one example; dimensions that are not known count as one."""
    size = keras.backend.standardize_dtype(symbol.dtype)
    count = tf.as_dtype(size).size if size != "string" else 1
    for side in symbol.shape[1:]:
        count *= side or 1
    return int(count)


@dataclass(frozen=True, slots=True)
class TracedLayers:
    """The layers of a model in a traced step, in the order of the layer table."""

    activations: tuple[LayerActivations, ...] = ()
    """The activations of each layer, and last the ones that belong to no layer."""
    operations: int = 0
    """Number of operations of the step; 0 if it could not be traced."""
    flops: Mapping[int, int] = field(default_factory=Counter)
    """Floating-point operations of each layer that has some."""

    def saved(self, layer: int) -> int:
        """Bytes of an example that a layer saves; 0 if they are unknown."""
        return self.activations[layer].saved if layer < len(self.activations) else 0


def _costs(
    model: keras.Model, uses: Sequence[LayerUse], plan: Plan, micro_batch: int, traced: TracedLayers
) -> list[LayerCost]:
    """The cost of each use of a layer, by the operations and the activations of a traced step."""
    numbers = number_layers(model)
    times = dict[int, int]()
    for use in uses:
        times[id(use.layer)] = times.get(id(use.layer), 0) + 1
    found, seen = list[LayerCost](), set[int]()
    for use in uses:
        marks = [numbers[layer] for layer in use.layers if layer in numbers]
        nbytes = sum(traced.saved(mark) for mark in marks) // times[id(use.layer)]
        work = sum(traced.flops[mark] for mark in marks) / times[id(use.layer)]
        weights = 0
        if use.layers and id(use.layer) not in seen:
            layer, slots = use.layers[0], 2 + array_bytes.optimizer_slots(plan)  # gradients, and their sum
            weights = array_bytes.FLOAT32_BYTES * (
                layer.count_params() + slots * parameter_count(layer.trainable_weights)
            )
        seen.add(id(use.layer))
        held = array_bytes.activation_bytes(plan.replace(micro_batches=None), nbytes, micro_batch)
        found.append(LayerCost(work + _BYTE_FLOPS * nbytes, weights, held))
    return found


def traced_layers(model: keras.Model, inputs: Structure) -> TracedLayers:
    """Trace a step of a model; nothing is known of one that cannot be traced.

    Args:
        model: Built.
        inputs: The :class:`~accel_engine.data.structure.ArraySpec` of every input of an example.
    """
    found = list[TracedLayers]()
    try:
        if not tf.executing_eagerly():
            return _trace(model, inputs)
        # Without AutoGraph, which warns of what it cannot convert.
        tf.function(lambda: found.append(_trace(model, inputs)), autograph=False).get_concrete_function()
    except Exception:  # noqa: BLE001 (the user's model may do anything, such as refuse to be called)
        return TracedLayers()
    return found[0]


def _trace(model: keras.Model, inputs: Structure) -> TracedLayers:
    graph, flops = tf.compat.v1.get_default_graph(), Counter[int]()
    earlier = set(graph.get_operations())
    layers, count = trace_activations(model, inputs)
    for operation in graph.get_operations():
        if operation not in earlier and (mark := innermost_mark(operation.name)) is not None:
            flops[mark] += count_operation(operation) or 0
    return TracedLayers(tuple(layers), count, flops)


def stage_shares(
    model: keras.Model, plan: Plan, traced: TracedLayers
) -> tuple[tuple[array_bytes.StageShare, ...], ...]:
    """The share of each stage in a model on 2, 3, ... devices; empty for a model that cannot be cut."""
    functional = None if has_custom_train_step(model) else graph_of_layers(model)
    if functional is None or not traced.operations:
        return ()
    uses, found = layer_uses(functional), list[tuple[array_bytes.StageShare, ...]]()
    costs, crossing = _costs(model, uses, plan, 1, traced), _crossing(uses)
    weights, activations = (sum(getattr(each, name) for each in costs) or 1 for name in ("weights", "activations"))
    for count in range(2, min(MOST_STAGES, sum(bool(use.layers) for use in uses)) + 1):
        edges = [0, *choose_cuts(costs, crossing, count, array_bytes.MICRO_BATCHES * count), len(costs)]
        parts = [costs[first:last] for first, last in pairwise(edges)]
        found.append(
            tuple(
                array_bytes.StageShare(
                    sum(each.weights for each in part) / weights, sum(each.activations for each in part) / activations
                )
                for part in parts
            )
        )
    return tuple(found)


def _table(
    stages: Sequence[Stage],
    uses: Sequence[LayerUse],
    cuts: Sequence[int],
    costs: Sequence[LayerCost],
    micro_batches: int,
    batch: int,
) -> tuple[StageOfModel, ...]:
    edges, crossing = [0, *cuts, len(costs)], [*_crossing(uses), 0]
    total = sum(each.seconds for each in costs) or 1.0
    rows = list[StageOfModel]()
    for index, stage in enumerate(stages):
        first, last = edges[index], edges[index + 1]
        own, names = costs[first:last], [use.name for use in uses[first:last] if use.layers]
        held = array_bytes.in_flight(index, len(stages), micro_batches)
        rows.append(
            StageOfModel(
                device=stage.device.strip("/"),
                first=names[0] if names else "",
                last=names[-1] if names else "",
                parameters=parameter_count(variable for layer in stage.owned for variable in layer.weights),
                memory=sum(each.weights + held * each.activations for each in own),
                work=sum(each.seconds for each in own) / total,
                sent=crossing[last] * batch,
            )
        )
    return tuple(rows)


def _described(table: Sequence[StageOfModel], micro_batches: int) -> str:
    parts = [f"{row.device} from {row.first} ({100 * row.work:.0f}%)" for row in table]
    return f"pipeline: {len(table)} stages, {micro_batches} micro-batches: {', '.join(parts)} of the estimated time"
