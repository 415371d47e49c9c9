"""The works that the benchmarks of training measure; imports neither TensorFlow nor the engine."""

from dataclasses import dataclass
from pathlib import Path

OWN = Path(__file__).parent / "training_works.py"
"""Models and data that are not in the catalogue."""


@dataclass(frozen=True)
class Work:
    """A model, its data and its batch size."""

    model: str
    data: str
    batch: int

    @property
    def is_stream(self) -> bool:
        """Whether the data is a ``tf.data.Dataset``."""
        return self.data.endswith("_stream")


# `fit` trains at least one epoch, so the slow cases have short ones.
WORKS = {
    "mlp-32": Work("mlp", "synthetic:28x28x1:10:20000", 32),
    "mlp-128": Work("mlp", "synthetic:28x28x1:10:60000", 128),
    "mlp-regularized-32": Work(f"{OWN}:regularized_mlp_model", "synthetic:28x28x1:10:20000", 32),
    "fashion-cnn-128": Work("fashion-cnn", "synthetic:28x28x1:10:12800", 128),
    "fashion-cnn-1000": Work("fashion-cnn", "synthetic:28x28x1:10:8000", 1000),
    "resnet20-128": Work("resnet20", "synthetic:32x32x3:10:640", 128),
    "tabular-128": Work(f"{OWN}:tabular_model", f"{OWN}:tabular", 128),
    "tabular-stream-128": Work(f"{OWN}:tabular_model", f"{OWN}:tabular_stream", 128),
    "lstm-32": Work(f"{OWN}:lstm_model", f"{OWN}:rows_of_images", 32),
    "gpt-32": Work(f"{OWN}:gpt_model", f"{OWN}:tokens", 32),
    "unet-32": Work(f"{OWN}:unet_model", f"{OWN}:masks", 32),
}
