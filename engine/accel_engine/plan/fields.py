"""The fields of a plan, with their types, defaults and allowed values."""

from dataclasses import dataclass, field
from typing import Any

from accel_engine.data.data_options import INVALID_EXAMPLES, SPLITS, TASKS, TOKENIZERS
from accel_engine.data.pixel_scaling import SCALES
from accel_engine.plan.choices import (
    AUGMENTATIONS,
    LAST_BATCHES,
    NOT_A_NUMBER_ACTIONS,
    OPTIMIZERS,
    OUT_OF_MEMORY_ACTIONS,
    PRECISIONS,
    RATE_SCALINGS,
    REDUCTIONS,
    REMAT_MODES,
    SCHEDULES,
    VALIDATIONS,
    XLA_MODES,
)
from accel_engine.plan.field_spec import FieldSpec
from accel_engine.plan.task_choices import LOSS_ALIASES, LOSSES, METRIC_ALIASES, METRICS


def _field(default: Any, doc: str, kind: type, **spec: Any) -> Any:
    return field(default=default, metadata={"spec": FieldSpec(doc, kind, **spec)})


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFields:
    """The settings of a run.

    Each field is documented by its :class:`FieldSpec`, which the command line, the form and the TOML file show.
    """

    model: str = _field("auto", "Model: auto, a name, FILE.py:FUNCTION, MODULE:FUNCTION, FILE.keras or FILE.h5", str)
    data: str = _field(
        "digits",
        "Data: a name, file, folder, FILE.py:FUNCTION or synthetic[:SHAPE[:CLASSES]]",
        str,
    )
    task: str = _field("auto", "What is learned; auto follows from the model and the data", str, choices=TASKS)
    image_size: str | None = _field(
        None, "Resize the images of a folder to HEIGHTxWIDTH", str, optional=True, example="96x96"
    )
    scale: str = _field(
        "auto", "Scale inputs to [0, 1]: auto only pixels, 0-1 all uint8 and uint16", str, choices=SCALES
    )
    tokenizer: str = _field("characters", "Tokens of a text for a language model", str, choices=TOKENIZERS)
    invalid_examples: str = _field(
        "auto",
        "Invalid files, rows and numbers; auto skips damaged files of a folder",
        str,
        choices=INVALID_EXAMPLES,
    )
    name: str = _field("", "Name of the run", str, example="first-try")
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
    split: str = _field("auto", f"Validation examples: {', '.join(SPLITS)} or column:NAME", str, example="stratified")
    validation_split: float = _field(
        0.1, "Share of the examples for validation, unless the data is split", float, above=0, maximum=0.9
    )
    test_split: float = _field(0.0, "Share of the examples that training never sees", float, minimum=0, maximum=0.9)
    split_seed: int | None = _field(
        None, "Random seed for the splits; default: the seed", int, minimum=0, maximum=2**31 - 1, optional=True
    )
    validation_data: str = _field("", "File or folder with the validation examples", str, example="valid.csv")
    epochs: int = _field(10, "Number of epochs", int, minimum=1, only_training=True)
    batch_size: int = _field(64, "Global batch size: examples per step over all replicas", int, minimum=1)
    steps_per_epoch: int | None = _field(
        None, "Steps per epoch; default: all the data", int, minimum=1, optional=True, only_training=True
    )
    micro_batches: int | None = _field(
        None,
        "Micro-batches per step (gradient accumulation), to save memory",
        int,
        minimum=1,
        optional=True,
        example="4",
        only_training=True,
    )
    remat: str = _field(
        "auto",
        "Recompute activations for the gradients, to save memory (rematerialization)",
        str,
        choices=REMAT_MODES,
        only_training=True,
    )
    remat_layers: tuple[str, ...] = _field(
        (),
        "Layers to recompute: names, with * for any text; default: chosen by size",
        tuple,
        optional=True,
        example="block1_*,block2_*",
        only_training=True,
    )
    last_batch: str = _field(
        "keep", "The last, smaller batch of an epoch", str, choices=LAST_BATCHES, only_training=True
    )
    shuffle: str = _field(
        "on", "Shuffle the training examples in each epoch", str, choices=("on", "off"), only_training=True
    )
    seed: int = _field(0, "Random seed for weights, shuffling and dropout", int, minimum=0, maximum=2**31 - 1)
    loss: str = _field(
        "auto",
        "Loss; auto is the compiled model's own, else it follows from the task",
        str,
        choices=LOSSES,
        aliases=LOSS_ALIASES,
    )
    label_smoothing: float = _field(
        0.0, "Label smoothing of a crossentropy loss", float, minimum=0, maximum=0.9, example="0.1"
    )
    class_weight: tuple[str, ...] = _field(
        (),
        "Weights of classes in the loss: balanced or CLASS=WEIGHT",
        tuple,
        optional=True,
        none="none",
        example="balanced",
    )
    metrics: tuple[str, ...] = _field(
        (),
        "Metrics to measure besides the model's own",
        tuple,
        choices=METRICS,
        aliases=METRIC_ALIASES,
        optional=True,
        none="none",
        has_words=True,
        example="precision,recall",
    )
    monitor: str = _field(
        "", "Metric of early stopping and the best checkpoint, such as validation_loss", str, example="validation_loss"
    )
    monitor_mode: str = _field(
        "auto",
        "Whether the monitored metric is best at its lowest (min) or highest (max)",
        str,
        choices=("auto", "min", "max"),
    )
    gradient_norm: str = _field(
        "off",
        "Record the gradient norm of every step, before clipping; layers: also by layer",
        str,
        choices=("on", "off", "layers"),
        only_training=True,
    )
    optimizer: str = _field(
        "auto", "Optimizer; auto is the compiled model's own, else adam", str, choices=OPTIMIZERS, only_training=True
    )
    learning_rate: float | None = _field(
        None, "Learning rate; default: the optimizer's own", float, above=0, optional=True, only_training=True
    )
    learning_rate_factor: float = _field(
        1.0, "Multiplies the learning rate, also that of a schedule", float, above=0, example="0.5", only_training=True
    )
    rate_scaling: str = _field(
        "none", "Scale the learning rate with the number of replicas", str, choices=RATE_SCALINGS, only_training=True
    )
    weight_decay: float | None = _field(
        None,
        "Weight decay of the optimizer; default: the optimizer's own",
        float,
        minimum=0,
        optional=True,
        example="0.01",
        only_training=True,
    )
    momentum: float | None = _field(
        None,
        "Momentum of sgd or rmsprop; default: 0",
        float,
        minimum=0,
        below=1,
        optional=True,
        example="0.9",
        only_training=True,
    )
    nesterov: str = _field("off", "Nesterov momentum of sgd", str, choices=("on", "off"), only_training=True)
    ema_momentum: float | None = _field(
        None,
        "Validate and save the moving average of the weights (EMA) with this momentum",
        float,
        above=0,
        below=1,
        optional=True,
        none="off",
        example="0.999",
        only_training=True,
    )
    clip_norm: float | None = _field(
        None,
        "Clip the gradient of each weight to this norm",
        float,
        above=0,
        optional=True,
        none="off",
        example="1",
        only_training=True,
    )
    global_clip_norm: float | None = _field(
        None,
        "Clip the gradients of all weights to this global norm",
        float,
        above=0,
        optional=True,
        none="off",
        example="1",
        only_training=True,
    )
    clip_value: float | None = _field(
        None,
        "Clip each value of the gradients to this size",
        float,
        above=0,
        optional=True,
        none="off",
        example="0.5",
        only_training=True,
    )
    schedule: str = _field(
        "auto",
        "Learning-rate schedule; auto is the compiled model's own, else constant",
        str,
        choices=SCHEDULES,
        only_training=True,
    )
    warmup: float = _field(
        0.0,
        "Steps, or a share of all steps, in which the learning rate rises from 0",
        float,
        minimum=0,
        is_share=True,
        example="5%",
        only_training=True,
    )
    final_rate: float | None = _field(
        None,
        "Last learning rate, as a share of the highest; default: 0, exponential 0.01",
        float,
        minimum=0,
        maximum=1,
        is_share=True,
        optional=True,
        example="0.01",
        only_training=True,
    )
    rate_drops: tuple[str, ...] = _field(
        ("50%", "75%"),
        "Steps, or shares of all steps, at which schedule steps lowers the rate",
        tuple,
        has_words=True,
        example="1000,2000",
        only_training=True,
    )
    rate_drop_factor: float = _field(
        0.1, "Factor of the learning rate at each drop of schedule steps", float, above=0, below=1, only_training=True
    )
    augmentation: tuple[str, ...] = _field(
        (),
        "Random changes of training images: light, strong, or their parts",
        tuple,
        choices=AUGMENTATIONS,
        optional=True,
        none="none",
        has_words=True,
        example="flip,crop",
        only_training=True,
    )
    initial_weights: str = _field(
        "", "Weights to start from: imagenet, a run, FILE.keras or FILE.weights.h5", str, example="imagenet"
    )
    freeze: tuple[str, ...] = _field(
        (),
        "Layers to freeze: names, with * for any text, or all-but-head",
        tuple,
        optional=True,
        none="none",
        example="all-but-head",
        only_training=True,
    )
    unfreeze_epoch: int | None = _field(
        None,
        "Epoch from which the frozen layers train; default: never",
        int,
        minimum=2,
        optional=True,
        none="never",
        example="4",
        only_training=True,
    )
    custom_objects: str = _field(
        "", "Python file with the custom classes and functions of a FILE.keras", str, example="layers.py"
    )
    unsafe_load: str = _field(
        "off",
        "Load a FILE.keras with lambda layers, which run code from the file",
        str,
        choices=("on", "off"),
    )
    validation: str = _field(
        "epoch", "Validate during training, at the end or never", str, choices=VALIDATIONS, only_training=True
    )
    validation_every: str = _field(
        "1 epoch", "Epochs, steps or minutes between validations", str, example="500 steps", only_training=True
    )
    validation_steps: int | None = _field(
        None, "Batches of a validation stream to read at most", int, minimum=1, optional=True, example="100"
    )
    patience: int | None = _field(
        None,
        "Stop after this many validations without improvement; default: never",
        int,
        minimum=1,
        optional=True,
        none="never",
        example="5",
        only_training=True,
    )
    min_delta: float = _field(
        0.0,
        "Smallest change of the monitored metric that counts as an improvement",
        float,
        minimum=0,
        example="0.001",
        only_training=True,
    )
    restore_best: str = _field(
        "off",
        "Save the model with the weights of its best validation, not the last ones",
        str,
        choices=("on", "off"),
        only_training=True,
    )
    time_limit: str = _field(
        "", "Stop training after this time, with a checkpoint", str, example="2h", only_training=True
    )
    checkpoint_every: str = _field(
        "auto",
        "Epochs, steps or minutes between checkpoints; auto: an epoch or more",
        str,
        example="1000 steps",
        only_training=True,
    )
    keep_checkpoints: int = _field(3, "Checkpoints to keep, besides the best one", int, minimum=1, only_training=True)
    on_oom: str = _field(
        "adapt",
        "Out of memory: adapt splits batches or recomputes layers; fail ends the run",
        str,
        choices=OUT_OF_MEMORY_ACTIONS,
        only_training=True,
    )
    on_nan: str = _field(
        "rollback",
        "NaN or exploding loss: return to a checkpoint, skip the batch, stop or go on",
        str,
        choices=NOT_A_NUMBER_ACTIONS,
        only_training=True,
    )
    skip_steps: tuple[str, ...] = _field(
        (),
        "Steps without an update, counted from 0, to skip their batches",
        tuple,
        optional=True,
        example="120,348",
        only_training=True,
    )
    keep_alive: str = _field(
        "off",
        "Start a lost or failed engine again from its last checkpoint",
        str,
        choices=("on", "off"),
        only_training=True,
    )
    tensorboard: str = _field(
        "off", "Write TensorBoard logs to the run's directory", str, choices=("on", "off"), only_training=True
    )
    strategy: str = _field("default", "Distribution strategy", str, example="mirrored", only_training=True)
    devices: tuple[str, ...] = _field(
        (),
        "Devices to train on; default: all that the strategy can use",
        tuple,
        optional=True,
        example="gpu:0",
        has_words=True,
        only_training=True,
    )
    virtual_cpus: int = _field(
        1, "Number of virtual CPUs (logical devices of the CPU)", int, minimum=1, maximum=64, only_training=True
    )
    precision: str = _field(
        "auto", "Numeric precision; auto is mixed_bfloat16 on a TPU, else float32", str, choices=PRECISIONS
    )
    force: str = _field(
        "off", "Allow mixed_float16 on a CPU, which is very slow", str, choices=("on", "off"), only_training=True
    )
    xla: str = _field(
        "auto",
        "Compile the steps with XLA; auto: if that is measured to be faster",
        str,
        choices=XLA_MODES,
        only_training=True,
    )
    cpu_kernels: str = _field(
        "auto",
        "Faster CPU kernels for convolutions and batch normalization; off: Keras' own",
        str,
        choices=("auto", "off"),
        only_training=True,
    )
    threads: int | None = _field(
        None,
        "Threads per operation on a CPU; auto: TensorFlow's own, or the fastest known",
        int,
        minimum=1,
        maximum=1024,
        optional=True,
        example="1",
        only_training=True,
    )
    reduction: str = _field("auto", "All-reduce algorithm for gradients", str, choices=REDUCTIONS, only_training=True)
    local_workers: int = _field(
        0, "Number of worker processes on this machine", int, minimum=0, maximum=64, only_training=True
    )
    isolate_workers: str = _field(
        "auto",
        "Hide local workers from the network; auto: unless code or data may need it",
        str,
        choices=("auto", "on", "off"),
        only_training=True,
    )
    tpu: str = _field(
        "",
        "TPU: local, grpc://HOST:8470 or a name; default: from the environment",
        str,
        example="local",
        only_training=True,
    )
    memory_growth: str = _field(
        "on", "Allocate GPU memory as needed, not all at once", str, choices=("on", "off"), only_training=True
    )
    memory_limit: float | None = _field(
        None,
        "Memory limit of each GPU in GiB; default: all",
        float,
        above=0,
        optional=True,
        none="all",
        only_training=True,
    )
