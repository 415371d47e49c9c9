"""The metrics of a model on examples that training did not see; without TensorFlow."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutMetrics:
    """Metrics on some examples.

    Attributes:
        values: The metrics by Keras' names: the one that counts first, then the loss, then the others; ``None`` for
            what is not a finite number.
        split: ``test``, ``validation`` or ``training``, or the file name of other data.
        examples: Their number.
        source: The id of the run, or the file, whose data they are of.
        fingerprint: Of their targets; empty for a stream.
        is_foreign: Whether the model does not tell its run, so that its training may have seen these examples.
    """

    values: Mapping[str, float | None] = field(default_factory=dict)
    split: str
    examples: int
    source: str
    fingerprint: str
    is_foreign: bool = False

    @property
    def main(self) -> tuple[str, float | None]:
        """The name and the value of the metric that counts."""
        return next(iter(self.values.items()))

    def has_same_examples(self, other: Self) -> bool:
        """Whether both are of the same examples."""
        if self.fingerprint or other.fingerprint:
            return (self.examples, self.fingerprint) == (other.examples, other.fingerprint)
        return (self.source, self.split) == (other.source, other.split)
