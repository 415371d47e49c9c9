"""Labels and placeholders of plan fields."""

from accel_engine.plan import SPECS

_LABELS = {
    "xla": "XLA",
    "cpu_kernels": "CPU kernels",
    "micro_batches": "micro-batches",
    "virtual_cpus": "virtual CPUs",
    "tpu": "TPU",
}

_PLACEHOLDERS = {"devices": "auto", "steps_per_epoch": "all the data", "image_size": "original size", "name": "none"}


def label(name: str) -> str:
    """The label of a field, also of one that only another version has."""
    return _LABELS.get(name, name.replace("_", " "))


def placeholder(name: str) -> str:
    """The value that an empty field stands for; empty if there is none."""
    return _PLACEHOLDERS.get(name, "auto" if name in SPECS and SPECS[name].optional else "")
