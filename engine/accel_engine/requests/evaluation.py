"""Evaluates trained models in a separate engine process."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from accel_engine.data.data_options import no_progress
from accel_engine.plan import Plan
from accel_engine.process.engine_query import EngineQuery
from accel_engine.process.model_query import described


@dataclass(frozen=True, slots=True)
class Measurement:
    """A value with its confidence interval; ``None`` for what is not a finite number.

    Attributes:
        value: What was measured.
        low: The lower end of the interval.
        high: The upper end.
    """

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class ClassScores:
    """The figures of a class.

    Attributes:
        name: The class.
        examples: How many examples are of it.
        precision: Share of the predictions of the class that are right.
        recall: Share of its examples that are predicted as it.
        f1: The harmonic mean of both.
    """

    name: str
    examples: int
    precision: Measurement
    recall: Measurement
    f1: Measurement


@dataclass(frozen=True, slots=True)
class EvaluatedModel:
    """A model's evaluation.

    Attributes:
        name: The run's id, or the file's name.
        step: Steps that it was trained for; 0 for a file.
        metrics: By Keras' names, the loss first.
        classes: Of a classifier.
        notes: Warnings for the user.
        baseline: What a prediction that has learned nothing reaches on the same examples, by the same names; empty if
            unknown.
        baseline_name: What that predicts, such as ``most frequent class: cat``; empty if unknown.
    """

    name: str
    step: int
    metrics: dict[str, Measurement]
    classes: tuple[ClassScores, ...]
    notes: tuple[str, ...]
    baseline: dict[str, float | None] = field(default_factory=dict)
    baseline_name: str = ""


@dataclass(frozen=True, slots=True)
class MetricDifference:
    """How much more a metric of one model is than that of another, on the same examples.

    Attributes:
        measured: The difference, with an interval from resampling the examples of both together.
        p: The probability of at least this difference if both models are equally good, from swapping their results of
            each example at random; ``None`` if they cannot be swapped.
        is_better: Whether it is an improvement; ``None`` if there is no difference, or the name does not tell.
    """

    measured: Measurement
    p: float | None
    is_better: bool | None


@dataclass(frozen=True, slots=True)
class Difference:
    """A model compared with the first one.

    Attributes:
        name: The model.
        than: The first one.
        metrics: The metrics of both, by name.
    """

    name: str
    than: str
    metrics: dict[str, MetricDifference]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Models evaluated on the same examples.

    Attributes:
        split: The examples: ``test``, ``validation`` or ``training``, or the file name of other data.
        examples: Their number.
        models: In the order in which they were given.
        differences: Of each model but the first to the first.
    """

    split: str
    examples: int
    models: tuple[EvaluatedModel, ...]
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationOptions:
    """How models are evaluated.

    Attributes:
        data: Other data than that of the runs; empty for theirs.
        split: ``test``, ``validation`` or ``training``; ``auto`` is ``test`` where there are such examples.
        checkpoint: ``best``, ``last`` or a step; ``auto`` is ``best`` for runs that restore their best weights.
        resamples: How often examples are drawn for intervals.
        confidence: The level of the intervals, 0 to 1.
        seed: Of the random draws.
    """

    data: str = ""
    split: str = "auto"
    checkpoint: str = "auto"
    resamples: int = 1000
    confidence: float = 0.95
    seed: int = 0


class EvaluationQuery(EngineQuery):
    """A request to evaluate models on the same examples, on the CPU.

    Args:
        models: Directories of runs, or plans with the file of a model and its data.
        options: How.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        RunError: A run has no checkpoint.
    """

    def __init__(self, models: Sequence[Path | Plan], options: EvaluationOptions) -> None:
        super().__init__(("--evaluate",), {"models": list(map(described, models)), **asdict(options)})

    def evaluation(self, on_progress: Callable[[int, int], object] = no_progress) -> Evaluation:
        """Wait for the evaluation, at least as long as TensorFlow takes to import.

        Args:
            on_progress: Called now and then with the number of examples done, and of all (0 if unknown).

        Raises:
            RunError: A model cannot be evaluated; why.
        """
        reply = self.answer(on_progress)
        return Evaluation(
            reply["split"],
            reply["examples"],
            tuple(map(_model, reply["models"])),
            tuple(map(_difference, reply["differences"])),
        )


def _model(reply: dict[str, Any]) -> EvaluatedModel:
    classes = (
        ClassScores(
            each["name"],
            each["examples"],
            *(Measurement(*each[figure]) for figure in ("precision", "recall", "f1")),
        )
        for each in reply["classes"]
    )
    metrics = {each["name"]: _measurement(each) for each in reply["metrics"]}
    return EvaluatedModel(
        reply["name"],
        reply["step"],
        metrics,
        tuple(classes),
        tuple(reply["notes"]),
        reply["baseline"],
        reply["baseline_name"],
    )


def _difference(reply: dict[str, Any]) -> Difference:
    metrics = {
        each["name"]: MetricDifference(_measurement(each), each["p"], each["better"]) for each in reply["metrics"]
    }
    return Difference(reply["name"], reply["than"], metrics)


def _measurement(reply: dict[str, Any]) -> Measurement:
    return Measurement(reply["value"], reply["low"], reply["high"])
