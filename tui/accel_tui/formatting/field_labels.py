"""Labels and placeholders of plan fields."""

from accel_engine.errors import Words, join_words
from accel_engine.plan import SPECS

_LABELS = {
    "xla": "XLA",
    "cpu_kernels": "CPU kernels",
    "micro_batches": "micro-batches",
    "remat": "rematerialize",
    "virtual_cpus": "virtual CPUs",
    "tpu": "TPU",
    "validation_split": "val split",
    "validation_data": "val data",
    "validation_steps": "val steps",
    "validation_every": "val every",
    "invalid_examples": "if invalid",
    "global_clip_norm": "global clipnorm",
    "ema_momentum": "EMA momentum",
    "learning_rate_factor": "rate factor",
    "rate_drop_factor": "drop factor",
    "checkpoint_every": "save every",
    "keep_checkpoints": "checkpoints",
    "target_latency": "target p99, s",
    "seconds": "time limit, s",
}

_PLACEHOLDERS = {
    "devices": "auto",
    "steps_per_epoch": "all the data",
    "image_size": "original size",
    "features": "all others",
    "monitor": "auto",
    "remat_layers": "by size",
    "validation_steps": "all the data",
    "metrics": "the model's",
    "weight_decay": "the optimizer's",
    "momentum": "0",
    "final_rate": "auto",
    "initial_weights": "random",
    "tpu": "auto",
    **dict.fromkeys(("name", "ignore", "time", "group", "validation_data", "custom_objects", "time_limit"), "none"),
}


def label(name: str) -> str:
    """The label of a field, also of one that only another version has; the name of a script's own setting has a dot."""
    return _LABELS.get(name, name if "." in name else name.replace("_", " "))


def placeholder(name: str) -> str:
    """The value that an empty field stands for; empty if there is none."""
    return _PLACEHOLDERS.get(name, SPECS[name].none if name in SPECS and SPECS[name].optional else "")


def word(reason: Words) -> str:
    """Join a message about plan fields, with the labels of the form."""
    return join_words(
        reason, lambda at: label(at.field) + (f" set to {at.value}" if at.value.isdigit() else f" {at.value}".rstrip())
    )
