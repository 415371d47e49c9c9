"""Targets change with their images."""

import numpy as np
import pytest
import tensorflow as tf

from accel_engine.data.structure import Batch
from accel_engine.plan.augmentation import MIXING, PARTS
from accel_engine.training.core.recipe.augmentation import Augmentation
from accel_engine.training.core.task import INPUTS, Task

UNIT = (0.0, 1.0)


def changed(augmentation: Augmentation, batch: Batch) -> Batch:
    """A batch as a step changes it, in a graph."""
    return tf.function(augmentation, autograph=False)(batch)


@pytest.mark.parametrize("shape", [(64,), (64, 1), (64, 2)])
def test_mixup_mixes_numbers_as_their_images(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).random(64).astype(np.float32)
    images = np.broadcast_to(values[:, None, None, None], (64, 4, 4, 1))
    targets = np.broadcast_to(values.reshape(64, *[1] * (len(shape) - 1)), shape)

    mixed = changed(
        Augmentation(("mixup",), UNIT, 1, Task("regression"), 0), Batch(tf.constant(images), tf.constant(targets))
    )

    assert mixed.targets.shape == shape
    means = mixed.inputs.numpy().mean(axis=(1, 2, 3))
    np.testing.assert_allclose(mixed.targets.numpy().reshape(64, -1)[:, 0], means, atol=1e-6)
    assert np.abs(means - values).max() > 0.1


def test_cutmix_mixes_labels_by_area() -> None:
    labels = np.random.default_rng(0).integers(0, 2, (64, 3)).astype(np.float32)
    images = np.broadcast_to(labels[:, None, None, :], (64, 32, 32, 3)).copy()

    mixed = changed(
        Augmentation(("cutmix",), UNIT, 3, Task("multi-label"), 0), Batch(tf.constant(images), tf.constant(labels))
    )

    share = mixed.inputs.numpy().mean(axis=(1, 2))
    np.testing.assert_allclose(mixed.targets.numpy(), share, atol=0.1)  # a patch ends between two pixels
    assert np.abs(share - labels).max() > 0.1


@pytest.mark.parametrize("form", ["indices", "with an axis", "one-hot"])
@pytest.mark.parametrize("weighted", [False, True])
def test_masks_and_weights_of_pixels_move_with_the_image(form: str, weighted: bool) -> None:
    masks = np.random.default_rng(0).integers(0, 3, (16, 4, 4)).repeat(4, 1).repeat(4, 2).astype(np.int32)
    images = masks[..., None].astype(np.float32) / 2
    targets = {"indices": masks, "with an axis": masks[..., None], "one-hot": np.eye(3, dtype=np.float32)[masks]}[form]
    weights = tf.constant(images[..., 0]) if weighted else None
    parts = ("flip", "vertical-flip", "crop")

    moved = changed(
        Augmentation(parts, UNIT, 1, Task("segmentation"), 0),
        Batch(tf.constant(images), tf.constant(targets), weights),
    )

    assert moved.targets.dtype == targets.dtype
    assert moved.targets.shape == targets.shape
    found = moved.targets.numpy()
    classes = found.argmax(-1) if form == "one-hot" else found.reshape(masks.shape)
    np.testing.assert_array_equal(moved.inputs.numpy()[..., 0] * 2, classes)
    assert (classes != masks).any()
    if weighted:
        np.testing.assert_array_equal(moved.weights.numpy() * 2, classes)


@pytest.mark.parametrize("part", [part for part in PARTS if part not in MIXING])
@pytest.mark.parametrize("channels", [1, 3])
def test_every_part_keeps_the_range_and_the_classes_of_masks(part: str, channels: int) -> None:
    rng = np.random.default_rng(0)
    images = tf.constant((rng.random((8, 16, 16, channels)) * 255).astype(np.float32))
    masks = tf.constant(rng.integers(0, 2, (8, 16, 16)) * 200)

    moved = changed(Augmentation((part,), (0.0, 255.0), channels, Task("segmentation"), 1), Batch(images, masks))

    assert moved.inputs.shape == images.shape
    assert (moved.inputs.numpy() != images.numpy()).any()
    assert moved.inputs.numpy().min() >= 0
    assert moved.inputs.numpy().max() <= 255 + 1e-3
    assert moved.targets.dtype == masks.dtype
    assert set(np.unique(moved.targets)) == {0, 200}


def test_an_autoencoder_learns_the_changed_images_in_their_type() -> None:
    images = tf.random.stateless_uniform((8, 8, 8, 1), (1, 2), dtype=tf.float32)
    augmentation = Augmentation(("flip", "rotation"), UNIT, 1, Task("reconstruction", INPUTS), 0)

    both = changed(augmentation, Batch(images, images))

    np.testing.assert_array_equal(both.inputs, both.targets)
    assert (both.inputs.numpy() != images.numpy()).any()
    assert len(augmentation.states) == 2
