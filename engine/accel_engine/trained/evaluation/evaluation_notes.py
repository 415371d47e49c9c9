"""What a user should know of an evaluation: where its figures or intervals do not mean what they seem to."""

from collections.abc import Iterator, Sequence

from accel_engine.data.dataset import Split
from accel_engine.trained.open_trained import TrainedModel
from accel_engine.training.core.metric_building import check_metrics
from accel_engine.training.core.recipe.metrics import second_class_note

FEWEST_BLOCKS = 20
"""Blocks of examples from which intervals are taken as they are: of fewer, resamples differ too little."""


def evaluation_notes(source: TrainedModel, left_out: Sequence[str], coupled: Sequence[str]) -> Iterator[str]:
    """Warnings for the user.

    Args:
        source: The model and its examples.
        left_out: Names of the metrics that are left out.
        coupled: Names of the metrics that depend on which examples share a batch.
    """
    if left_out:
        yield f"left out, as their states of all examples would not fit in memory: {', '.join(left_out)}"
    yield from check_metrics(source.model, source.task, source.outputs, source.dataset)
    yield from second_class_note(source.plan, source.task, source.outputs, source.dataset)
    if coupled:
        size = f" of {source.plan.batch_size:,} examples" if isinstance(source.examples, Split) else ""
        yield (
            f"{', '.join(coupled)}: computed of batches{size} as Keras does, and not the same of single examples, so "
            "without an interval and a test"
        )
    if not isinstance(source.examples, Split):
        yield "the examples of a stream are counted only: whether those of other models are the same is not known"


def block_notes(examples: int, block: int) -> Iterator[str]:
    """How examples that depend on each other were resampled.

    Args:
        examples: Their number.
        block: Examples in a row that are drawn together.
    """
    if block == 1:
        return
    yield f"windows of a series overlap: intervals and P are from blocks of {block:,} windows in a row"
    if examples < FEWEST_BLOCKS * block:
        yield f"{examples:,} windows are few such blocks: intervals and P are too small"
