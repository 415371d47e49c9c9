"""The parts of a plan's ``augmentation``, and which data they fit; without TensorFlow.

:mod:`accel_engine.training.core.recipe.augmentation` has the layer of each part.
"""

from collections.abc import Iterator, Sequence

from accel_engine.data.pixel_scaling import is_image
from accel_engine.errors import FieldValue, PlanError, Words

PARTS = ("flip", "vertical-flip", "crop", "rotation", "zoom", "color", "randaugment", "erasing", "mixup", "cutmix")
"""The parts, in the order in which they change a batch."""

MIXING = {"mixup": ("classification", "multi-label", "regression"), "cutmix": ("classification", "multi-label")}
"""Parts that mix two examples and their targets, and the tasks whose targets can be mixed."""

OF_PIXELS = ("color", "randaugment", "erasing")
"""Parts that need to know the range of the images' values."""

WITHOUT_XLA = ("crop", "rotation", "zoom", "randaugment", "mixup", "cutmix")
"""Parts with operations that XLA cannot compile: ``ImageProjectiveTransformV3`` and ``StatelessRandomGammaV3``."""

TASKS = ("classification", "multi-label", "regression", "segmentation", "reconstruction")
"""Tasks whose targets stay right, or are changed with the images."""

_CHANNELS = {"color": (1, 3), "randaugment": (1, 3)}


def augmentations_of(names: Sequence[str], task: str) -> tuple[str, ...]:
    """The parts that a plan's ``augmentation`` stands for, in their order.

    ``light`` is ``flip`` and ``crop``; ``strong`` is ``light``, ``randaugment`` and, where the task allows it,
    ``cutmix``.

    Args:
        names: The plan's ``augmentation``.
        task: The task.
    """
    chosen = set(names)
    if "strong" in chosen:
        chosen |= {"light", "randaugment"} | ({"cutmix"} if task in MIXING["cutmix"] else set())
    if "light" in chosen:
        chosen |= {"flip", "crop"}
    return tuple(part for part in PARTS if part in chosen)


def mixes_targets(names: Sequence[str], task: str) -> bool:
    """Whether an augmentation mixes the targets of examples."""
    return any(part in MIXING for part in augmentations_of(names, task))


def weights_of(class_weight: Sequence[str], *, of_data: bool) -> Words:
    """Where the examples' weights are from, as parts of a message; empty if they have none.

    Args:
        class_weight: The plan's ``class_weight``.
        of_data: Whether the data has sample weights.
    """
    return (FieldValue("class_weight"),) if class_weight else ("the data's sample weights",) if of_data else ()


def augmentation_errors(
    names: Sequence[str],
    task: str,
    *,
    kind: str,
    shape: tuple[int | None, ...] | None,
    known_range: bool,
    weighted: Words,
) -> Iterator[PlanError]:
    """Yield why an augmentation does not fit the data.

    Args:
        names: The plan's ``augmentation``.
        task: The task; ``auto`` if it is unknown.
        kind: The kind of an example, as in :class:`accel_engine.data.dataset.Dataset`.
        shape: Shape of an example; ``None`` if it has several inputs.
        known_range: Whether the range of the values is known, as it is for uint8.
        weighted: Where the examples' weights are from, by :func:`weights_of`.
    """
    if not names:
        return
    for reason in _reasons(names, task, kind, shape, known_range=known_range, weighted=weighted):
        yield PlanError("augmentation", tuple(names), *reason)


def _reasons(
    names: Sequence[str],
    task: str,
    kind: str,
    shape: tuple[int | None, ...] | None,
    *,
    known_range: bool,
    weighted: Words,
) -> Iterator[Words]:
    if shape is None:
        yield ("changes one image per example; the data has several inputs",)
        return
    if kind not in ("images", "arrays") or not is_image(tuple(32 if side is None else side for side in shape)):
        found = f"arrays of shape {shape}" if kind == "arrays" else kind
        yield (f"changes images (height, width, channels); the data is {found}",)
        return
    if task not in (*TASKS, "auto"):
        yield (f"is for {', '.join(TASKS)}; the task is {task}",)
        return
    yield from mixing_reasons(names, task, weighted)
    for part in augmentations_of(names, task):
        if task not in (*MIXING.get(part, TASKS), "auto"):
            yield (f"{part} is for {' and '.join(MIXING[part])}; the task is {task}",)
        if part in OF_PIXELS and not known_range:
            yield (f"{part} needs pixels of a known range: store the images as uint8",)
        if shape[2] is not None and shape[2] not in _CHANNELS.get(part, (shape[2],)):
            yield (f"{part} takes images with 1 or 3 channels; the data has {shape[2]}",)


def mixing_reasons(names: Sequence[str], task: str, weighted: Words) -> Iterator[Words]:
    """Yield why examples cannot be mixed as an augmentation says.

    Args:
        names: The plan's ``augmentation``.
        task: The task; ``auto`` if it is unknown.
        weighted: Where the examples' weights are from, by :func:`weights_of`.
    """
    mixing = [part for part in augmentations_of(names, task) if part in MIXING]
    if mixing[1:]:
        yield ("mixup and cutmix are alternatives: choose one of them (strong contains cutmix)",)
    for part in mixing if weighted else ():
        yield (f"{part} mixes examples, whose weights cannot be mixed: leave out ", *weighted, f" or {part}")
