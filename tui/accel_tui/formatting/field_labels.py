"""Labels and placeholders of plan fields."""

from accel_engine.plan import SPECS

_LABELS = {
    "xla": "XLA",
    "cpu_kernels": "CPU kernels",
    "micro_batches": "micro-batches",
    "virtual_cpus": "virtual CPUs",
    "tpu": "TPU",
    "validation_split": "val split",
    "validation_data": "val data",
    "validation_steps": "val steps",
    "invalid_examples": "if invalid",
}

_PLACEHOLDERS = {
    "devices": "auto",
    "steps_per_epoch": "all the data",
    "image_size": "original size",
    "features": "all others",
    "monitor": "auto",
    "validation_steps": "all the data",
    **dict.fromkeys(("name", "ignore", "time", "group", "validation_data", "class_weight"), "none"),
}


def label(name: str) -> str:
    """The label of a field, also of one that only another version has."""
    return _LABELS.get(name, name.replace("_", " "))


def placeholder(name: str) -> str:
    """The value that an empty field stands for; empty if there is none."""
    return _PLACEHOLDERS.get(name, "auto" if name in SPECS and SPECS[name].optional else "")
