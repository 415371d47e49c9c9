"""Kinds of training after the titles of Keras' code examples: the rows of docs/what-trains.md.

Each row is a command for the files of ``gallery/`` and those that its ``make_files.py`` writes.
"""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accel_engine.plan import SPECS, Plan

GALLERY = Path(__file__).with_name("gallery")
"""The user's files."""


@dataclass(frozen=True)
class Row:
    """A kind of training.

    Attributes:
        title: Its name.
        options: The options of ``accel-tui train``.
        metric: A metric at the end of the run, such as ``validation_loss``; or a series of all steps.
        at_least: Lower bound of the metric.
        at_most: Upper bound.
    """

    title: str
    options: str
    metric: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def name(self) -> str:
        """The name of the file with the model."""
        return self.options.split()[1].partition(".")[0]

    @property
    def command(self) -> str:
        """What a user types."""
        return f"accel-tui train {self.options}"

    @property
    def reaches(self) -> str:
        """The bound, as the document has it."""
        sign, bound = ("≥", self.at_least) if self.at_least is not None else ("≤", self.at_most)
        return f"`{self.metric}` {sign} {bound:g}"

    @property
    def plan(self) -> Plan:
        """The plan that the command trains; made in the folder with the files."""
        words = iter(shlex.split(self.options))
        values: dict[str, Any] = {}
        for option in words:
            name = option.removeprefix("--").replace("-", "_")
            values[name] = SPECS[name].parse(name, next(words))
        return Plan.from_mapping(values).absolute()

    def check(self, value: float) -> None:
        """Fail if the metric's value is worse than the bound."""
        assert self.at_least is None or value >= self.at_least, f"{self.metric} {value} < {self.at_least}"
        assert self.at_most is None or value <= self.at_most, f"{self.metric} {value} > {self.at_most}"


@dataclass(frozen=True)
class Section:
    """Rows about one kind of data."""

    title: str
    rows: tuple[Row, ...]


def _own(file: str, options: str = "--epochs 3") -> str:
    """Options for a file with both functions."""
    return f"--model {file}.py:build --data {file}.py:load {options}"


SECTIONS = (
    Section(
        "Images",
        (
            Row(
                "Simple MNIST convnet",
                "--model mnist_convnet.py:build --data digits --epochs 3",
                "validation_accuracy",
                0.9,
            ),
            Row(
                "Image classification from scratch",
                "--model image_classification.py:build --data shapes --batch-size 16 --epochs 5",
                "validation_accuracy",
                0.8,
            ),
            Row("Image classification via transfer learning", _own("transfer_learning"), "validation_accuracy", 0.9),
            Row(
                "Image classification with Vision Transformer",
                "--model vision_transformer.py:build --data digits --epochs 4",
                "validation_accuracy",
                0.8,
            ),
            Row(
                "Image segmentation with a U-Net",
                "--model segmentation.py:build --data scenes --batch-size 16 --epochs 6",
                "validation_accuracy",
                0.9,
            ),
            Row(
                "Autoencoder for image denoising",
                _own("denoising_autoencoder"),
                "validation_mean_absolute_error",
                at_most=0.1,
            ),
            Row(
                "Image super-resolution with sub-pixel convolutions",
                _own("super_resolution"),
                "validation_loss",
                at_most=0.05,
            ),
            Row("Keypoint detection", _own("keypoints", "--epochs 5"), "validation_mean_absolute_error", at_most=0.08),
            Row(
                "Object detection: boxes and classes",
                _own("object_detection", "--epochs 5"),
                "validation_filled_accuracy",
                0.9,
            ),
            Row("MixUp augmentation", _own("mixup", "--epochs 8"), "validation_accuracy", 0.8),
            Row("Knowledge distillation", _own("knowledge_distillation"), "validation_accuracy", 0.85),
            Row(
                "Siamese network with a contrastive loss",
                _own("siamese_contrastive", "--epochs 5"),
                "validation_accuracy",
                0.85,
            ),
            Row("Siamese network with a triplet loss", _own("siamese_triplet", "--epochs 5"), "validation_nearer", 0.9),
            Row("Metric learning for image search", _own("metric_learning", "--epochs 6"), "validation_found", 0.7),
            Row("OCR model for reading captchas", _own("captcha_ocr", "--epochs 8"), "validation_loss", at_most=3.0),
            Row("Image captioning", _own("captioning", "--epochs 5"), "validation_sparse_categorical_accuracy", 0.8),
            Row(
                "3D image classification of CT scans",
                _own("ct_scans", "--batch-size 16 --epochs 5"),
                "validation_accuracy",
                0.8,
            ),
            Row(
                "Next-frame video prediction",
                _own("next_frame", "--batch-size 16 --epochs 5"),
                "validation_loss",
                at_most=0.1,
            ),
            Row("Point cloud classification with PointNet", _own("pointnet", "--epochs 5"), "validation_accuracy", 0.9),
        ),
    ),
    Section(
        "Text",
        (
            Row(
                "Text classification from scratch",
                "--model text_classification.py:build --data reviews --epochs 5",
                "validation_accuracy",
                0.9,
            ),
            Row("Bidirectional LSTM on reviews", _own("bidirectional_lstm"), "validation_accuracy", 0.9),
            Row(
                "Text classification with Transformer",
                _own("text_transformer", "--epochs 5"),
                "validation_accuracy",
                0.85,
            ),
            Row("Multi-label text classification", _own("multi_label_text", "--epochs 5"), "validation_accuracy", 0.9),
            Row(
                "Character-level sequence-to-sequence model",
                _own("seq2seq_characters", "--epochs 4"),
                "validation_accuracy",
                0.6,
            ),
            Row(
                "Translation with a sequence-to-sequence Transformer",
                _own("translation", "--epochs 4"),
                "validation_accuracy",
                0.7,
            ),
            Row(
                "Sequence to sequence: number addition",
                _own("number_addition", "--steps-per-epoch 60 --epochs 4"),
                "validation_accuracy",
                0.6,
            ),
            Row(
                "Text generation with a miniature GPT",
                "--model mini_gpt.py:build --data story.txt --window 32 --epochs 3",
                "validation_loss",
                at_most=1.0,
            ),
            Row("Named entity recognition", _own("named_entities", "--epochs 5"), "validation_accuracy", 0.9),
            Row(
                "Text extraction: start and end of an answer",
                _own("span_extraction", "--epochs 5"),
                "validation_loss",
                at_most=1.0,
            ),
        ),
    ),
    Section(
        "Tables and recommendations",
        (
            Row(
                "Structured data classification with FeatureSpace",
                "--model feature_space.py:build --data people.csv --target income --epochs 5",
                "validation_accuracy",
                0.85,
            ),
            Row(
                "Regression of house prices",
                "--model housing.py:build --data houses.csv --target price --epochs 15",
                "validation_mean_absolute_error",
                at_most=30,
            ),
            Row("Imbalanced classification: fraud detection", _own("fraud_detection"), "validation_recall", 0.7),
            Row(
                "Wide and deep networks",
                "--model wide_and_deep.py:build --data shop.npz --epochs 5",
                "validation_accuracy",
                0.85,
            ),
            Row(
                "Collaborative filtering for film recommendations",
                _own("recommender", "--epochs 3"),
                "validation_mean_absolute_error",
                at_most=0.2,
            ),
        ),
    ),
    Section(
        "Time series",
        (
            Row(
                "Timeseries classification from scratch",
                "--model timeseries_cnn.py:build --data waves.npz --epochs 6",
                "validation_accuracy",
                0.8,
            ),
            Row(
                "Timeseries classification with Transformer",
                "--model timeseries_transformer.py:build --data waves.npz --epochs 5",
                "validation_accuracy",
                0.8,
            ),
            Row(
                "Timeseries forecasting for weather prediction",
                "--model weather.py:build --data climate.csv --time hour --target temperature --window 48 --epochs 6",
                "validation_mean_absolute_error",
                at_most=1.0,
            ),
            Row(
                "Timeseries anomaly detection with an autoencoder",
                _own("anomaly_detection", "--epochs 5"),
                "validation_loss",
                at_most=0.05,
            ),
            Row("Traffic forecasting", _own("traffic", "--epochs 5"), "validation_mean_absolute_error", at_most=0.2),
        ),
    ),
    Section(
        "Generative models",
        (
            Row("Variational autoencoder", _own("vae", "--epochs 5"), "validation_loss", at_most=35),
            Row("DCGAN", _own("dcgan", "--epochs 4"), "g_loss", at_most=3),
            Row("WGAN-GP", _own("wgan_gp", "--epochs 4"), "c_loss", at_most=0),
            Row("Conditional GAN", _own("conditional_gan", "--epochs 10"), "validation_distance", at_most=0.5),
            Row("Denoising diffusion model", _own("diffusion", "--epochs 8"), "validation_loss", at_most=0.6),
            Row("Vector-quantized VAE", _own("vq_vae", "--epochs 5"), "validation_mean_squared_error", at_most=0.06),
            Row("Density estimation with Real NVP", _own("real_nvp", "--epochs 10"), "validation_loss", at_most=2.0),
        ),
    ),
    Section(
        "Audio, graphs and training steps of your own",
        (
            Row(
                "Speaker recognition",
                "--model speaker_recognition.py:build --data voices --batch-size 16 --epochs 6",
                "validation_accuracy",
                0.9,
            ),
            Row(
                "Node classification with a graph network",
                _own("graph_nodes", "--epochs 8"),
                "validation_accuracy",
                0.85,
            ),
            Row(
                "Customizing what happens in fit",
                _own("custom_fit", "--epochs 8"),
                "validation_mean_absolute_error",
                at_most=0.1,
            ),
        ),
    ),
)
"""The sections of the document, in its order."""

ROWS = tuple(row for section in SECTIONS for row in section.rows)


def copy_gallery(folder: Path) -> None:
    """Copy the user's files to a folder, and write those that they read."""
    for file in GALLERY.glob("*.py"):
        shutil.copy(file, folder)
    # In a separate process, as it uses TensorFlow, whose devices the tests of this process may still have to choose.
    call = "import pathlib, runpy, sys; runpy.run_path(sys.argv[1])['main'](pathlib.Path(sys.argv[2]))"
    subprocess.run([sys.executable, "-c", call, str(GALLERY / "make_files.py"), str(folder)], check=True)


def document_lines() -> Iterator[str]:
    """The lines of the document's tables."""
    for section in SECTIONS:
        yield f"## {section.title}"
        yield ""
        yield "| Training | Command | Reaches |"
        yield "|---|---|---|"
        for row in section.rows:
            yield f"| [{row.title}](../tests/end_to_end/gallery/{row.name}.py) | `{row.command}` | {row.reaches} |"
        yield ""
