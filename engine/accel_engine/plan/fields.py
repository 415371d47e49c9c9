"""The fields of a plan, with their types, defaults and allowed values."""

from dataclasses import dataclass, field, fields
from typing import Any

from accel_engine.data.data_options import (
    DECIMAL_MARKS,
    INVALID_EXAMPLES,
    SPLITS,
    TASKS,
    THOUSANDS_MARKS,
    TOKENIZERS,
    check_split,
)
from accel_engine.data.pixel_scaling import SCALES
from accel_engine.data.source import parse_size
from accel_engine.devices.preemption import OFF, PROVIDERS
from accel_engine.errors import FieldValue
from accel_engine.plan import interval, purposes, task_choices
from accel_engine.plan.field_rules import (
    Alternatives,
    Contradiction,
    FieldRules,
    Need,
    both,
    contradicts,
    either,
    is_set,
    one_of,
)
from accel_engine.plan.field_spec import AUTO, ChangedBy, Effect, FieldSpec, FieldUse, FieldWords


def _field(default: Any, spec: FieldSpec, words: FieldWords, use: FieldUse, **rules: Any) -> Any:
    metadata = {"spec": spec, "words": words, "use": use, "rules": FieldRules(**rules)}
    return field(default=default, metadata=metadata)


def _of_training(*affects: Effect, changed_by: ChangedBy = "nothing", fixed: str = "", **more: Any) -> FieldUse:
    """The use of a field that only training needs: a trained run is opened as if it had the default."""
    return FieldUse(affects, changed_by=changed_by, fixed=fixed, only_training=True, **more)


def _of_model(*affects: Effect, changed_by: ChangedBy = "nothing", fixed: str = "", **more: Any) -> FieldUse:
    """The use of a field that a trained run needs, too: its model and its data depend on it."""
    return FieldUse(affects, changed_by=changed_by, fixed=fixed, only_training=False, **more)


def _check_size(_: str, value: str | None) -> None:
    if value is not None:
        parse_size(value)


def _check_time_limit(name: str, value: str) -> None:
    if value:
        interval.parse_duration(name, value)


def _check_checkpoints(name: str, value: str) -> None:
    if value != AUTO:
        interval.parse_interval(name, value)


def _ends_at_zero(plan: Any) -> bool:
    return bool(plan.schedule == "exponential" and plan.final_rate == 0)


_SERIES = either(is_set("time", what="time"), is_set("window", what="window"), what="windows of a time series")
_DROPS = one_of("schedule", "steps", what="the schedule steps")
_MIRRORED = FieldValue("strategy", "mirrored")
_TRAINING_METRIC = Need(
    lambda plan: task_choices.is_of_training(plan.monitor), "a metric of training", (FieldValue("monitor", "loss"),)
)

CLIPPED_ONCE = Alternatives("gradients are clipped once")
"""Shared by the fields that clip gradients; Keras takes one of them."""


_OTHER_EXAMPLES = "trials with other validation examples cannot be compared"
_OTHER_FIGURE = "the trials would not be compared by the same figure"
_SET_BY_SEARCH = "a search sets it itself"
_SET_BY_QUEUE = "the queue hands out devices"
_NOT_TRAINED = "it is not a part of training"
_LUCKY = "it would choose the luckiest seed, not the best plan; the best plan is confirmed with several seeds"
"""Why a search cannot vary a field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFields:
    """The settings of a run.

    Each field is an entry with everything known of it: which values it may have, the words about it, and what it does.
    Commands, form, files, searches, cures and documents follow from it.
    """

    # Model and data

    model: str = _field(
        "auto",
        FieldSpec("Model: auto, a name, FILE.py:FUNCTION, MODULE:FUNCTION, FILE.keras or FILE.h5", str),
        FieldWords(
            "Model and data",
            "the one that was best on such data in our benchmarks",
            synonyms=("architecture", "network", "backbone"),
            suggestions=(("auto", "the default model for the data and its task"),),
            catalogue="accel_engine.models",
            takes_files=True,
            tells_runs_apart=True,
            first=(1, 0),
        ),
        _of_model("learning", "speed", "memory"),
    )
    data: str = _field(
        "digits",
        FieldSpec("Data: a name, file, folder, FILE.py:FUNCTION or synthetic[:SHAPE[:CLASSES]]", str),
        FieldWords(
            "Model and data",
            "built in, nothing to download",
            synonyms=("dataset", "input", "csv"),
            catalogue="accel_engine.data",
            takes_files=True,
            tells_runs_apart=True,
            first=(0, 0),
        ),
        _of_model("data", "speed", "memory", fixed=_OTHER_EXAMPLES),
    )
    # Task, inputs

    task: str = _field(
        "auto",
        FieldSpec("What is learned; auto follows from the model and the data", str, choices=TASKS),
        FieldWords("Task, inputs", "model and data together leave one, or the usual one"),
        _of_model("data", "speed", "memory", fixed=_OTHER_EXAMPLES),
        only_for=purposes.OWN_WORK,
    )
    image_size: str | None = _field(
        None,
        FieldSpec("Resize the images of a folder to HEIGHTxWIDTH", str, optional=True, example="96x96"),
        FieldWords(
            "Task, inputs",
            "no detail is lost; smaller images train faster",
            placeholder="original size",
            synonyms=("resize", "resolution", "img"),
        ),
        _of_model("data", "speed", "memory"),
        check_form=_check_size,
        only_for=purposes.IMAGE_FOLDERS,
    )
    scale: str = _field(
        "auto",
        FieldSpec("Scale inputs to [0, 1]: auto only pixels, 0-1 all uint8 and uint16", str, choices=SCALES),
        FieldWords(
            "Task, inputs", "networks train best on small numbers", synonyms=("rescaling", "normalize", "preprocessing")
        ),
        _of_model("learning", "speed", "memory"),
        only_for=purposes.OWN_WORK,
    )
    tokenizer: str = _field(
        "characters",
        FieldSpec("Tokens of a text for a language model", str, choices=TOKENIZERS),
        FieldWords("Task, inputs", "it needs no download and fits every text"),
        _of_model("data", "speed", "memory"),
        only_for=purposes.LANGUAGE_MODELS,
    )
    invalid_examples: str = _field(
        "auto",
        FieldSpec(
            "Invalid files, rows and numbers; auto skips damaged files of a folder", str, choices=INVALID_EXAMPLES
        ),
        FieldWords("Task, inputs", "one damaged file stops no training; the rest is your decision", label="if invalid"),
        _of_model("data", "speed", "memory", fixed=_OTHER_EXAMPLES),
        only_for=purposes.OWN_DATA,
    )
    # Model and data

    name: str = _field(
        "",
        FieldSpec("Name of the run", str, example="first-try"),
        FieldWords(
            "Model and data",
            "the run's id is enough to find it",
            placeholder="none",
            tells_runs_apart=True,
            first=(2, 0),
        ),
        _of_model(changed_by="continuation", fixed=_SET_BY_SEARCH),
    )
    # Columns

    target: tuple[str, ...] = _field(
        (),
        FieldSpec("Columns or arrays to predict", tuple, optional=True, example="price"),
        FieldWords(
            "Columns", "a common name such as label, else the last column", synonyms=("label", "y"), first=(0, 1)
        ),
        _of_model("data", "speed", "memory", fixed=_OTHER_EXAMPLES),
        only_for=purposes.COLUMNS,
    )
    features: tuple[str, ...] = _field(
        (),
        FieldSpec("Columns or arrays to use as inputs; default: all others", tuple, optional=True, example="age,city"),
        FieldWords(
            "Columns", "all columns may help to predict the target", placeholder="all others", synonyms=("x", "inputs")
        ),
        _of_model("data", "speed", "memory"),
        only_for=purposes.COLUMNS,
    )
    ignore: tuple[str, ...] = _field(
        (),
        FieldSpec("Columns or arrays to leave out", tuple, optional=True, example="id"),
        FieldWords("Columns", "all columns may help to predict the target", placeholder="none"),
        _of_model("data", "speed", "memory"),
        only_for=purposes.COLUMNS,
    )
    kinds: tuple[str, ...] = _field(
        (),
        FieldSpec("Kinds of columns: number, category, text or date", tuple, optional=True, example="zip=category"),
        FieldWords("Columns", "the values tell the kind of most columns"),
        _of_model("data", "speed", "memory"),
        only_for=purposes.TABLES,
    )
    decimal: str = _field(
        "auto",
        FieldSpec("Mark before the fraction of numbers in texts", str, choices=DECIMAL_MARKS, example=","),
        FieldWords("Columns", "the mark that reads most values of a column"),
        _of_model("data", "speed", "memory", fixed=_OTHER_EXAMPLES),
        only_for=purposes.TABLES,
    )
    thousands: str = _field(
        "auto",
        FieldSpec("Mark between groups of digits of numbers in texts", str, choices=THOUSANDS_MARKS, example="'"),
        FieldWords("Columns", "the mark that reads most values of a column"),
        _of_model("data", "speed", "memory", fixed=_OTHER_EXAMPLES),
        only_for=purposes.TABLES,
    )
    missing: tuple[str, ...] = _field(
        (),
        FieldSpec("More texts that mean a missing value", tuple, optional=True, example="unknown,-99"),
        FieldWords("Columns", "empty cells, NA, NULL, NaN, #N/A and the like are known", placeholder="none"),
        _of_model("data", "speed", "memory"),
        only_for=purposes.TABLES,
    )
    # Time series

    time: str = _field(
        "",
        FieldSpec("Column that orders a time series", str, example="date"),
        FieldWords(
            "Time series", "the order of the rows counts only in a time series", placeholder="none", metavar="COLUMN"
        ),
        _of_model("data", "speed", "memory", fixed=_OTHER_EXAMPLES),
        only_for=purposes.ROWS_IN_ORDER,
    )
    window: int | None = _field(
        None,
        FieldSpec(
            "Steps of a series, samples of a sound or tokens of a text in one example",
            int,
            minimum=1,
            optional=True,
            example="24",
        ),
        FieldWords(
            "Time series",
            "a row is an example, unless the data is a text or a series",
            synonyms=("sequence_length", "context"),
        ),
        _of_model("data", "speed", "memory"),
        only_for=purposes.WINDOWS,
    )
    horizon: int = _field(
        1,
        FieldSpec("Steps of a time series to predict", int, minimum=1),
        FieldWords("Time series", "the next step", synonyms=("forecast", "sequence_stride")),
        _of_model("data", "speed", "memory", fixed=_OTHER_EXAMPLES),
        needs=_SERIES,
        only_for=purposes.FORECASTS,
    )
    group: str = _field(
        "",
        FieldSpec("Column that tells several time series apart", str, example="station"),
        FieldWords("Time series", "all rows are one series", placeholder="none", metavar="COLUMN"),
        _of_model("data", "speed", "memory", fixed=_OTHER_EXAMPLES),
        needs=_SERIES,
        only_for=purposes.SEVERAL_SERIES,
    )
    # Splits

    split: str = _field(
        "auto",
        FieldSpec(f"Validation examples: {', '.join(SPLITS)} or column:NAME", str, example="stratified"),
        FieldWords(
            "Splits",
            "the data's own split if it has one, else a random one",
            suggestions=(*((split, "") for split in SPLITS), ("column:", "")),
        ),
        _of_model("data", "speed", "memory", fixed=_OTHER_EXAMPLES),
        check_form=check_split,
        only_for=purposes.UNSPLIT_DATA,
    )
    validation_split: float = _field(
        0.1,
        FieldSpec("Share of the examples for validation, unless the data is split", float, above=0, maximum=0.9),
        FieldWords(
            "Splits",
            "enough to see overfitting, and 9 of 10 examples to train on",
            label="val split",
            synonyms=("holdout", "val"),
            next=4,
        ),
        _of_model("data", "speed", "memory", fixed=_OTHER_EXAMPLES),
        only_for=purposes.SPLIT_OFF_VALIDATION,
    )
    test_split: float = _field(
        0.0,
        FieldSpec("Share of the examples that training never sees", float, minimum=0, maximum=0.9),
        FieldWords("Splits", "validation is enough, unless you choose among many runs", synonyms=("holdout",)),
        _of_model("data", "speed", "memory", fixed=_OTHER_EXAMPLES),
        contradictions=(contradicts("split", "none", "needs another split than ", FieldValue("split", "none")),),
        only_for=purposes.UNTESTED_DATA,
    )
    split_seed: int | None = _field(
        None,
        FieldSpec("Random seed for the splits; default: the seed", int, minimum=0, maximum=2**31 - 1, optional=True),
        FieldWords(
            "Splits",
            "another seed is another split, unless runs are to be compared",
            synonyms=("random_state", "shuffle"),
        ),
        _of_model("data", fixed=_OTHER_EXAMPLES),
        only_for=purposes.UNSPLIT_DATA,
    )
    validation_data: str = _field(
        "",
        FieldSpec("File or folder with the validation examples", str, example="valid.csv"),
        FieldWords(
            "Splits",
            "a part of the training examples is enough",
            label="val data",
            placeholder="none",
            metavar="PATH",
            synonyms=("val",),
            takes_files=True,
        ),
        _of_model("data", "speed", "memory", fixed=_OTHER_EXAMPLES),
        only_for=purposes.OTHER_VALIDATION,
    )
    # Epochs, batches

    epochs: int = _field(
        10,
        FieldSpec("Number of epochs", int, minimum=1),
        FieldWords(
            "Epochs, batches", "a first look; with patience you can set many more", synonyms=("passes",), first=(1, 1)
        ),
        _of_training("steps", changed_by="continuation"),
    )
    batch_size: int = _field(
        64,
        FieldSpec("Global batch size: examples per step over all replicas", int, minimum=1),
        FieldWords(
            "Epochs, batches",
            "fits most memories; raise it to keep a GPU or TPU busy",
            synonyms=("bs", "batch", "global batch", "minibatch"),
            first=(1, 2),
        ),
        _of_model("speed", "memory", "learning", "steps"),
    )
    steps_per_epoch: int | None = _field(
        None,
        FieldSpec("Steps per epoch; default: all the data", int, minimum=1, optional=True),
        FieldWords("Epochs, batches", "each epoch uses every training example once", placeholder="all the data"),
        _of_training("steps"),
    )
    micro_batches: int | None = _field(
        None,
        FieldSpec(
            "Micro-batches per step (gradient accumulation), to save memory", int, minimum=1, optional=True, example="4"
        ),
        FieldWords(
            "Epochs, batches",
            "the batch is not split unless memory or the strategy asks",
            label="micro-batches",
            synonyms=("gradient_accumulation_steps", "accumulate", "grad"),
        ),
        _of_training("memory", "speed", "steps", changed_by="continuation", is_autotuned=True),
    )
    remat: str = _field(
        "auto",
        FieldSpec(
            "Recompute activations for the gradients, to save memory (rematerialization)",
            str,
            choices=task_choices.REMAT_MODES,
        ),
        FieldWords(
            "Epochs, batches",
            "it takes more time, so only where memory would not suffice",
            label="rematerialize",
            synonyms=("RematScope", "gradient checkpointing", "recompute_grad", "activation checkpointing", "oom"),
        ),
        _of_training("memory", "speed", changed_by="continuation"),
    )
    remat_layers: tuple[str, ...] = _field(
        (),
        FieldSpec(
            "Layers to recompute: names, with * for any text; default: chosen by size",
            tuple,
            optional=True,
            example="block1_*,block2_*",
        ),
        FieldWords(
            "Epochs, batches",
            "parts that save the most memory",
            placeholder="by size",
            synonyms=("layer_names", "gradient checkpointing"),
        ),
        _of_training("memory", "speed", changed_by="continuation"),
        needs=one_of("remat", "on", what="rematerialization"),
        contradictions=(
            contradicts("strategy", "pipeline", "not under pipeline, whose stages compute all their layers again"),
        ),
    )
    optimizer_state: str = _field(
        "device",
        FieldSpec(
            "Where the optimizer's state is: on each device, divided, or in host memory",
            str,
            choices=task_choices.STATE_PLACES,
        ),
        FieldWords(
            "Epochs, batches",
            "elsewhere, it or the new weights are sent in each step",
            synonyms=("ZeRO", "offload", "cpu_offload", "shard", "FSDP", "oom"),
        ),
        _of_training("memory", "speed", changed_by="continuation", replaced_by="train_step"),
        contradictions=(
            contradicts("xla", "on", "needs ", FieldValue("xla", "off"), ": XLA cannot move the state between devices"),
        ),
        only_for=purposes.STATE_ELSEWHERE,
    )
    last_batch: str = _field(
        "keep",
        FieldSpec("The last, smaller batch of an epoch", str, choices=task_choices.LAST_BATCHES),
        FieldWords("Epochs, batches", "no example is left out", synonyms=("drop_remainder", "drop_last")),
        _of_training("learning", "speed", "memory", "steps"),
        only_for=purposes.OWN_WORK,
    )
    shuffle: str = _field(
        "on",
        FieldSpec("Shuffle the training examples in each epoch", str, choices=("on", "off")),
        FieldWords("Epochs, batches", "batches in the order of the data often train worse"),
        _of_training("learning"),
        only_for=purposes.OWN_WORK,
    )
    seed: int = _field(
        0,
        FieldSpec("Random seed for weights, shuffling and dropout", int, minimum=0, maximum=2**31 - 1),
        FieldWords(
            "Epochs, batches",
            "the same plan starts from the same weights and order",
            synonyms=("random_state", "set_random_seed", "deterministic"),
            next=8,
        ),
        _of_model("learning", fixed=_LUCKY),
    )
    deterministic: str = _field(
        "off",
        FieldSpec(
            "Compute the same on the same machine each time; slower",
            str,
            choices=("on", "off"),
        ),
        FieldWords(
            "Epochs, batches",
            "sums in any order are faster, and differ in the last digits",
            synonyms=("enable_op_determinism", "reproducible", "TF_DETERMINISTIC_OPS"),
        ),
        _of_training("speed", changed_by="continuation"),
        contradictions=(
            contradicts("strategy", "parameter-server", "parameter-server takes steps in no order: leave it out"),
        ),
    )
    # Loss, metrics

    loss: str = _field(
        "auto",
        FieldSpec(
            "Loss; auto is the compiled model's own, else it follows from the task",
            str,
            choices=task_choices.LOSSES,
            aliases=task_choices.LOSS_ALIASES,
        ),
        FieldWords(
            "Loss, metrics",
            "the usual one of the task, if the model has none",
            synonyms=("objective", "criterion", "crossentropy", "mse", "mae", "bce"),
            next=2,
        ),
        _of_model("learning", "loss", "speed", "memory", replaced_by="train_step", fits_tasks=True),
    )
    label_smoothing: float = _field(
        0.0,
        FieldSpec("Label smoothing of a crossentropy loss", float, minimum=0, maximum=0.9, example="0.1"),
        FieldWords("Loss, metrics", "targets stay as they are", synonyms=("regularization",), next=11),
        _of_model("learning", "loss", "speed", changed_by="continuation", replaced_by="train_step", fits_tasks=True),
        needs=one_of("loss", *task_choices.SMOOTHED, "auto", what=f"the loss {' or '.join(task_choices.SMOOTHED)}"),
        only_for=purposes.CLASSES,
    )
    class_weight: tuple[str, ...] = _field(
        (),
        FieldSpec(
            "Weights of classes in the loss: balanced or CLASS=WEIGHT",
            tuple,
            optional=True,
            none_word="none",
            example="balanced",
        ),
        FieldWords(
            "Loss, metrics",
            "each example counts alike",
            metavar="CLASS=X",
            synonyms=("imbalanced", "balance", "sample_weight"),
            suggestions=(("balanced", "by the number of examples of each class"),),
        ),
        _of_model("learning", "loss", "speed"),
        only_for=purposes.WEIGHTED_CLASSES,
    )
    metrics: tuple[str, ...] = _field(
        (),
        FieldSpec(
            "Metrics to measure besides the model's own",
            tuple,
            choices=task_choices.METRICS,
            aliases=task_choices.METRIC_ALIASES,
            optional=True,
            none_word="none",
            has_words=True,
            example="precision,recall",
        ),
        FieldWords(
            "Loss, metrics",
            "the usual ones of the task show most",
            placeholder="the model's",
            synonyms=("accuracy", "auc", "f1", "precision", "recall", "iou"),
        ),
        _of_model("report", "speed", "memory", fixed=_OTHER_FIGURE, replaced_by="train_step", fits_tasks=True),
    )
    monitor: str = _field(
        "",
        FieldSpec(
            "Metric of early stopping and the best checkpoint, such as validation_loss", str, example="validation_loss"
        ),
        FieldWords(
            "Loss, metrics",
            "the usual one of the task, such as accuracy",
            placeholder="auto",
            synonyms=("val_loss", "val_accuracy"),
            suggestions=tuple((name, "") for name in ("validation_loss", "validation_accuracy", "loss", "accuracy")),
        ),
        _of_model("report", changed_by="continuation", fixed=_OTHER_FIGURE, fits_tasks=True),
    )
    monitor_mode: str = _field(
        "auto",
        FieldSpec(
            "Whether the monitored metric is best at its lowest (min) or highest (max)",
            str,
            choices=("auto", "min", "max"),
        ),
        FieldWords("Loss, metrics", "follows from the metric: highest accuracy, lowest loss"),
        _of_model("report", changed_by="continuation", fixed=_OTHER_FIGURE),
        needs=is_set("monitor", "validation_loss", what="a monitor"),
    )
    gradient_norm: str = _field(
        "off",
        FieldSpec(
            "Record the gradient norm of every step, before clipping; layers: also by layer",
            str,
            choices=("on", "off", "layers"),
        ),
        FieldWords("Loss, metrics", "it costs a little time per step"),
        _of_training(
            "report", "speed", "memory", changed_by="continuation", fixed=_NOT_TRAINED, replaced_by="train_step"
        ),
    )
    # Optimizer

    optimizer: str = _field(
        "auto",
        FieldSpec("Optimizer; auto is the compiled model's own, else adam", str, choices=task_choices.OPTIMIZERS),
        FieldWords(
            "Optimizer", "adam needs the least tuning", synonyms=("adam", "sgd", "solver", "opt", "optim"), next=0
        ),
        _of_training("learning", "speed", "memory", replaced_by="optimizers"),
    )
    learning_rate: float | None = _field(
        None,
        FieldSpec("Learning rate; default: the optimizer's own", float, above=0, optional=True),
        FieldWords(
            "Optimizer",
            "the built-in model's, else the optimizer's in Keras",
            synonyms=("lr", "eta", "step size", "ReduceLROnPlateau"),
            first=(1, 3),
        ),
        _of_training("learning", changed_by="command"),
    )
    rate_scaling: str = _field(
        "none",
        FieldSpec("Scale the learning rate with the number of replicas", str, choices=task_choices.RATE_SCALINGS),
        FieldWords("Optimizer", "the learning rate is used as you give it", synonyms=("lr", "scale_lr")),
        _of_training("learning"),
        only_for=purposes.SEVERAL_DEVICES,
    )
    weight_decay: float | None = _field(
        None,
        FieldSpec(
            "Weight decay of the optimizer; default: the optimizer's own",
            float,
            minimum=0,
            optional=True,
            example="0.01",
        ),
        FieldWords(
            "Optimizer",
            "only some optimizers have one, such as adamw",
            placeholder="the optimizer's",
            synonyms=("l2", "regularization", "wd"),
        ),
        _of_training("learning", changed_by="continuation", argument="weight_decay", replaced_by="optimizers"),
    )
    momentum: float | None = _field(
        None,
        FieldSpec("Momentum of sgd or rmsprop; default: 0", float, minimum=0, below=1, optional=True, example="0.9"),
        FieldWords("Optimizer", "plain gradient descent, as in Keras; 0.9 is usual", placeholder="0"),
        _of_training("learning", "memory", argument="momentum", replaced_by="optimizers"),
        needs=one_of(
            "optimizer", *task_choices.WITH_MOMENTUM, what=f"the optimizer {' or '.join(task_choices.WITH_MOMENTUM)}"
        ),
    )
    nesterov: str = _field(
        "off",
        FieldSpec("Nesterov momentum of sgd", str, choices=("on", "off")),
        FieldWords("Optimizer", "as in Keras", synonyms=("nag",)),
        _of_training("learning", argument="nesterov", replaced_by="optimizers"),
        needs=both(
            one_of("optimizer", "sgd", what="sgd"),
            is_set("momentum", "0.9", what="momentum"),
            what="the optimizer sgd with momentum",
        ),
    )
    ema_momentum: float | None = _field(
        None,
        FieldSpec(
            "Validate and save the moving average of the weights (EMA) with this momentum",
            float,
            above=0,
            below=1,
            optional=True,
            none_word="off",
            example="0.999",
        ),
        FieldWords(
            "Optimizer",
            "the weights themselves; averaging helps most in long runs",
            label="EMA momentum",
            synonyms=("use_ema", "polyak", "swa", "averaging", "average", "SwapEMAWeights", "callbacks"),
        ),
        _of_training("learning", "speed", "memory", argument="ema_momentum", replaced_by="train_step"),
        contradictions=(
            contradicts("strategy", "central-storage", "central-storage keeps no averages of weights: use ", _MIRRORED),
        ),
    )
    clip_norm: float | None = _field(
        None,
        FieldSpec(
            "Clip the gradient of each weight to this norm", float, above=0, optional=True, none_word="off", example="1"
        ),
        FieldWords(
            "Optimizer", "needed only where gradients explode", synonyms=("clipnorm", "clipping", "gradient"), next=10
        ),
        _of_training("learning", "speed", changed_by="continuation", argument="clipnorm", replaced_by="train_step"),
        alternatives=CLIPPED_ONCE,
    )
    global_clip_norm: float | None = _field(
        None,
        FieldSpec(
            "Clip the gradients of all weights to this global norm",
            float,
            above=0,
            optional=True,
            none_word="off",
            example="1",
        ),
        FieldWords(
            "Optimizer",
            "needed only where gradients explode; 1 is usual",
            label="global clipnorm",
            synonyms=("global_clipnorm", "clipping", "gradient", "max_grad_norm"),
        ),
        _of_training(
            "learning", "speed", changed_by="continuation", argument="global_clipnorm", replaced_by="train_step"
        ),
        alternatives=CLIPPED_ONCE,
    )
    clip_value: float | None = _field(
        None,
        FieldSpec(
            "Clip each value of the gradients to this size",
            float,
            above=0,
            optional=True,
            none_word="off",
            example="0.5",
        ),
        FieldWords(
            "Optimizer",
            "clipping by norm keeps the direction of the gradient",
            synonyms=("clipvalue", "clipping", "gradient"),
        ),
        _of_training("learning", "speed", changed_by="continuation", argument="clipvalue", replaced_by="train_step"),
        alternatives=CLIPPED_ONCE,
    )
    learning_rate_factor: float = _field(
        1.0,
        FieldSpec("Multiplies the learning rate, also of a schedule", float, above=0, example="0.5"),
        FieldWords(
            "Optimizer", "the learning rate is used as you give it", label="rate factor", synonyms=("multiplier",)
        ),
        _of_training("learning", changed_by="continuation"),
    )
    # LR schedule

    schedule: str = _field(
        "auto",
        FieldSpec(
            "Learning-rate schedule; auto is the compiled model's own, else constant",
            str,
            choices=task_choices.SCHEDULES,
        ),
        FieldWords(
            "LR schedule",
            "the simplest; cosine often gives better results in long runs",
            synonyms=(
                "lr",
                "scheduler",
                "decay",
                "annealing",
                "CosineDecay",
                "LearningRateScheduler",
                "OneCycleLR",
                "ReduceLROnPlateau",
                "callbacks",
            ),
            next=1,
        ),
        _of_training("learning", "speed", replaced_by="optimizers"),
    )
    warmup: float = _field(
        0.0,
        FieldSpec(
            "Steps, or a share of all steps, in which the learning rate rises from 0",
            float,
            minimum=0,
            is_share=True,
            example="5%",
        ),
        FieldWords(
            "LR schedule",
            "needed mostly by Transformers and large batches; 5% is usual",
            synonyms=("lr", "warmup_steps", "ramp"),
        ),
        _of_training("learning"),
        check_form=interval.check_share_or_steps,
        needs=one_of("schedule", "cosine", *task_choices.SCHEDULES[1:], what="a schedule"),
    )
    final_rate: float | None = _field(
        None,
        FieldSpec(
            "Last learning rate, as a share of the highest; default: 0, exponential 0.01",
            float,
            minimum=0,
            maximum=1,
            is_share=True,
            optional=True,
            example="0.01",
        ),
        FieldWords(
            "LR schedule",
            "a share of the highest rate, by the schedule",
            placeholder="auto",
            synonyms=("lr", "alpha", "end_learning_rate", "eta_min", "decay"),
        ),
        _of_training("learning"),
        needs=one_of("schedule", "cosine", *task_choices.DECAYING, what="a schedule other than constant and steps"),
        contradictions=(Contradiction(_ends_at_zero, ("must be above 0 for an exponential schedule",)),),
    )
    rate_drops: tuple[str, ...] = _field(
        ("50%", "75%"),
        FieldSpec(
            "Steps, or shares of all steps, at which schedule steps lowers the rate",
            tuple,
            has_words=True,
            example="1000,2000",
        ),
        FieldWords(
            "LR schedule",
            "halfway and at three quarters of the run",
            synonyms=("lr", "milestones", "boundaries", "PiecewiseConstantDecay", "MultiStepLR"),
        ),
        _of_training("learning"),
        check_form=interval.check_drops,
        needs=_DROPS,
    )
    rate_drop_factor: float = _field(
        0.1,
        FieldSpec("Factor of the learning rate at each drop of schedule steps", float, above=0, below=1),
        FieldWords(
            "LR schedule",
            "a tenth, as is usual for image models",
            label="drop factor",
            synonyms=("lr", "gamma", "decay_rate"),
        ),
        _of_training("learning"),
        needs=_DROPS,
    )
    # Augmentation

    augmentation: tuple[str, ...] = _field(
        (),
        FieldSpec(
            "Random changes of training images: light, strong, or their parts",
            tuple,
            choices=task_choices.AUGMENTATIONS,
            optional=True,
            none_word="none",
            has_words=True,
            example="flip,crop",
        ),
        FieldWords(
            "Augmentation",
            "your data may not allow it: a flipped 6 is no 6",
            synonyms=("augment", "RandomFlip", "RandAugment", "MixUp", "CutMix"),
            next=3,
        ),
        _of_training("learning", "speed", "memory", fits_tasks=True),
        contradictions=(
            contradicts(
                "strategy",
                "central-storage",
                "central-storage cannot update the state of random layers on several devices: use ",
                _MIRRORED,
            ),
        ),
        only_for=purposes.IMAGES,
    )
    # Fine-tuning

    initial_weights: str = _field(
        "",
        FieldSpec("Weights to start from: imagenet, a run, FILE.keras or FILE.weights.h5", str, example="imagenet"),
        FieldWords(
            "Fine-tuning",
            "random weights, by the seed",
            placeholder="random",
            synonyms=("pretrained", "transfer learning", "load_weights", "imagenet", "checkpoint"),
            suggestions=(("imagenet", "if the model has such weights"),),
            takes_files=True,
        ),
        _of_model("learning"),
    )
    freeze: tuple[str, ...] = _field(
        (),
        FieldSpec(
            "Layers to freeze: names, with * for any text, or all-but-head",
            tuple,
            optional=True,
            none_word="none",
            example="all-but-head",
        ),
        FieldWords(
            "Fine-tuning",
            "all layers train",
            synonyms=("trainable", "frozen", "transfer learning"),
            suggestions=(("all-but-head", "only the last layers train"),),
        ),
        _of_training("learning", "speed", "memory"),
    )
    unfreeze_epoch: int | None = _field(
        None,
        FieldSpec(
            "Epoch from which the frozen layers train; default: never",
            int,
            minimum=2,
            optional=True,
            none_word="never",
            example="4",
        ),
        FieldWords(
            "Fine-tuning", "frozen layers stay as they are", synonyms=("trainable", "thaw", "transfer learning")
        ),
        _of_training("learning", "speed", "memory"),
        needs=is_set("freeze", "all-but-head", what="frozen layers"),
    )
    custom_objects: str = _field(
        "",
        FieldSpec("Python file with the custom classes and functions of a FILE.keras", str, example="layers.py"),
        FieldWords(
            "Fine-tuning",
            "Keras' own layers need no file",
            placeholder="none",
            synonyms=("custom_object_scope", "register_keras_serializable"),
            takes_files=True,
        ),
        _of_model("learning", "speed", "memory", fixed=_NOT_TRAINED),
        only_for=purposes.SAVED_MODELS,
    )
    unsafe_load: str = _field(
        "off",
        FieldSpec("Load a FILE.keras with lambda layers, which run code from the file", str, choices=("on", "off")),
        FieldWords("Fine-tuning", "a file from others could run any code", synonyms=("safe_mode", "lambda")),
        _of_model(fixed=_NOT_TRAINED),
        only_for=purposes.SAVED_MODELS,
    )
    # Validation

    validation: str = _field(
        "epoch",
        FieldSpec("Validate during training, at the end or never", str, choices=task_choices.VALIDATIONS),
        FieldWords(
            "Validation",
            "shows overfitting as soon as it begins",
            synonyms=("evaluate", "eval", "val"),
        ),
        _of_training("intervals", changed_by="continuation", fixed=_OTHER_FIGURE),
    )
    validation_every: str = _field(
        "1 epoch",
        FieldSpec("Epochs, steps or minutes between validations", str, example="500 steps"),
        FieldWords(
            "Validation", "once per pass over the data", label="val every", synonyms=("validation_freq", "eval", "val")
        ),
        _of_training("intervals", changed_by="command", fixed=_OTHER_FIGURE),
        check_form=interval.parse_interval,
        needs=one_of("validation", "epoch", what="validation during training"),
    )
    validation_steps: int | None = _field(
        None,
        FieldSpec("Batches of a validation stream to read at most", int, minimum=1, optional=True, example="100"),
        FieldWords(
            "Validation",
            "all of the stream, which must then end",
            label="val steps",
            placeholder="all the data",
            synonyms=("eval", "val"),
        ),
        _of_model("report", changed_by="continuation", fixed=_OTHER_EXAMPLES),
        needs=one_of("validation", "epoch", "end", what="validation"),
        only_for=purposes.VALIDATION_STREAMS,
    )
    # Early stopping

    patience: int | None = _field(
        None,
        FieldSpec(
            "Stop after this many validations without improvement; default: never",
            int,
            minimum=1,
            optional=True,
            none_word="never",
            example="5",
        ),
        FieldWords(
            "Early stopping",
            "the run trains all its epochs",
            synonyms=("EarlyStopping", "early stopping", "callbacks"),
            next=5,
        ),
        _of_training(changed_by="continuation"),
        needs=either(one_of("validation", "epoch", what="epoch"), _TRAINING_METRIC, what="validation during training"),
    )
    min_delta: float = _field(
        0.0,
        FieldSpec(
            "Smallest change of the monitored metric that counts as an improvement", float, minimum=0, example="0.001"
        ),
        FieldWords(
            "Early stopping", "any improvement counts", synonyms=("EarlyStopping", "early stopping", "tolerance")
        ),
        _of_training(changed_by="continuation"),
        needs=either(
            is_set("patience", "5", what="patience"),
            one_of("restore_best", "on", what="restore best"),
            what="patience or restore best",
        ),
    )
    restore_best: str = _field(
        "off",
        FieldSpec(
            "Save the model with the weights of its best validation, not the last ones", str, choices=("on", "off")
        ),
        FieldWords(
            "Early stopping",
            "the model of the last epoch, as with Keras' fit",
            synonyms=("restore_best_weights", "save_best_only", "EarlyStopping", "ModelCheckpoint", "callbacks"),
        ),
        _of_training(changed_by="continuation"),
        needs=either(one_of("validation", "epoch", "end", what="epoch"), _TRAINING_METRIC, what="validation"),
    )
    time_limit: str = _field(
        "",
        FieldSpec("Stop training after this time, with a checkpoint", str, example="2h"),
        FieldWords(
            "Early stopping",
            "only the epochs end the run",
            placeholder="none",
            synonyms=("timeout", "budget", "max_time"),
        ),
        _of_training(changed_by="continuation", fixed=_NOT_TRAINED),
        check_form=_check_time_limit,
    )
    # Checkpoints

    checkpoint_every: str = _field(
        "auto",
        FieldSpec("Epochs, steps or minutes between checkpoints; auto: an epoch or more", str, example="1000 steps"),
        FieldWords(
            "Checkpoints",
            "so that a crash costs little and saving slows nothing",
            label="save every",
            synonyms=("save_freq", "ModelCheckpoint", "BackupAndRestore", "callbacks"),
            next=9,
        ),
        _of_training("intervals", changed_by="command", fixed=_SET_BY_SEARCH),
        check_form=_check_checkpoints,
    )
    keep_checkpoints: int = _field(
        3,
        FieldSpec("Checkpoints to keep, besides the best one", int, minimum=1),
        FieldWords(
            "Checkpoints",
            "a few, as a broken last one must not cost the run",
            label="checkpoints",
            synonyms=("max_to_keep", "ModelCheckpoint"),
        ),
        _of_training(changed_by="continuation", fixed=_SET_BY_SEARCH, in_trials=1),
    )
    on_oom: str = _field(
        "adapt",
        FieldSpec(
            "Out of memory: adapt splits batches or recomputes layers; fail ends the run",
            str,
            choices=task_choices.OUT_OF_MEMORY_ACTIONS,
        ),
        FieldWords(
            "Checkpoints",
            "the effective batch, the schedule and the steps stay the same",
            synonyms=("oom", "out of memory", "ResourceExhaustedError", "micro-batches"),
        ),
        _of_training(changed_by="continuation", fixed=_SET_BY_SEARCH, in_trials="fail"),
    )
    on_nan: str = _field(
        "rollback",
        FieldSpec(
            "NaN or exploding loss: return to a checkpoint, skip the batch, stop or go on",
            str,
            choices=task_choices.NOT_A_NUMBER_ACTIONS,
        ),
        FieldWords(
            "Checkpoints",
            "the steps after it would be wasted",
            synonyms=("nan", "TerminateOnNaN", "infinite", "diverged", "exploding", "callbacks"),
        ),
        _of_training(changed_by="continuation", in_trials="stop"),
    )
    skip_steps: tuple[str, ...] = _field(
        (),
        FieldSpec(
            "Steps without an update, counted from 0, to skip their batches", tuple, optional=True, example="120,348"
        ),
        FieldWords("Checkpoints", "every batch trains the model", synonyms=("skip batch", "bad batch")),
        _of_training(changed_by="continuation"),
        check_form=interval.check_step_numbers,
        contradictions=(
            contradicts("strategy", "parameter-server", "parameter-server takes steps in no order: leave it empty"),
        ),
    )
    keep_alive: str = _field(
        "off",
        FieldSpec("Start a lost or failed engine again from its last checkpoint", str, choices=("on", "off")),
        FieldWords(
            "Checkpoints",
            "a failed run may fail again",
            synonyms=("restart", "preemption", "spot", "BackupAndRestore", "PreemptionCheckpointHandler", "callbacks"),
        ),
        _of_training(changed_by="continuation", fixed=_SET_BY_SEARCH),
    )
    preemption_notice: str = _field(
        OFF,
        FieldSpec(
            "Save and stop before a cloud takes this machine away",
            str,
            choices=(OFF, AUTO, *PROVIDERS),
        ),
        FieldWords(
            "Checkpoints",
            "sends requests that only machines of a cloud need",
            label="preemption",
            synonyms=("spot", "preemptible", "eviction", "interruption", "metadata"),
        ),
        _of_training(changed_by="continuation", fixed=_SET_BY_SEARCH),
        contradictions=(
            Contradiction(
                lambda plan: plan.isolate_workers == "on" and plan.local_workers > 0,
                (
                    "the cloud cannot be asked from the workers' own network: use ",
                    FieldValue("isolate_workers", "off"),
                ),
            ),
        ),
    )
    tensorboard: str = _field(
        "off",
        FieldSpec("Write TensorBoard logs to the run's directory", str, choices=("on", "off")),
        FieldWords(
            "Checkpoints",
            "the run already has its curves; needed for TensorBoard only",
            synonyms=("logs", "event files", "callbacks"),
        ),
        _of_training("report", changed_by="continuation", fixed=_SET_BY_SEARCH),
    )
    # Devices

    strategy: str = _field(
        "default",
        FieldSpec("Distribution strategy", str, example="mirrored"),
        FieldWords(
            "Devices",
            "one device needs no communication",
            synonyms=("distribute", "distributed", "multi-gpu", "MirroredStrategy"),
            catalogue="accel_engine.strategies",
            first=(1, 4),
        ),
        _of_training("speed", "memory", "steps", changed_by="continuation"),
    )
    devices: tuple[str, ...] = _field(
        (),
        FieldSpec(
            "Devices to train on; default: all that the strategy can use",
            tuple,
            optional=True,
            example="gpu:0",
            has_words=True,
        ),
        FieldWords(
            "Devices",
            "what the strategy can use",
            placeholder="auto",
            metavar="ID",
            synonyms=("device", "gpu", "gpus", "cpu", "CUDA_VISIBLE_DEVICES"),
            first=(1, 5),
        ),
        _of_training("speed", "memory", "steps", changed_by="continuation", fixed=_SET_BY_QUEUE),
        only_for=purposes.NO_TPU,
    )
    stages: tuple[str, ...] = _field(
        (),
        FieldSpec(
            "First layer of each stage but the first; default: stages of about one size",
            tuple,
            optional=True,
            example="block3_conv,head",
        ),
        FieldWords(
            "Devices",
            "the largest part of the model is as small as possible",
            placeholder="by size",
            metavar="LAYER",
            synonyms=("pipeline", "model parallelism", "layer_names", "GPipe"),
        ),
        _of_training("memory", "speed", changed_by="continuation"),
        needs=one_of("strategy", "pipeline", what="a pipeline"),
        only_for=purposes.PIPELINES,
    )
    virtual_cpus: int = _field(
        1,
        FieldSpec("Number of virtual CPUs (logical devices of the CPU)", int, minimum=1, maximum=64),
        FieldWords(
            "Devices", "several are only for trying a strategy out", label="virtual CPUs", synonyms=("logical devices",)
        ),
        _of_training("speed", "memory", "steps", changed_by="continuation"),
        only_for=purposes.LOGICAL_CPUS,
    )
    precision: str = _field(
        "auto",
        FieldSpec(
            "Numeric precision; auto is mixed_bfloat16 on a TPU, else float32", str, choices=task_choices.PRECISIONS
        ),
        FieldWords(
            "Devices",
            "float32 is safest; mixed precision is faster on GPUs",
            synonyms=("dtype", "dtype_policy", "fp16", "bf16", "amp", "mixed precision"),
            next=6,
        ),
        _of_model("speed", "memory", "learning"),
    )
    tf32: str = _field(
        "on",
        FieldSpec(
            "Round factors of float32 products: TF32 on GPUs, bfloat16 on TPUs",
            str,
            choices=("on", "off"),
        ),
        FieldWords(
            "Devices",
            "TensorFlow's own; several times faster, with factors of 10 bits",
            label="TF32",
            synonyms=("enable_tensor_float_32_execution", "TensorFloat-32", "NVIDIA_TF32_OVERRIDE"),
        ),
        _of_training("speed", "learning", changed_by="continuation"),
        only_for=purposes.REDUCED_FLOAT32,
    )
    force: str = _field(
        "off",
        FieldSpec(
            "Allow mixed_float16 on a CPU, which is slow, and XLA on a GPU too new for it", str, choices=("on", "off")
        ),
        FieldWords("Devices", "float16 is far slower than float32 on CPUs"),
        _of_training(changed_by="continuation", fixed=_NOT_TRAINED),
        only_for=purposes.FORCED,
    )
    xla: str = _field(
        "auto",
        FieldSpec(
            "Compile the steps with XLA; auto: if that is measured to be faster", str, choices=task_choices.XLA_MODES
        ),
        FieldWords(
            "Devices",
            "it is not always faster, and compiling takes time",
            label="XLA",
            synonyms=("jit", "jit_compile", "compile"),
            next=7,
        ),
        _of_training("speed", "memory", changed_by="continuation", is_autotuned=True),
    )
    layer_kernels: str = _field(
        "auto",
        FieldSpec("Faster kernels of some layers and optimizers; off: Keras' own", str, choices=("auto", "off")),
        FieldWords(
            "Devices",
            "faster than Keras' own on the CPUs where they are used",
            label="Layer kernels",
            synonyms=("onednn", "convolution", "pooling", "LSTM"),
        ),
        _of_training("speed", "memory", changed_by="continuation"),
        only_for=purposes.LAYER_KERNELS,
    )
    threads: int | None = _field(
        None,
        FieldSpec(
            "Threads per operation on a CPU; auto: TensorFlow's own, or the fastest known",
            int,
            minimum=1,
            maximum=1024,
            optional=True,
            example="1",
        ),
        FieldWords(
            "Devices",
            "TensorFlow's own, unless earlier runs were faster with another",
            synonyms=("intra_op_parallelism_threads", "TF_NUM_INTRAOP_THREADS", "cores"),
        ),
        _of_training("speed", "memory", changed_by="continuation", is_autotuned=True),
        only_for=purposes.CPUS,
    )
    reduction: str = _field(
        "auto",
        FieldSpec("All-reduce algorithm for gradients", str, choices=task_choices.REDUCTIONS),
        FieldWords("Devices", "TensorFlow chooses for the devices", synonyms=("all-reduce", "cross_device_ops")),
        _of_training("speed", "memory", changed_by="continuation"),
        only_for=purposes.REDUCTIONS,
    )
    local_workers: int = _field(
        0,
        FieldSpec("Number of worker processes on this machine", int, minimum=0, maximum=64),
        FieldWords("Devices", "no further processes", synonyms=("workers", "processes", "TF_CONFIG")),
        _of_training("speed", "memory", "steps", changed_by="continuation", fixed=_SET_BY_QUEUE),
        only_for=purposes.LOCAL_WORKERS,
    )
    isolate_workers: str = _field(
        "auto",
        FieldSpec(
            "Hide local workers from the network; auto: unless code or data may need it",
            str,
            choices=("auto", "on", "off"),
        ),
        FieldWords(
            "Devices",
            "TensorFlow's ports let anyone who can connect run code",
            synonyms=("network namespace", "ports", "security"),
        ),
        _of_training(changed_by="continuation", fixed=_SET_BY_QUEUE),
        needs=is_set("local_workers", "2", what="local workers"),
        only_for=purposes.LOCAL_WORKERS,
    )
    tpu: str = _field(
        "",
        FieldSpec("TPU: local, grpc://HOST:8470 or a name; default: from the environment", str, example="local"),
        FieldWords("Devices", "set by the environment on Cloud TPUs", label="TPU", placeholder="auto"),
        _of_training("speed", "memory", "steps", changed_by="continuation", fixed=_SET_BY_QUEUE),
        only_for=purposes.TPUS,
    )
    memory_growth: str = _field(
        "on",
        FieldSpec("Allocate GPU memory as needed, not all at once", str, choices=("on", "off")),
        FieldWords("Devices", "leaves memory to other programs", synonyms=("set_memory_growth", "gpu memory")),
        _of_training("speed", "memory", changed_by="continuation"),
        only_for=purposes.GPUS,
    )
    memory_limit: float | None = _field(
        None,
        FieldSpec("Memory limit of each GPU in GiB; default: all", float, above=0, optional=True, none_word="all"),
        FieldWords("Devices", "all of it, as it is needed", synonyms=("gpu memory", "oom")),
        _of_training("memory", "speed", changed_by="continuation", fixed=_SET_BY_QUEUE),
        only_for=purposes.GPUS,
    )


SPECS: dict[str, FieldSpec] = {item.name: item.metadata["spec"] for item in fields(PlanFields)}
"""Specifications by field name, in the order of the form."""

WORDS: dict[str, FieldWords] = {item.name: item.metadata["words"] for item in fields(PlanFields)}
"""The words about each field."""

USES: dict[str, FieldUse] = {item.name: item.metadata["use"] for item in fields(PlanFields)}
"""What each field does."""

RULES: dict[str, FieldRules] = {item.name: item.metadata["rules"] for item in fields(PlanFields)}
"""What each field needs, what contradicts it, and what it is for."""

DEFAULTS: dict[str, Any] = {item.name: item.default for item in fields(PlanFields)}
"""Defaults by field name."""

GROUPS: dict[str, tuple[str, ...]] = {
    group: tuple(name for name, words in WORDS.items() if words.group == group)
    for group in dict.fromkeys(words.group for words in WORDS.values())
}
"""The fields by group, in the order of the form and of the help."""


def affecting(effect: Effect) -> frozenset[str]:
    """The fields that change something of each step."""
    return frozenset(name for name, use in USES.items() if effect in use.affects)


def fields_called(word: str) -> list[str]:
    """The fields for which Keras or others have this word."""
    return [name for name, words in WORDS.items() if word in words.synonyms]


PATH_FIELDS = tuple(name for name, words in WORDS.items() if words.takes_files)
"""The fields that may have the path of a file or a folder, perhaps with a function after a colon."""

RUN_TEXTS = tuple(name for name, words in WORDS.items() if words.tells_runs_apart)
"""The fields by which runs are told apart."""
