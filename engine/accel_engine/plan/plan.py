"""The plan of a run: model, data, devices and training settings, read from TOML, JSON or command-line options."""

import difflib
import json
import tomllib
from collections.abc import Container, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self

from accel_engine import data, models, strategies
from accel_engine.data.data_options import INVALID_EXAMPLES, SPLITS, TASKS, TOKENIZERS, DataOptions
from accel_engine.data.pixel_scaling import SCALES
from accel_engine.errors import FieldValue, PlanError, UsageError
from accel_engine.plan.field_spec import AUTO, FieldSpec
from accel_engine.text import shell_command

PRECISIONS = ("auto", "float32", "mixed_bfloat16", "mixed_float16")
XLA_MODES = ("auto", "on", "off")
OPTIMIZERS = ("auto", "adam", "adamw", "nadam", "rmsprop", "sgd", "adagrad", "lion")
VALIDATIONS = ("epoch", "end", "off")
LAST_BATCHES = ("keep", "drop")
REDUCTIONS = ("auto", "nccl", "hierarchical-copy", "one-device", "ring")
RATE_SCALINGS = ("none", "linear", "square-root")


def _field(default: Any, doc: str, kind: type, **spec: Any) -> Any:
    return field(default=default, metadata={"spec": FieldSpec(doc, kind, **spec)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The settings of a run, checked on construction.

    Each field is documented by its :class:`FieldSpec`, which the command line, the form and the TOML file show.

    Raises:
        PlanError: The value of a field is not allowed.
    """

    model: str = _field("cnn", "Model: a built-in name, FILE.py:FUNCTION, PACKAGE.MODULE:FUNCTION or FILE.keras", str)
    data: str = _field(
        "digits",
        "Data: a built-in name, synthetic[:SHAPE[:CLASSES[:EXAMPLES]]], a file, a folder or FILE.py:FUNCTION",
        str,
    )
    task: str = _field("auto", "What is learned; auto follows from the model and the data", str, choices=TASKS)
    target: tuple[str, ...] = _field((), "Columns or arrays to predict", tuple, optional=True, example="price")
    features: tuple[str, ...] = _field(
        (), "Columns or arrays to use as inputs; default: all others", tuple, optional=True, example="age,city"
    )
    ignore: tuple[str, ...] = _field((), "Columns or arrays to leave out", tuple, optional=True, example="id")
    kinds: tuple[str, ...] = _field(
        (), "Kinds of columns: number, category, text or date", tuple, optional=True, example="zip=category"
    )
    time: str = _field("", "Column that orders a time series", str, example="date")
    window: int | None = _field(
        None,
        "Steps of a time series, or tokens of a text, in one example",
        int,
        minimum=1,
        optional=True,
        example="24",
    )
    horizon: int = _field(1, "Steps of a time series to predict", int, minimum=1)
    group: str = _field("", "Column that tells several time series apart", str, example="station")
    tokenizer: str = _field("characters", "Tokens of a text for a language model", str, choices=TOKENIZERS)
    split: str = _field(
        "auto", f"How to choose validation examples: {', '.join(SPLITS)} or column:NAME", str, example="stratified"
    )
    validation_split: float = _field(
        0.1, "Share of the examples for validation, unless the data is split", float, above=0, maximum=0.9
    )
    test_split: float = _field(0.0, "Share of the examples that training never sees", float, minimum=0, maximum=0.9)
    validation_data: str = _field("", "File or folder with the validation examples", str, example="valid.csv")
    validation_steps: int | None = _field(
        None, "Batches of a validation stream to read at most", int, minimum=1, optional=True, example="100"
    )
    class_weight: tuple[str, ...] = _field(
        (), "Weights of classes in the loss: balanced or CLASS=WEIGHT", tuple, optional=True, example="balanced"
    )
    invalid_examples: str = _field(
        "fail", "Files that cannot be read and numbers that are not finite", str, choices=INVALID_EXAMPLES
    )
    strategy: str = _field("default", "Distribution strategy", str, example="mirrored")
    devices: tuple[str, ...] = _field(
        (), "Devices to train on; default: all that the strategy can use", tuple, example="gpu:0", has_words=True
    )
    virtual_cpus: int = _field(1, "Number of virtual CPUs (logical devices of the CPU)", int, minimum=1, maximum=64)
    memory_growth: str = _field("on", "Allocate GPU memory as needed, not all at once", str, choices=("on", "off"))
    memory_limit: float | None = _field(
        None, "Memory limit of each GPU in GiB; default: all", float, above=0, optional=True
    )
    reduction: str = _field("auto", "All-reduce algorithm for gradients", str, choices=REDUCTIONS)
    local_workers: int = _field(0, "Number of worker processes on this machine", int, minimum=0, maximum=64)
    tpu: str = _field("", "TPU: local, grpc://HOST:8470 or a name; default: from the environment", str, example="local")
    precision: str = _field(
        "auto", "Numeric precision; auto is mixed_bfloat16 on a TPU, else float32", str, choices=PRECISIONS
    )
    force: str = _field("off", "Allow mixed_float16 on a CPU, which is very slow", str, choices=("on", "off"))
    xla: str = _field(
        "auto",
        "Compile the step with XLA; auto measures it in long runs",
        str,
        choices=XLA_MODES,
    )
    cpu_kernels: str = _field(
        "auto",
        "Faster CPU kernels for convolutions and batch normalization; off: Keras' own",
        str,
        choices=("auto", "off"),
    )
    batch_size: int = _field(64, "Global batch size: examples per step over all replicas", int, minimum=1)
    micro_batches: int | None = _field(
        None,
        "Micro-batches per step (gradient accumulation), to save memory",
        int,
        minimum=1,
        optional=True,
        example="4",
    )
    last_batch: str = _field("keep", "The last, smaller batch of an epoch", str, choices=LAST_BATCHES)
    shuffle: str = _field("on", "Shuffle the training examples in each epoch", str, choices=("on", "off"))
    epochs: int = _field(10, "Number of epochs", int, minimum=1)
    steps_per_epoch: int | None = _field(None, "Steps per epoch; default: all the data", int, minimum=1, optional=True)
    optimizer: str = _field("auto", "Optimizer; auto is the compiled model's own, else adam", str, choices=OPTIMIZERS)
    learning_rate: float | None = _field(
        None, "Learning rate; default: the optimizer's own", float, above=0, optional=True
    )
    rate_scaling: str = _field(
        "none", "Scale the learning rate with the number of replicas", str, choices=RATE_SCALINGS
    )
    seed: int = _field(0, "Random seed for weights, shuffling and dropout", int, minimum=0, maximum=2**31 - 1)
    validation: str = _field("epoch", "Validate after each epoch, at the end or never", str, choices=VALIDATIONS)
    monitor: str = _field("", "The metric that counts, such as validation_loss", str, example="validation_loss")
    gradient_norm: str = _field(
        "off", "Record the gradient norm of every step, before clipping", str, choices=("on", "off")
    )
    tensorboard: str = _field("off", "Write TensorBoard logs to the run's directory", str, choices=("on", "off"))
    image_size: str | None = _field(
        None, "Resize the images of a folder to HEIGHTxWIDTH", str, optional=True, example="96x96"
    )
    scale: str = _field(
        "auto", "Scale inputs to [0, 1]: auto only pixels, 0-1 all uint8 and uint16", str, choices=SCALES
    )
    name: str = _field("", "Name of the run", str, example="first-try")

    def __post_init__(self) -> None:
        for item in fields(self):
            object.__setattr__(self, item.name, SPECS[item.name].check(item.name, getattr(self, item.name)))
        models.find(self.model)
        data.find(self.data)
        strategies.find(self.strategy)
        if self.image_size is not None:
            data.parse_size(self.image_size)
        if self.split not in SPLITS and not self.split.startswith("column:"):
            raise PlanError("split", self.split, f"must be one of {', '.join(SPLITS)} or column:NAME")

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Self:
        """Make a plan from names and values.

        Raises:
            PlanError: A name is unknown, or a value is invalid.
        """
        for name in values:
            if name not in SPECS:
                near = difflib.get_close_matches(name.replace("-", "_"), SPECS, n=1)
                hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(SPECS)}"
                raise PlanError(name, values[name], f"unknown field; {hint}")
        return cls(**values)

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """Parse a plan from TOML.

        Raises:
            PlanError: A field is invalid.
            UsageError: The text is not valid TOML.
        """
        return cls.from_mapping(parse_toml(text))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse a plan from a JSON object.

        Raises:
            PlanError: A field is invalid.
            UsageError: The text is not a JSON object.
        """
        try:
            values = json.loads(text)
        except json.JSONDecodeError as error:
            raise UsageError(f"the plan is not valid JSON: {error}") from error
        if not isinstance(values, dict):
            raise UsageError("the plan is not a JSON object")
        return cls.from_mapping(values)

    def to_mapping(self) -> dict[str, Any]:
        """Return all fields by name, in types of JSON."""
        values = {name: getattr(self, name) for name in SPECS}
        return {name: _plain(value) for name, value in values.items()}

    def to_json(self) -> str:
        """Format the plan as a JSON object."""
        return json.dumps(self.to_mapping())

    def to_toml(self) -> str:
        """Format the plan as TOML, with each field's documentation as a comment."""
        import tomlkit  # slow to import, and rarely needed

        lines = []
        for name, value in self.to_mapping().items():
            lines.append(f"# {SPECS[name].doc}")
            lines.append(tomlkit.dumps({name: AUTO if value is None else value}).strip())
        return "\n".join(lines) + "\n"

    def changed(self) -> dict[str, Any]:
        """Return the fields that are not at their defaults."""
        return {name: value for name, value in self.to_mapping().items() if value != _plain(DEFAULTS[name])}

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return replace(self, **changes)

    def absolute(self) -> Self:
        """Return a copy with absolute paths, so that the run can be continued from any directory."""
        model, data_path = models.find(self.model), data.find(self.data).path
        changes = {}
        if isinstance(model, models.UserModel) and model.kind != "module":
            target = str(Path(model.target).expanduser().absolute())
            changes["model"] = f"{target}:{model.function}" if model.function else target
        if data_path is not None:
            function = data.find(self.data).function
            changes["data"] = str(data_path.absolute()) + (f":{function.rpartition(':')[2]}" if function else "")
        if self.validation_data and (held_out := data.find(self.validation_data)).path is not None:
            function = f":{held_out.function.rpartition(':')[2]}" if held_out.function else ""
            changes["validation_data"] = str(held_out.path.expanduser().absolute()) + function
        return self.replace(**changes)

    def command(self, always: Container[str] = ()) -> str:
        """Format the shell command that trains this plan, without fields at their defaults.

        Args:
            always: Fields to include anyway, because a setting overrides their defaults.
        """
        words = ["accel-tui", "train"]
        changed = self.changed()
        for name, value in self.to_mapping().items():
            if name in changed or name in always:
                words += [str(FieldValue(name)), _text(value)]
        return shell_command(words)

    @property
    def data_options(self) -> DataOptions:
        """How the data is read and split."""
        return DataOptions(**{item.name: getattr(self, item.name) for item in fields(DataOptions)})

    @property
    def policy(self) -> str:
        """The model's Keras dtype policy."""
        return strategies.find(self.strategy).precision if self.precision == "auto" else self.precision

    @property
    def title(self) -> str:
        """The run's name, or its model and data."""
        return self.name or f"{models.find(self.model).name} on {data.find(self.data).name}"


def _text(value: Any) -> str:
    return AUTO if value in (None, []) else ",".join(value) if isinstance(value, list) else str(value)


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a plan's TOML without validating its fields.

    Raises:
        UsageError: It is not valid TOML.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"the plan is not valid TOML: {error}") from error


def read_values(path: Path) -> dict[str, Any]:
    """Read a plan file, TOML or (by its suffix) JSON, without validating its fields.

    Raises:
        UsageError: It cannot be read or parsed.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the plan {path}: {getattr(error, 'strerror', None) or error}") from error
    try:
        if path.suffix == ".json":
            values = json.loads(text)
            if not isinstance(values, dict):
                raise UsageError("the plan is not a JSON object")
            return values
        return parse_toml(text)
    except (UsageError, json.JSONDecodeError) as error:
        raise UsageError(f"{path}: {error}") from error


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


SPECS: dict[str, FieldSpec] = {item.name: item.metadata["spec"] for item in fields(Plan)}
"""Specifications by field name, in the order of the form."""

DEFAULTS: dict[str, Any] = {item.name: item.default for item in fields(Plan) if item.default is not MISSING}
"""Defaults by field name."""
