"""Kinds of scripts that ``accel-tui run`` records unmodified: the rows of docs/recorded-scripts.md.

Each row is a command for a file of ``scripts/``.
"""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

SCRIPTS = Path(__file__).with_name("scripts")
"""The scripts; they know nothing of accel-tui, and write their own ``history.json``."""


@dataclass(frozen=True)
class Part:
    """A ``fit`` of a script.

    Attributes:
        name: The name of its model.
        epochs: Epochs that it completes.
        steps: Steps of an epoch.
        last_steps: Steps of an epoch that an exception ends; 0 if none does.
        last_batch: The weight of an epoch's last batch in its mean loss, in batches.
    """

    name: str
    epochs: int
    steps: int
    last_steps: int = 0
    last_batch: float = 1.0


@dataclass(frozen=True)
class Script:
    """A kind of script.

    Attributes:
        kind: What it shows.
        command: The script with its arguments, and a file for its standard input after ``<``.
        parts: Its calls of ``fit``.
        patterns: For a custom loop, the patterns of ``--parse``: each with a named group, and maybe ``step``.
        status: Its exit status.
        package: A package that it needs and accel-tui does not install.
        repeatable: Whether two runs print the same and write the same history.
        history: Where it writes its history.
    """

    kind: str
    command: str
    parts: tuple[Part, ...] = ()
    patterns: tuple[str, ...] = ()
    status: int = 0
    package: str = ""
    repeatable: bool = True
    history: str = "history.json"

    @property
    def file(self) -> str:
        """The script within the folder."""
        words = self.command.split()
        return f"{words[1]}/__main__.py" if words[0] == "-m" else words[0]

    @property
    def name(self) -> str:
        """The name of the script, with its arguments."""
        return self.command.partition(" <")[0]

    @property
    def input(self) -> str:
        """The file for standard input; empty if it reads none."""
        return self.command.partition(" < ")[2]

    @property
    def python_words(self) -> list[str]:
        """The arguments of ``python``."""
        return shlex.split(self.name)

    @property
    def run_words(self) -> list[str]:
        """The arguments of ``accel-tui``."""
        words = self.python_words
        names = 2 if words[0] == "-m" else 1
        arguments = ["--", *words[names:]] if words[names:] else []
        return [
            "run",
            *(word for pattern in self.patterns for word in ("--parse", pattern)),
            *words[:names],
            *arguments,
        ]

    @property
    def typed(self) -> str:
        """What a user types."""
        words = shlex.join(["accel-tui", *self.run_words])
        return f"{words} < {self.input}" if self.input else words

    @property
    def recorded(self) -> str:
        """What its run has, besides log and devices."""
        if self.patterns:
            return "values of its lines"
        if not self.parts:
            return "nothing else"
        parts = []
        for part, alike in groupby(self.parts, lambda part: (part.epochs, part.steps, part.last_steps)):
            count = len(list(alike))
            parts.append(("a fit" if count == 1 else f"{count} fits") + f" of {_length(*part)}")
        return ", ".join(parts)

    @property
    def trained_by(self) -> str:
        """The libraries that train it."""
        if not self.package:
            return "TensorFlow"
        library = {"jax": "JAX", "torch": "PyTorch"}[self.package]
        return f"Keras on {library}" if self.parts else library


def _length(epochs: int, steps: int, last_steps: int) -> str:
    """The length of a fit, in words."""
    whole = f"{epochs} epoch{'s' if epochs > 1 else ''} of {steps} steps" if epochs else ""
    return " and ".join(filter(None, (whole, f"{last_steps} steps" if last_steps else "")))


@dataclass(frozen=True)
class Section:
    """Rows about one subject."""

    title: str
    rows: tuple[Script, ...]


SECTIONS = (
    Section(
        "One fit",
        (
            Script(
                "MNIST convnet",
                "mnist_cnn.py --epochs 3 --batch-size 64",
                (Part("sequential", 3, 29, last_batch=1 / 8),),
            ),
            Script("Regression, silent, with a CSV log", "mlp_regression.py", (Part("sequential", 20, 15),)),
            Script("Text classification from strings", "text_classification.py", (Part("functional", 4, 25),)),
            Script("Three inputs, two outputs", "multi_input_output.py", (Part("issue_tickets", 3, 16),)),
            Script("A custom train_step", "custom_train_step.py", (Part("custom_model", 3, 17),)),
            Script("VAE", "vae.py", (Part("vae", 4, 16),)),
            Script("DCGAN", "dcgan.py", (Part("gan", 3, 20),)),
            Script("WGAN-GP", "wgan_gp.py", (Part("wgan", 4, 10),)),
            Script(
                "Siamese network, contrastive loss",
                "siamese_contrastive.py",
                (Part("functional_1", 4, 38, last_batch=1 / 2),),
            ),
            Script("Siamese network, triplet loss", "siamese_triplet.py", (Part("siamese_model", 5, 25),)),
            Script("Sequence to sequence, teacher forcing", "seq2seq_lstm.py", (Part("functional", 30, 5),)),
            Script("Transformer", "transformer_classifier.py", (Part("functional_1", 3, 25),)),
            Script(
                "Forecasts that stop early",
                "timeseries_forecasting.py",
                (Part("functional", 2, 16, last_batch=41 / 64),),
            ),
            Script("A Python generator", "generator_input.py", (Part("sequential", 4, 12),), repeatable=False),
            Script("tf.data from TFRecords, repeated", "tf_data_input.py", (Part("sequential", 4, 10),)),
            Script("Several steps per execution", "steps_per_execution.py", (Part("sequential", 4, 32),)),
            Script("XLA, accumulated gradients", "jit_compile.py", (Part("sequential", 3, 24),)),
            Script("Mixed precision", "mixed_precision.py", (Part("functional", 4, 8),)),
        ),
    ),
    Section(
        "Several fits",
        (
            Script(
                "Transfer learning: frozen, then fine-tuned",
                "transfer_learning.py",
                (Part("functional_2", 3, 8), Part("functional_2", 2, 8)),
            ),
            Script(
                "Autoencoder: clean, then noisy",
                "denoising_autoencoder.py",
                (Part("functional", 2, 8, last_batch=52 / 64), Part("functional", 3, 8, last_batch=52 / 64)),
            ),
            Script("K-fold cross-validation", "k_fold.py", (Part("sequential", 4, 13, last_batch=1 / 2),) * 3),
            Script(
                "A search over learning rates",
                "learning_rate_search.py",
                (Part("mlp_4", 3, 6), Part("mlp_16", 3, 6)) * 2,
            ),
            Script(
                "Saved, loaded and continued",
                "resume_training.py",
                (Part("sequential", 2, 16), Part("sequential", 2, 16), Part("sequential", 1, 16)),
            ),
            Script(
                "Class weights, then sample weights",
                "imbalanced.py",
                (Part("sequential", 4, 16), Part("sequential_1", 3, 16)),
            ),
            Script(
                "A fit that fails, and another try",
                "retry_on_failure.py",
                (Part("sequential", 0, 5, 2), Part("sequential_1", 3, 10)),
            ),
        ),
    ),
    Section(
        "Devices, threads and processes",
        (
            Script("MirroredStrategy", "mirrored_fit.py", (Part("sequential", 4, 12),)),
            Script(
                "PyDataset in worker processes", "pydataset_workers.py", (Part("sequential", 3, 13, last_batch=1 / 2),)
            ),
            Script(
                "Data from a forked pool", "pool_preprocessing.py --start-method fork", (Part("sequential", 3, 15),)
            ),
            Script(
                "Data from a spawned pool", "pool_preprocessing.py --start-method spawn", (Part("sequential", 3, 15),)
            ),
            Script("A fit in a thread", "fit_in_thread.py", (Part("sequential", 6, 20),)),
            Script("Each fit in a forked process", "fit_in_process.py", (Part("sequential", 3, 12),) * 2),
            Script(
                "Each fit in a spawned process",
                "fit_in_process.py --start-method spawn",
                (Part("sequential", 3, 12),) * 2,
            ),
        ),
    ),
    Section(
        "Custom loops",
        (
            Script(
                "GradientTape",
                "gradient_tape.py --epochs 2 --learning_rate 0.01",
                patterns=(r"loss=(?P<loss>[\d.]+)", r"Training acc over epoch: (?P<accuracy>[\d.]+)"),
            ),
            Script(
                "train_on_batch",
                "train_on_batch.py",
                patterns=(r"^(?P<step>\d+) \[D loss: (?P<d_loss>[\d.]+)", r"G loss: (?P<g_loss>[\d.]+)"),
            ),
            Script("MirroredStrategy", "mirrored_loop.py", patterns=(r"Loss: (?P<loss>[\d.]+)",)),
            Script("JAX", "jax_loop.py --num-epochs 4", patterns=(r"loss=(?P<loss>[\d.]+)",), package="jax"),
            Script(
                "PyTorch with a DataLoader",
                "torch_loop.py --epochs 2",
                patterns=(r"Loss: (?P<loss>[\d.]+)",),
                package="torch",
            ),
        ),
    ),
    Section(
        "Other backends of Keras",
        (
            Script("JAX", "jax_backend.py", (Part("custom_model", 3, 16), Part("sequential", 3, 12)), package="jax"),
            Script("PyTorch", "torch_backend.py", (Part("sequential", 3, 16),), package="torch"),
        ),
    ),
    Section(
        "How scripts start and end",
        (
            Script("A package", "-m wave_classifier --epochs 2", (Part("wave_classifier", 2, 15),)),
            Script(
                "Arguments and standard input",
                "reads_stdin.py price -e 2 --layers 8 4 --note 'two words' < houses.csv",
                (Part("sequential", 2, 8),),
            ),
            Script(
                "Another working directory",
                "changes_directory.py",
                (Part("sequential", 3, 8),),
                history="experiments/first/history.json",
            ),
            Script("An exception within a fit", "fails_in_fit.py", (Part("sequential", 2, 10, 5),), status=1),
            Script("An exit status", "exits_with_status.py", (Part("sequential", 2, 8, last_batch=1 / 2),), status=3),
        ),
    ),
)
"""The sections of the document, in its order."""

ROWS = tuple(row for section in SECTIONS for row in section.rows)


def document_lines() -> Iterator[str]:
    """The lines of the document's tables."""
    for section in SECTIONS:
        yield f"## {section.title}"
        yield ""
        yield "| Script | Command | Recorded besides log and devices | Trained by |"
        yield "|---|---|---|---|"
        for row in section.rows:
            link = f"[{row.kind}](../tests/end_to_end/scripts/{row.file})"
            yield f"| {link} | `{row.typed}` | {row.recorded} | {row.trained_by} |"
        yield ""
