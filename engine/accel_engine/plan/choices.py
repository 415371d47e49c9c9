"""The allowed values of a plan's fields, but for losses and metrics, which depend on the task."""

PRECISIONS = ("auto", "float32", "mixed_bfloat16", "mixed_float16")
XLA_MODES = ("auto", "on", "off")
REMAT_MODES = ("auto", "on", "off")
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
