"""The allowed values of a plan's fields; of losses and metrics, for which tasks."""

from collections.abc import Mapping

_OF_NUMBERS = ("mean_squared_error", "mean_absolute_error", "mean_absolute_percentage_error", "cosine_similarity")
_CROSSENTROPIES_OF_NUMBERS = ("binary_crossentropy", "binary_focal_crossentropy")
_HINGES = ("hinge", "squared_hinge")

_LOSSES_OF_CLASSES = (
    "categorical_crossentropy",
    "categorical_focal_crossentropy",
    *_CROSSENTROPIES_OF_NUMBERS,
    "categorical_hinge",
    *_HINGES,
    "dice",
    "kl_divergence",
)
_LOSSES_OF_NUMBERS = (*_OF_NUMBERS, "mean_squared_logarithmic_error", "huber", "log_cosh", "poisson")

LOSSES = ("auto", *_LOSSES_OF_CLASSES, *_LOSSES_OF_NUMBERS)
"""Keras' names of losses; class labels are encoded as each needs them."""

_ERRORS = {
    "mse": "mean_squared_error",
    "mae": "mean_absolute_error",
    "mape": "mean_absolute_percentage_error",
}

SMOOTHED = ("categorical_crossentropy", "binary_crossentropy")
"""Losses with an argument ``label_smoothing``."""

LOSS_ALIASES = {
    **_ERRORS,
    "msle": "mean_squared_logarithmic_error",
    "bce": "binary_crossentropy",
    "kld": "kl_divergence",
    "logcosh": "log_cosh",
    "sparse_categorical_crossentropy": "categorical_crossentropy",
}
"""Other names that Keras has for losses; integer labels have no separate losses here."""

_LOSSES_OF_LABELS = (*_LOSSES_OF_CLASSES, "mean_squared_error", "mean_absolute_error")

LOSSES_OF: Mapping[str, tuple[str, ...]] = {
    "classification": _LOSSES_OF_LABELS,
    "sequence": _LOSSES_OF_LABELS,
    "segmentation": _LOSSES_OF_LABELS,
    "multi-label": (*_CROSSENTROPIES_OF_NUMBERS, *_HINGES, "dice", "mean_squared_error"),
    "regression": _LOSSES_OF_NUMBERS,
    "reconstruction": (*_LOSSES_OF_NUMBERS, *_CROSSENTROPIES_OF_NUMBERS),
}
"""The losses of a model of the catalogue by task."""

_METRICS_OF_LABELS = ("accuracy", "auc", "precision", "recall", "f1_score")
_METRICS_OF_NUMBERS = (*_OF_NUMBERS, "root_mean_squared_error")

TOP_K = 5
"""The classes that :data:`TOP_K_ACCURACY` counts, the most probable ones."""

TOP_K_ACCURACY = "top_k_categorical_accuracy"

METRICS = (*_METRICS_OF_LABELS, TOP_K_ACCURACY, "mean_io_u", *_METRICS_OF_NUMBERS, "r2_score")
"""Keras' names of metrics."""

METRIC_ALIASES = {
    **_ERRORS,
    "rmse": "root_mean_squared_error",
    "acc": "accuracy",
    "sparse_categorical_accuracy": "accuracy",
    "sparse_top_k_categorical_accuracy": "top_k_categorical_accuracy",
}
"""Other names of metrics."""

METRICS_OF: Mapping[str, tuple[str, ...]] = {
    "classification": (*_METRICS_OF_LABELS, "top_k_categorical_accuracy", "mean_io_u"),
    "sequence": (*_METRICS_OF_LABELS, "mean_io_u"),
    "segmentation": (*_METRICS_OF_LABELS, "mean_io_u"),
    "multi-label": (*_METRICS_OF_LABELS, *_METRICS_OF_NUMBERS),
    "regression": (*_METRICS_OF_NUMBERS, "r2_score"),
    "reconstruction": _METRICS_OF_NUMBERS,
    "custom": (),
}
"""The metrics that a plan can name by task; a custom task has those that the model is compiled with."""

ALWAYS_MEASURED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("classification", "sequence", "segmentation", "multi-label"), ("accuracy",)),
    "regression": ("mean_absolute_error", "root_mean_squared_error", "r2_score"),
}
"""What is measured without being asked, by task; errors of numbers in the unit of the targets."""


def metric_name(name: str) -> str:
    """The name of a metric as runs have it: ``val_accuracy``, as in Keras, is ``validation_accuracy``."""
    name = name.strip()
    return f"validation_{name.removeprefix('val_')}" if name.startswith("val_") else name


def is_of_training(monitor: str) -> bool:
    """Whether a monitor is a metric of training."""
    return bool(monitor) and not metric_name(monitor).startswith("validation_")


PRECISIONS = ("auto", "float32", "mixed_bfloat16", "mixed_float16")
XLA_MODES = ("auto", "on", "off")
REMAT_MODES = ("auto", "on", "off")
STATE_PLACES = ("device", "sharded", "host")
OUT_OF_MEMORY_ACTIONS = ("adapt", "fail")
NOT_A_NUMBER_ACTIONS = ("rollback", "skip", "stop", "continue")
OPTIMIZERS = (
    "auto",
    "adam",
    "adamw",
    "nadam",
    "adamax",
    "rmsprop",
    "sgd",
    "adagrad",
    "adadelta",
    "adafactor",
    "ftrl",
    "lamb",
    "lion",
)
VALIDATIONS = ("epoch", "end", "off")
LAST_BATCHES = ("keep", "drop")
REDUCTIONS = ("auto", "nccl", "hierarchical-copy", "one-device", "ring")
RATE_SCALINGS = ("none", "linear", "square-root")
SCHEDULES = ("auto", "constant", "linear", "cosine", "exponential", "steps", "one-cycle")
WITH_MOMENTUM = ("sgd", "rmsprop")
"""Optimizers with an argument ``momentum``."""

DECAYING = ("linear", "cosine", "exponential", "one-cycle")
"""Schedules that end at ``final_rate``."""

IMAGENET = "imagenet"
"""The ``initial_weights`` that Keras downloads."""

WEIGHT_FILES = (".keras", ".weights.h5")
"""Endings of files with weights."""

AUGMENTATIONS = (
    "light",
    "strong",
    "flip",
    "vertical-flip",
    "crop",
    "rotation",
    "zoom",
    "color",
    "erasing",
    "randaugment",
    "mixup",
    "cutmix",
)
