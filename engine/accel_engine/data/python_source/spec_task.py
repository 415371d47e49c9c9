"""Suggests the task of a stream from the shapes and types of its arrays; without TensorFlow."""

from accel_engine.data.pixel_scaling import is_image
from accel_engine.data.structure import ArraySpec, Structure


def suggest_task(inputs: Structure, targets: Structure, class_names: tuple[str, ...]) -> str:
    """The task that specs suggest; ``auto`` where only values would tell.

    Args:
        inputs: The specs of the inputs.
        targets: The specs of the targets.
        class_names: Names of the classes; empty if there are none.
    """
    if not isinstance(targets, ArraySpec) or targets.dtype == "string":
        return "auto"
    shape, integer = targets.shape, not targets.dtype.startswith(("float", "bfloat"))
    image = isinstance(inputs, ArraySpec) and is_image(tuple(side or 8 for side in inputs.shape))
    if image and isinstance(inputs, ArraySpec) and len(shape) in (2, 3) and shape[:2] == inputs.shape[:2]:
        mask = integer and (len(shape) == 2 or shape[2] == 1) and targets != inputs
        return "segmentation" if mask else "reconstruction"
    if shape in ((), (1,)):
        if class_names:
            return "classification"
        return "auto" if integer else "regression"
    if class_names and shape == (len(class_names),):
        return "classification"
    if integer:
        return "sequence" if len(shape) == 1 else "auto"
    return "regression" if not class_names else "auto"
