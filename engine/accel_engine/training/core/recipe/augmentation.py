"""Augments the images of training steps with Keras' layers, on the device.

The layers see a batch as the model does, after scaling. Each has its own random state, which follows from the
plan's seed and is part of the checkpoints.
"""

from collections.abc import Callable
from dataclasses import dataclass

import keras
import tensorflow as tf
from keras import layers

from accel_engine.data.dataset import Dataset
from accel_engine.data.structure import ArraySpec, Batch
from accel_engine.errors import PlanError
from accel_engine.plan import Plan
from accel_engine.plan.augmentation import MIXING, augmentation_errors, augmentations_of, weights_of
from accel_engine.training.core.task import INPUTS, Task
from accel_engine.training.model_analysis.flops import UNCOUNTED

SHIFT = 1 / 8
"""The largest shift of a crop, as a share of the height and width: 4 of 32 pixels, as is common for CIFAR."""

_SEEDS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class _Images:
    """The images on which a layer's arguments depend."""

    value_range: tuple[float, float]
    """The smallest and largest value of a pixel, as the model gets it."""
    channels: int
    """Number of channels."""


def _color(images: _Images, seed: int) -> keras.Layer:
    """Changes of brightness and contrast, and where there are colors, of saturation and hue."""
    colors = {"saturation_factor": (0.4, 0.6), "hue_factor": 0.05} if images.channels == 3 else {}
    return layers.RandomColorJitter(
        images.value_range, brightness_factor=0.2, contrast_factor=0.2, seed=seed, dtype="float32", **colors
    )


# float32 also under mixed precision, so that masks and targets keep their values.
_LAYERS: dict[str, Callable[[_Images, int], keras.Layer]] = {
    "flip": lambda _, seed: layers.RandomFlip("horizontal", seed=seed, dtype="float32"),
    "vertical-flip": lambda _, seed: layers.RandomFlip("vertical", seed=seed, dtype="float32"),
    "crop": lambda _, seed: layers.RandomTranslation(SHIFT, SHIFT, interpolation="nearest", seed=seed, dtype="float32"),
    "rotation": lambda _, seed: layers.RandomRotation(15 / 360, seed=seed, dtype="float32"),
    "zoom": lambda _, seed: layers.RandomZoom(0.2, seed=seed, dtype="float32"),
    "color": _color,
    "randaugment": lambda images, seed: layers.RandAugment(images.value_range, seed=seed, dtype="float32"),
    "erasing": lambda images, seed: layers.RandomErasing(
        factor=(0.25, 0.25), value_range=images.value_range, seed=seed, dtype="float32"
    ),
    "mixup": lambda _, seed: layers.MixUp(seed=seed, dtype="float32"),
    "cutmix": lambda _, seed: layers.CutMix(seed=seed, dtype="float32"),
}
"""The layer of each part."""


class Augmentation:
    """Changes training batches at random.

    Args:
        parts: The parts, in their order.
        value_range: The smallest and largest value of a pixel, as the model gets it.
        channels: Number of channels.
        task: How targets follow from the examples.
        seed: The plan's seed. The n-th part has the seed ``seed + n``, from 1.
    """

    def __init__(
        self, parts: tuple[str, ...], value_range: tuple[float, float], channels: int, task: Task, seed: int
    ) -> None:
        self._task, images = task, _Images(value_range, channels)
        self._layers = [_LAYERS[part](images, (seed + number) % _SEEDS) for number, part in enumerate(parts, 1)]
        self._mixes = any(part in MIXING for part in parts)

    @property
    def states(self) -> tuple[keras.Variable, ...]:
        """The state of each random generator."""
        return tuple(variable for layer in self._layers for variable in layer.variables)

    def __call__(self, batch: Batch) -> Batch:
        """Change a batch; in the graph of a step.

        Args:
            batch: Images ``[batch, height, width, channels]`` and targets, as the model and its loss take them.
        """
        with tf.name_scope(UNCOUNTED):
            if self._task.name == "segmentation":
                return self._with_masks(batch)
            if self._mixes:
                return self._with_targets(batch)
            images = self._apply({"images": batch.inputs})["images"]
            images = _like(images, batch.inputs)
            return batch._replace(inputs=images, targets=images if self._task.encoding == INPUTS else batch.targets)

    def _apply(self, data: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        data = {name: tf.cast(each, tf.float32) for name, each in data.items()}
        for layer in self._layers:
            data = layer(data, training=True)
        return data

    def _with_targets(self, batch: Batch) -> Batch:
        """Mix images, and targets ``[batch]`` or ``[batch, values]``."""
        targets = tf.cast(batch.targets, tf.float32)
        flat = tf.reshape(targets, [tf.shape(targets)[0], -1])
        mixed = self._apply({"images": batch.inputs, "labels": flat})
        return batch._replace(
            inputs=_like(mixed["images"], batch.inputs),
            targets=_like(tf.reshape(mixed["labels"], tf.shape(targets)), targets),
        )

    def _with_masks(self, batch: Batch) -> Batch:
        """Move the pixels of masks ``[batch, height, width]``, or with channels, as the pixels of the images.

        So do the weights of pixels, as further channels.
        """
        targets, weights = batch.targets, batch.weights
        masks, of_pixels = _with_channels(targets), weights is not None and weights.shape.rank > 2
        parts = [masks, _with_channels(weights)] if of_pixels else [masks]
        planes = tf.concat([tf.cast(part, tf.float32) for part in parts], axis=-1)
        moved = self._apply({"images": batch.inputs, "segmentation_masks": planes})
        split = tf.split(moved["segmentation_masks"], [part.shape[-1] for part in parts], axis=-1)
        return Batch(
            _like(moved["images"], batch.inputs),
            _like(split[0], targets),
            _like(split[1], weights) if of_pixels else weights,
        )


def choose_augmentation(
    plan: Plan, dataset: Dataset, task: Task, scale: float, *, custom_step: bool
) -> Augmentation | None:
    """The augmentation of a plan; ``None`` without one. Call it in the scope of the strategy.

    Args:
        plan: The plan.
        dataset: The data.
        task: What the model learns.
        scale: The factor that raw examples are multiplied by.
        custom_step: Whether the model has a custom ``train_step``.

    Raises:
        PlanError: The augmentation does not fit the data or the model.
    """
    names, spec, largest = plan.augmentation, dataset.spec, dataset.value_range.largest
    if not names:
        return None
    if custom_step:
        reason = f"model {plan.model} has a custom train_step, whose targets are not known: augment in the model"
        raise PlanError("augmentation", names, reason)
    for error in augmentation_errors(
        names,
        task.name,
        kind=dataset.kind,
        shape=dataset.shape,
        known_range=largest is not None,
        weighted=weights_of(plan.class_weight, of_data=spec.weights is not None),
    ):
        raise error
    if task.name == "reconstruction" and task.encoding != INPUTS:
        raise PlanError("augmentation", names, "the data has images as targets, which would not change with the inputs")
    if task.name == "segmentation" and not (isinstance(spec.targets, ArraySpec) and len(spec.targets.shape) in (2, 3)):
        raise PlanError("augmentation", names, "the data has no masks of shape (height, width)")
    parts, channels = augmentations_of(names, task.name), (dataset.shape or (0,))[-1] or 0
    if "randaugment" in parts and (channels == 1 or task.name == "segmentation") and _fails_without_colors():
        reason = f"randaugment of Keras {keras.__version__} fails for images with one channel and for masks: "
        raise PlanError("augmentation", names, reason, "leave it out, or update Keras to 3.15")
    high = 1.0 if largest is None else largest * scale
    return Augmentation(parts, (0.0, high), channels, task, plan.seed)


def _fails_without_colors() -> bool:
    """Whether this is one of the versions of Keras whose RandAugment fails for images and masks with one channel."""
    major, minor = (int(part) for part in keras.__version__.split(".")[:2])
    return (3, 11) <= (major, minor) < (3, 15)


def _with_channels(masks: tf.Tensor) -> tf.Tensor:
    return masks[..., tf.newaxis] if masks.shape.rank == 3 else masks


def _like(changed: tf.Tensor, before: tf.Tensor) -> tf.Tensor:
    """A tensor with the type and the shape, which layers lose, of another one."""
    changed = tf.reshape(changed, tf.shape(before)) if changed.shape.rank != before.shape.rank else changed
    changed = tf.round(changed) if before.dtype.is_integer else changed
    return tf.ensure_shape(tf.cast(changed, before.dtype), before.shape)
