"""What the fields of a plan are called, and what those stand for that are left empty."""

from accel_engine.plan import SPECS

_LABELS = {"xla": "XLA", "micro_batches": "micro-batches", "virtual_cpus": "virtual CPUs", "tpu": "TPU"}

_EMPTY = {"devices": "auto", "steps_per_epoch": "all the data", "image_size": "as they are", "name": "none"}


def label(name: str) -> str:
    """A field's name on the screen; also that of one which only another version knows."""
    return _LABELS.get(name, name.replace("_", " "))


def empty(name: str) -> str:
    """What a field stands for when it is left empty; nothing where that says it all."""
    return _EMPTY.get(name, "auto" if name in SPECS and SPECS[name].optional else "")
