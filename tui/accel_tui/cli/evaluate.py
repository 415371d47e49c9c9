"""``accel-tui evaluate``: metrics of trained models with confidence intervals, and whether one is better."""

from typing import Any

import click

from accel_engine import data as datasets
from accel_engine.process.engine_call import ask
from accel_engine.requests.evaluate import (
    ClassScores,
    Difference,
    EvaluatedModel,
    Evaluation,
    EvaluationOptions,
    EvaluationRequest,
)
from accel_engine.requests.protocol.model_reference import ModelReference
from accel_engine.run_queue.request_device import placed
from accel_tui.cli.options import takes
from accel_tui.cli.output import print_to_stderr, table, write, write_json
from accel_tui.cli.trained_models import custom_objects_option, find_model
from accel_tui.formatting.evaluation import evaluation_headline, evaluation_tables

EPILOG = """\b
Examples:
  accel-tui evaluate last
  accel-tui evaluate k3fp m8w3                      is the second one better?
  accel-tui evaluate k3fp --data tested.csv
  accel-tui evaluate model.keras --data photos/ --json | jq .metrics.accuracy
"""


@click.command(epilog=EPILOG)
@click.argument("targets", metavar="RUN|MODEL...", nargs=-1, required=True)
@takes(EvaluationOptions, "options")
@custom_objects_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per model; the last line has its metrics.")
def evaluate(targets: tuple[str, ...], options: EvaluationOptions, custom_objects: str, as_json: bool) -> None:
    """Evaluate each RUN, or MODEL (a FILE.keras or FILE.h5, with --data), on examples it was not trained on.

    Every metric has a bootstrap confidence interval, classifiers also the precision, recall and F1 of each
    class. Several models are evaluated on the same examples, and a paired permutation test tells how likely
    a difference from the first one is by chance.
    """
    if options.data:
        datasets.find(options.data)  # before TensorFlow starts
    models = [find_model(target, options.data, custom_objects) for target in targets]
    with placed(EvaluationRequest(tuple(map(ModelReference.of, models)), options)) as request:
        found = ask(request)
    for model in found.models:
        for note in model.notes:
            print_to_stderr(f"{model.name}: {note}" if len(found.models) > 1 else note)
    if as_json:
        for index, model in enumerate(found.models):
            write_json(_object(found, model, found.differences[index - 1] if index else None))
        return
    write(evaluation_headline(found, options))
    for each in evaluation_tables(found, options.confidence):
        write(f"\n{table(each.header, each.rows)}")
        if each.note:
            write(f"{each.note} --json has all.")


def _object(found: Evaluation, model: EvaluatedModel, difference: Difference | None) -> dict[str, Any]:
    values = {
        "model": model.name,
        "step": model.step,
        "split": found.split,
        "examples": found.examples,
        "device": found.device.id,
        "metrics": {name: metric.value for name, metric in model.metrics.items()},
        "intervals": {name: [metric.low, metric.high] for name, metric in model.metrics.items()},
        "baseline": model.baseline,
        "baseline_name": model.baseline_name,
        "classes": [_class_object(each) for each in model.classes],
        "notes": model.notes,
    }
    if difference is not None:
        values["than"] = difference.than
        values["differences"] = {
            name: {
                "value": metric.measured.value,
                "interval": [metric.measured.low, metric.measured.high],
                "p": metric.p,
                "better": metric.is_better,
            }
            for name, metric in difference.metrics.items()
        }
    return values


def _class_object(scores: ClassScores) -> dict[str, Any]:
    figures = {"precision": scores.precision, "recall": scores.recall, "f1": scores.f1}
    values = {name: each.value for name, each in figures.items()}
    intervals = {name: [each.low, each.high] for name, each in figures.items()}
    return {"class": scores.name, "examples": scores.examples, **values, "intervals": intervals}
