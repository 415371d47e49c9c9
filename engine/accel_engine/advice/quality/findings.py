"""Makes findings of poor models, and cures that several rules have."""

from collections.abc import Sequence
from typing import Any

from accel_engine.advice.finding import Category, Confidence, Cure, Evidence, Finding, Gain
from accel_engine.advice.quality.learning import Learning
from accel_engine.plan.plan_checks import CLIPPING


def quality_finding(
    name: str,
    title: str,
    evidence: Sequence[Evidence],
    cost: str,
    cures: Sequence[Cure],
    *,
    weight: float,
    confidence: Confidence = Confidence.LIKELY,
) -> Finding:
    """A finding on a model that learns poorly; see :class:`Finding`."""
    return Finding(name, Category.QUALITY, title, tuple(evidence), confidence, cost, tuple(cures), weight)


def set_field(text: str, script: str, gain: str = "", basis: str = "", **changes: Any) -> Cure:
    """A cure that changes fields of the plan.

    Args:
        text: In words.
        script: The same in a script with Keras.
        gain: What to expect; empty if that cannot be known.
        basis: What that is based on.
        **changes: The fields with their new values.
    """
    return Cure(text, changes, script, Gain(gain, basis) if gain else None)


def rate_cure(rate: float, gain: str, basis: str) -> Cure:
    """Another learning rate, rounded to two digits."""
    rate = float(f"{rate:.2g}")
    shown = f"{rate:.2g}"
    return set_field(
        f"Use a learning rate of {shown}: --learning-rate {shown}",
        f"compile(optimizer=...(learning_rate={shown}))",
        gain,
        basis,
        learning_rate=rate,
    )


def clip_cures(learning: Learning) -> list[Cure]:
    """Limit the gradients of each step; nothing if they are limited already, as a plan has one limit at most."""
    if any(learning.settings.get(name) is not None for name in CLIPPING):
        return []
    return [
        set_field("Clip the gradients: --global-clip-norm 1", "optimizer(global_clipnorm=1.0)", global_clip_norm=1.0)
    ]


def text_cure(text: str, script: str = "") -> Cure:
    """A cure that no field of the plan has."""
    return Cure(text, {}, script)


def of_loss(learning: Learning, text: str, steps: tuple[int, int] | None = None) -> Evidence:
    """Evidence that the loss shows.

    Args:
        learning: The run.
        text: The figures.
        steps: Where; all steps by default.
    """
    return Evidence(text, learning.loss_name, steps or (learning.first, max(learning.stop, learning.first + 1)))
