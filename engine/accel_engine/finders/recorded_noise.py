"""What a run has recorded of the noise of its gradients."""

from pathlib import Path

from accel_engine.advice import read_recorded
from accel_engine.advice.poor.learning import learning_of
from accel_engine.advice.poor.noise_rules import noise_scale


def recorded_noise_scale(directory: Path) -> float | None:
    """The batch whose noise is as large as its gradient, in examples; infinite if there is only noise.

    McCandlish et al., An Empirical Model of Large-Batch Training, 2018: up to it, a larger batch needs about as many
    fewer steps. ``None`` if the run has not recorded the norms that it follows from.

    Args:
        directory: The run's directory.

    Raises:
        RunError: There is no run, or this program cannot read it.
    """
    return noise_scale(learning_of(read_recorded(directory)))
