"""Whether a run still learns."""

from accel_engine.advice.poor.learning import (
    Learning,
    accuracy_name,
    block_means,
)


def is_settled(learning: Learning, limit: float = 0.1) -> bool:
    """Whether the loss has fallen by less than a share of itself over the last quarter of the steps."""
    means = block_means(learning.loss, 8)
    if len(means) < 8:
        return False
    before, now = means[4:6].mean(), means[6:].mean()
    return bool(before - now < limit * abs(now))


def accuracy_rises(learning: Learning) -> bool:
    """Whether the accuracy of training has risen by 0.05 or more in the second half."""
    means = block_means(
        learning.recorded.of(accuracy_name(learning.recorded)).between(learning.first, learning.stop), 8
    )
    return len(means) == 8 and bool(means[6:].mean() - means[3:5].mean() > 0.05)
