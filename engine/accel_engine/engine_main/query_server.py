"""Answers one query: reads a JSON object from standard input and writes JSON lines to standard output."""

import json
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from accel_engine import data
from accel_engine.data.dataset_entry import to_json
from accel_engine.engine_main.pipes import claim_pipes
from accel_engine.engine_main.tensorflow_import import TensorFlowImport
from accel_engine.errors import AccelError, format_error
from accel_engine.plan import Plan

SendReply: TypeAlias = Callable[[dict[str, Any]], None]
"""Writes a reply."""

QueryFunction: TypeAlias = Callable[[dict[str, Any], SendReply], dict[str, Any]]
"""Computes the answer to the request; may send progress before."""


def serve_query(query: QueryFunction, tensorflow: TensorFlowImport) -> int:
    """Answer the request on standard input; returns the exit status."""
    requests, replies = claim_pipes()

    def send(reply: dict[str, Any]) -> None:
        replies.write(json.dumps(reply) + "\n")

    def ask() -> dict[str, Any]:
        tensorflow.wait()
        return query(request, send)

    request = json.loads(requests.read())
    send(answer_or_problem(ask))
    replies.close()
    return 0


def answer_or_problem(ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Compute an answer; its field ``problem`` says why it could not be computed."""
    try:
        return ask()
    except AccelError as error:
        return {"problem": str(error)}
    except (Exception, SystemExit) as error:  # noqa: BLE001 (the user's own code is built here)
        traceback.print_exc()
        return {"problem": format_error(error)}


def serve_prediction(directory: Path, request: dict[str, Any], send: SendReply) -> dict[str, Any]:
    """Answer a request for predictions with the model of a run, or of a file."""
    if "prompt" in request:
        from accel_engine.trained.prediction.writing import write

        return write(directory, request, lambda text: send({"text": text}))
    from accel_engine.trained.prediction.predict import predict

    return predict(directory, request, lambda done, of: send({"done": done, "of": of}))


def serve_evaluation(request: dict[str, Any], send: SendReply) -> dict[str, Any]:
    """Evaluate models on the same examples."""
    from accel_engine.trained.evaluation.evaluate import evaluate

    return evaluate(request, lambda done, of: send({"done": done, "of": of}))


def serve_diagnosis(request: dict[str, Any], send: SendReply) -> dict[str, Any]:
    """Report on the examples that a run is evaluated on."""
    from accel_engine.trained.diagnose import diagnose

    return diagnose(request, lambda done, of: send({"done": done, "of": of}))


def serve_export(request: dict[str, Any], send: SendReply) -> dict[str, Any]:
    """Export a run's trained model; sends each format when it has been compared."""
    from accel_engine.model_export.export import export

    return export(request, lambda done, of: send({"done": done, "of": of}), lambda part: send({"part": part}))


def revalidate(directory: Path, request: dict[str, Any], send: SendReply) -> dict[str, Any]:
    """Validate the run's last checkpoint and save its evaluation report."""
    del request  # has no options
    from accel_engine.trained.revalidation import revalidate

    return revalidate(directory, lambda done, of: send({"done": done, "of": of}))


def describe_model(request: dict[str, Any], send: SendReply) -> dict[str, Any]:
    """Build a plan's model without training it, and describe it; loads the data if only that tells its size."""
    from accel_engine.training.measure_model import measure_model

    return measure_model(Plan.from_mapping(request["plan"]), lambda done, of: send({"done": done, "of": of}))


def describe_data(request: dict[str, Any], send: SendReply) -> dict[str, Any]:
    """Load a plan's data, for a description of what only loading tells."""
    from accel_engine.data.loaded_entry import entry_of

    plan = Plan.from_mapping(request["plan"])
    dataset = data.load(plan.data, plan.data_options, lambda done, of: send({"done": done, "of": of}))
    return to_json(entry_of(dataset, data.find(plan.data)))


def serve_bench(request: dict[str, Any], send: SendReply) -> dict[str, Any]:
    """Measure the inference of models; sends each candidate once it is measured, and windows if asked to."""
    from accel_engine.trained.bench.bench import bench

    return bench(
        request,
        lambda part: send({"part": part}),
        lambda done, of: send({"done": done, "of": of}),
        (lambda window: send({"part": {"window": window.to_values()}})) if request["live"] else None,
    )


def serve_held_out_metrics(request: dict[str, Any], send: SendReply) -> dict[str, Any]:
    """Compute the metrics of models whose inference is to be measured."""
    from accel_engine.model_export.held_out_metrics import held_out_metrics

    return held_out_metrics(request, lambda done, of: send({"done": done, "of": of}))
