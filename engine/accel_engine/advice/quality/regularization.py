"""Cures of overfitting."""

from typing import Any

from accel_engine.advice.finding import Cure
from accel_engine.advice.quality.findings import set_field
from accel_engine.advice.quality.learning import Learning

ADAM_RATE = 1e-3
"""Keras' default of Adam and AdamW."""

SMALLEST_SIDE = 24
"""Pixels from which images are changed at random: digits of 8x8 pixels were learned worse so, mirrored or shifted."""

SMALLEST_DECAY, LARGEST_DECAY = 1e-3, 5.0
"""Weight decays to recommend. 5 made a run of 240 steps better; 10 made one of 40 steps worse."""


def overfitting_cures(learning: Learning) -> list[Cure]:
    """Stop early and keep the best weights, then regularize."""
    settings = learning.settings
    cures = [
        set_field(
            "Stop early, and save the best weights: --patience 3 --restore-best on",
            "callbacks=[EarlyStopping(patience=3, restore_best_weights=True)]",
            "the model of the best validation",
            "the recorded validations",
            patience=3,
            restore_best="on",
        )
    ]
    if settings.get("weight_decay") is None and "Dropout" not in learning.layer_kinds:
        cures += _decay_cures(learning)
    shape = learning.built.input_shape if learning.built else None
    if _is_image(shape) and not settings.get("augmentation"):
        cures.append(
            set_field(
                "Shift training images at random: --augmentation crop (light, if mirrored images have the same class)",
                "layers.RandomTranslation(0.1, 0.1)",
                augmentation=("crop",),
            )
        )
    return cures


def _is_image(shape: tuple[int | None, ...] | None) -> bool:
    """Whether inputs are images large enough to be changed at random."""
    if shape is None or len(shape) != 3 or shape[-1] not in (1, 3):
        return False
    return min(shape[0] or 0, shape[1] or 0) >= SMALLEST_SIDE


def _decay_cures(learning: Learning) -> list[Cure]:
    """AdamW, with Adam's learning rate: another optimizer's does not fit it. Nothing for a very short run."""
    built = learning.built
    is_adam = built is not None and built.optimizer in ("Adam", "AdamW")
    rate = (learning.highest_rate if is_adam else None) or ADAM_RATE
    decay = weight_decay(rate, learning.recorded.steps)
    if decay > LARGEST_DECAY:
        return []
    changes: dict[str, Any] = {"optimizer": "adamw", "weight_decay": decay}
    if not is_adam:
        changes["learning_rate"] = rate
    options = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in changes.items())
    return [
        set_field(
            f"Decay the weights: {options}; or add Dropout to the model",
            f"layers.Dropout(0.3); keras.optimizers.AdamW({rate:g}, weight_decay={decay:g})",
            **changes,
        )
    ]


def weight_decay(rate: float, steps: int) -> float:
    """The weight decay with which weights without a gradient shrink to 1/e in a run, to one digit.

    AdamW subtracts the product of both rates in each step, and the best product depends on the number of steps (Wang
    and Aitchison, How to set AdamW's weight decay as you scale model and dataset size, 2024): 0.01 fits 100,000
    steps, and changes nothing in a few hundred.

    Args:
        rate: The learning rate.
        steps: Steps of the run.
    """
    return float(f"{max(1 / (rate * max(1, steps)), SMALLEST_DECAY):.0e}")
