"""Reports of validations as each task would store them, made from known numbers."""

import numpy as np
import numpy.typing as npt

from accel_engine.run.diagnostics import (
    ClassificationReport,
    CustomReport,
    Example,
    ForecastReport,
    MultiLabelReport,
    OutputReport,
    ReconstructionReport,
    RegressionReport,
    SamplePrediction,
    Scores,
    SegmentationReport,
    SequenceReport,
)
from accel_engine.run.diagnostics.reports import RESIDUAL_BINS, SCORE_BINS
from accel_engine.run.diagnostics.views import Curve, Image, Labels, Mask, Row, Spectrogram, Text, Tokens

POEM = "The quick brown fox\njumps over the lazy dog,\n\nand sleeps.\n"


def histograms(labels: int = 1, examples: int = 1000, seed: int = 0) -> Scores:
    """Probabilities of labels, higher for those that have it."""
    rng = np.random.default_rng(seed)
    edges = np.linspace(0, 1, SCORE_BINS + 1)
    positives = [np.histogram(rng.beta(5, 2, examples // 3), edges)[0] for _ in range(labels)]
    negatives = [np.histogram(rng.beta(2, 4, examples - examples // 3), edges)[0] for _ in range(labels)]
    return Scores(np.array(positives, np.int64), np.array(negatives, np.int64))


def binary() -> ClassificationReport:
    """Sentences that are positive or negative."""
    texts = ("a fine film, " * 30, "dull", "neither good nor bad, but long")
    worst = tuple(
        SamplePrediction(
            row=10 * index,
            loss=3.0 - index,
            input=Text(text[:200], len(text)),
            label=index % 2,
            predicted=0,
            confidence=0.95 - 0.1 * index,
            true_class_probability=0.05 + 0.1 * index,
        )
        for index, text in enumerate(texts)
    )
    return ClassificationReport(
        examples=1000,
        names=("negative", "positive"),
        counts=np.array([[600, 67], [43, 290]]),
        scores=histograms(),
        worst=worst,
        random=worst[1:2],
    )


def rows_of_classes() -> ClassificationReport:
    """Rows of a table with three classes, and the confidence of predictions."""
    names = ("age", "income", "town")
    worst = tuple(
        SamplePrediction(
            row=index,
            loss=2.0,
            input=Row(names, (str(20 + index), f"{1000 * index:,}", "Berlin"), 3),
            label=index % 3,
            predicted=(index + index % 2) % 3,
            confidence=0.8,
            true_class_probability=0.1,
        )
        for index in range(12)
    )
    counts = np.array([[50, 2, 3], [20, 30, 0], [0, 0, 0]])
    return ClassificationReport(
        examples=105, names=("low", "mid", "high"), counts=counts, confidence=histograms(), worst=worst
    )


def multi_label(labels: int = 3) -> MultiLabelReport:
    """Images with any number of labels."""
    counts = np.array([[[80 - index, 5], [5 + index, 10]] for index in range(labels)])
    pixels = np.zeros((8, 8, 3), np.uint8)
    worst = (
        Example(row=3, loss=1.5, input=Image(pixels), target=Labels((0, 1)), output=Labels((1,), (0.75,))),
        Example(row=4, loss=0.5, input=Image(pixels), target=Labels((2,)), output=Labels((2,), (0.9,))),
    )
    names = tuple(f"tag{index}" for index in range(labels))
    return MultiLabelReport(examples=100, names=names, counts=counts, scores=histograms(labels), worst=worst)


def regression(units: int = 1, *, images: bool = False) -> RegressionReport:
    """Numbers that are predicted with known errors."""
    rng = np.random.default_rng(0)
    true = rng.uniform(0, 50, (units, 1000))
    predicted = true + rng.normal(0, 3, true.shape)
    names = tuple(("price", "area", "rooms", "age")[index % 4] + "'" * (index // 4) for index in range(units))
    found = [np.histogram(row, RESIDUAL_BINS) for row in predicted - true]
    worst = tuple(
        Example(
            row=index,
            loss=90.0 - index,
            input=Image(rng.integers(0, 255, (16, 16, 1)).astype(np.uint8))
            if images
            else Row(("lat", "lon"), (f"{index}.5", "13.4"), 2),
            target=Row(names, tuple(f"{value:.3g}" for value in true[:, index]), units),
            output=Row(names, tuple(f"{value:.3g}" for value in predicted[:, index]), units),
        )
        for index in range(20)
    )
    return RegressionReport(
        examples=1000,
        names=names,
        units=units,
        mae=np.full(units, 2.4),
        rmse=np.full(units, 3.0),
        r2=np.full(units, 0.957),
        mean_mae=2.4,
        mean_rmse=3.0,
        points=np.stack([true, predicted], axis=2).astype(np.float32),
        residuals=np.array([counts for counts, _ in found]),
        residual_edges=np.array([edges for _, edges in found], np.float32),
        worst=worst,
        not_finite=2,
    )


def segmentation() -> SegmentationReport:
    """A disc in front of a background, in images of noise; the prediction is a little to the right."""
    rng = np.random.default_rng(0)

    def disc(x: int, y: int) -> npt.NDArray[np.uint8]:
        rows, columns = np.mgrid[:48, :48]
        return ((rows - y) ** 2 + (columns - x) ** 2 < 150).astype(np.uint8) * (1 + (columns > 30)).astype(np.uint8)

    worst = []
    for index in range(9):
        mask = disc(20 + index, 24)
        mask[0] = 255
        shade = np.clip(60 + 100 * disc(20 + index, 24)[..., None] + rng.integers(0, 50, (48, 48, 3)), 0, 255)
        worst.append(
            Example(
                row=index,
                loss=2.0 - 0.1 * index,
                input=Image(shade.astype(np.uint8)),
                target=Mask(mask),
                output=Mask(disc(24 + index, 24)),
            )
        )
    counts = np.array([[9000, 300, 10], [500, 1500, 20], [80, 40, 60]])
    return SegmentationReport(
        examples=9, names=("ground", "road", "car"), counts=counts, ignored=48, worst=tuple(worst)
    )


def reconstruction() -> ReconstructionReport:
    """Images and what an autoencoder makes of them."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, (12, 28, 28, 1)).astype(np.uint8)
    worst = tuple(
        Example(row=index, loss=0.5 - 0.01 * index, input=Image(image), output=Image(255 - image))
        for index, image in enumerate(images)
    )
    errors, edges = np.histogram(rng.gamma(3, 0.02, 500), RESIDUAL_BINS)
    return ReconstructionReport(
        examples=500,
        mae=0.12,
        rmse=0.2,
        errors=errors,
        error_edges=edges.astype(np.float32),
        same_target=True,
        worst=worst,
    )


def language_model() -> SequenceReport:
    """A model of characters that has written a poem."""
    text = POEM[:40]
    losses = np.linspace(0, 4, len(text) - 1).astype(np.float32)
    said = (*text[1:21], *("x" * 19))
    example = Example(
        row=7,
        loss=2.0,
        input=Tokens(tuple(text), 40),
        target=Tokens((*text[1:], "!"), 40),
        output=Tokens((*said, "!"), 40, np.append(losses, np.float32(4))),
    )
    return SequenceReport(
        examples=50,
        tokens=2000,
        accuracy=0.61,
        perplexity=4.25,
        prompt="The ",
        generated=POEM[4:] * 30,
        worst=(example,),
    )


def token_classification() -> SequenceReport:
    """Names in sentences."""
    words = ("Ada", "Lovelace", "lived", "in", "London", "and", "met", "Babbage")
    true = ("B-PER", "I-PER", "O", "O", "B-LOC", "O", "O", "B-PER")
    said = ("B-PER", "I-PER", "O", "O", "B-PER", "O", "O", "O")
    examples = tuple(
        Example(
            row=index,
            loss=1.2,
            input=Tokens(words * 3, 24),
            target=Tokens(true * 3, 24),
            output=Tokens((said if index == 0 else true) * 3, 24, np.full(24, 0.5, np.float32)),
        )
        for index in range(2)
    )
    counts = np.array([[800, 10, 5, 5], [20, 60, 4, 6], [0, 6, 30, 1], [8, 9, 1, 40]])
    return SequenceReport(
        examples=80,
        names=("O", "B-PER", "I-PER", "B-LOC"),
        tokens=1000,
        accuracy=0.93,
        perplexity=1.2,
        counts=counts,
        worst=examples,
    )


def forecast(series: int = 2) -> ForecastReport:
    """Waves, and forecasts that drift away from them."""
    past, horizon = 72, 24
    names = ("load", "price", "wind")[:series]
    worst = []
    for index in range(12):
        steps = np.arange(past + horizon) + 5 * index
        waves = np.array([10 + 3 * np.sin(steps / (6 + each)) for each in range(series)], np.float32)
        ahead = waves[:, past:]
        worst.append(
            Example(
                row=index,
                loss=4.0 - 0.1 * index,
                input=Curve(waves[:, :past], names, past, series),
                target=Curve(ahead, names, horizon, series),
                output=Curve(ahead + np.linspace(0, 2, horizon, dtype=np.float32), names, horizon, series),
            )
        )
    mae = np.tile(np.linspace(0.1, 2, horizon), (series, 1))
    return ForecastReport(
        examples=300, names=names, mae=mae, baseline=2 * mae, mean_mae=1.05, mean_rmse=1.5, worst=tuple(worst)
    )


def sounds() -> ClassificationReport:
    """Words that are said, as spectrograms."""
    rng = np.random.default_rng(0)
    worst = []
    for index in range(10):
        rows, columns = np.mgrid[:64, :48]
        levels = 255 * np.exp(-(((rows - 10 - index * columns / 12) / 6) ** 2)) + rng.integers(0, 30, (64, 48))
        worst.append(
            SamplePrediction(
                row=index,
                loss=2.0,
                input=Spectrogram(levels.clip(0, 255).astype(np.uint8), 1.0, 8000.0),
                label=0,
                predicted=index % 2,
                confidence=0.7,
                true_class_probability=0.3,
            )
        )
    return ClassificationReport(
        examples=100, names=("yes", "no"), counts=np.array([[40, 10], [5, 45]]), scores=histograms(), worst=tuple(worst)
    )


def custom() -> CustomReport:
    """Outputs of a model with its own training step."""
    return CustomReport(
        examples=64,
        reason="the model has its own train_step, so its outputs have no targets",
        shapes=(("embedding", "float32 64"), ("logits", "float32 10")),
    )


def classification(classes: int = 10, channels: int = 1, wrong: int = 20) -> ClassificationReport:
    """Images of which class 3 is taken for 5 now and then."""
    rng = np.random.default_rng(0)
    counts = np.diag(np.full(classes, 30)).astype(np.int64)
    counts[3, 5 % classes] += 7
    counts[1, 0] += 2
    images = rng.integers(0, 256, (64, 8, 8, channels)).astype(np.uint8)
    worst = tuple(
        SamplePrediction(
            row=row,
            loss=2.0,
            input=Image(images[row]),
            label=3,
            predicted=5 % classes if row < wrong else 3,
            confidence=0.9 - 0.01 * row,
            true_class_probability=0.01 * (row + 1),
        )
        for row in range(64)
    )
    names = tuple(f"name{index}" for index in range(classes))
    return ClassificationReport(
        examples=int(counts.sum()), names=names, counts=counts, confidence=histograms(), worst=worst
    )


REPORTS: dict[str, OutputReport] = {
    "classification": classification(),
    "binary": binary(),
    "rows": rows_of_classes(),
    "multi-label": multi_label(),
    "regression": regression(4),
    "regression of images": regression(1, images=True),
    "segmentation": segmentation(),
    "reconstruction": reconstruction(),
    "language model": language_model(),
    "token classification": token_classification(),
    "forecast": forecast(),
    "sounds": sounds(),
    "custom": custom(),
}
"""A report of each task."""
