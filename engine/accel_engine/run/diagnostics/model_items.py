"""A model's input, its layers, and what a trace of training says of its operations, as runs store them."""

from dataclasses import dataclass

from accel_engine.data.pixel_scaling import is_image
from accel_engine.json_values import Count, Number, Text


@dataclass(frozen=True, slots=True)
class InputSpec:
    """The input of a run's model, and its classes."""

    shape: tuple[Count, ...]
    """Shape of one example."""
    names: tuple[Text, ...]
    """Class names."""
    scale: Number
    """Factor that raw values are multiplied by."""
    low: Number
    """The raw value that is black in an image."""
    high: Number
    """The raw value that is white."""
    integers: bool
    """Whether raw values are bytes."""

    @property
    def is_image(self) -> bool:
        """Whether an example has the shape of an image."""
        return is_image(self.shape)


@dataclass(frozen=True, slots=True)
class Layer:
    """A row of the layer table."""

    name: Text
    """The layer's name."""
    kind: Text
    """Its class."""
    depth: Count
    """Number of nested models around it; 0 for a layer of the model itself."""
    shape: tuple[Count | None, ...] | None
    """Output shape for one example; ``None`` if it is known only at run time."""
    parameters: Count
    """Number of weights; for a nested model, with its layers'."""
    trainable: Count
    """Number of trainable weights."""
    flops: Number | None
    """Floating-point operations of a training step, gradients included; ``None`` if not counted."""
    inner: bool = False
    """Whether it is a nested model whose layers follow."""


@dataclass(frozen=True, slots=True)
class StageOfModel:
    """A stage of a model that a pipeline trains, as it was cut."""

    device: Text
    """TensorFlow's name of its device."""
    first: Text
    """Its first layer."""
    last: Text
    """Its last layer."""
    parameters: Count
    """Number of its weights, which are on its device."""
    memory: Count
    """Estimated bytes of its weights, gradients, optimizer state and activations."""
    work: Number
    """Its estimated share of the time of a step."""
    sent: Count
    """Bytes of the activations that later stages get of it, or of stages before it, in a step."""


@dataclass(frozen=True, slots=True)
class LayerTable:
    """A model's layers, in order."""

    layers: tuple[Layer, ...]
    """The layers; a nested model is followed by its own."""
    flops: Number | None = None
    """FLOPs of a whole training step; ``None`` if they cannot be counted."""
    rest: Number = 0.0
    """FLOPs of the step that belong to no layer."""
    reason: Text = ""
    """Why FLOPs cannot be counted."""
    stages: tuple[StageOfModel, ...] = ()
    """The stages of a pipeline, in order; empty without one."""
    micro_batches: Count = 1
    """Micro-batches that a pipeline divides a step into."""

    @property
    def bubble(self) -> float:
        """Share of a step in which a device of a pipeline waits for the others, if all stages take the same time."""
        waiting = len(self.stages) - 1
        return waiting / (self.micro_batches + waiting) if self.stages else 0.0


LAYERS, SCOPES = "layers", "name scopes"
"""What :attr:`OpProfile.groups` are: layers of the model, or where their operations are not marked, name scopes."""


@dataclass(frozen=True, slots=True)
class ProfiledOperation:
    """An operation, or a fusion of several; its times are sums over the whole trace."""

    name: Text
    """Its name in the graph, or in the program of XLA."""
    kind: Text
    """The type of a TensorFlow operation, the opcode of one of XLA, the name of a kernel without either."""
    group: Text
    """The layer, the name scope or the part of the step that it belongs to; empty for none."""
    count: Count
    """How often it ran."""
    seconds: Number
    """Time that it took, without operations within it."""
    flops: Number | None = None
    """Floating-point operations of one execution; ``None`` if unknown."""
    bytes: Number | None = None
    """Bytes of the inputs and outputs of one execution; ``None`` if unknown."""
    kernel: Text = ""
    """The kernel of a GPU that took most of its time."""


@dataclass(frozen=True, slots=True)
class OperationGroup:
    """All operations of a layer, a name scope or a part of the step; sums over the whole trace."""

    name: Text
    """Its name."""
    seconds: Number
    """Time that its operations took."""
    flops: Number
    """Floating-point operations of those whose number is known."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Gaps of some length, in which a device ran nothing."""

    longest: Number
    """The longest of them, in seconds."""
    count: Count
    """Their number, over all devices."""
    seconds: Number
    """Their sum."""


@dataclass(frozen=True, slots=True)
class OpProfile:
    """The operations of some steps, from a trace."""

    device: Text
    """What ran the operations: ``cpu``, ``gpu`` or ``tpu``."""
    devices: Count
    """Number of these devices; 1 for all cores of a CPU."""
    lanes: Count
    """Number of threads or streams on which operations ran."""
    seconds: Number
    """How long the trace took; from the first to the last operation if the trace does not say it."""
    busy: Number
    """Seconds of these in which a device ran an operation, the mean over the devices."""
    total: Number
    """Sum of the times of all operations; more than ``busy`` where several ran at once."""
    steps: Count | None
    """Steps in the trace; ``None`` if unknown."""
    operations: tuple[ProfiledOperation, ...]
    """The costliest operations, by falling time."""
    others: Count
    """Number of the operations that are left out."""
    grouped_by: Text
    """:data:`LAYERS` or :data:`SCOPES`."""
    groups: tuple[OperationGroup, ...]
    """All groups, by falling time."""
    gaps: tuple[Gap, ...]
    """The gaps by length, the short ones first."""
    peak_flops: Number | None = None
    """Peak FLOP/s of a device; ``None`` if unknown."""
    peak_source: Text = ""
    """Source of the peak, or why it is unknown."""
    peak_bytes: Number | None = None
    """Peak bytes per second of a device's memory; ``None`` if unknown."""
    bytes_source: Text = ""
    """Source of that."""
    notes: tuple[Text, ...] = ()
    """What restricts its figures, in sentences."""
    trace: Text = ""
    """Path of the trace's folder for XProf, relative to the run's directory; empty if it is not kept."""

    @property
    def idle(self) -> float:
        """The share of the time in which the devices ran nothing, 0 to 1."""
        return 1 - self.busy / self.seconds if self.seconds else 0.0
