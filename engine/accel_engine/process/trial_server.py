"""Tries one plan in a conversation: a request and its reply are a JSON object a line.

The first request has the plan; the process compiles its steps, and then takes steps when it is asked to. It ends with
its standard input, or after a reply with a ``problem``.
"""

import json
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accel_engine.errors import AccelError, format_error
from accel_engine.events import OUT_OF_MEMORY
from accel_engine.plan import Plan
from accel_engine.process.pipes import claim_pipes
from accel_engine.process.tensorflow_import import TensorFlowImport

if TYPE_CHECKING:
    from accel_engine.training.plan_stepper import PlanStepper


def serve_trial(tensorflow: TensorFlowImport) -> int:
    """Answer requests until standard input ends; returns the exit status."""
    requests, replies = claim_pipes()

    def send(reply: dict[str, Any]) -> None:
        replies.write(json.dumps(reply) + "\n")

    trial: PlanStepper | None = None
    try:
        tensorflow.wait()
        for line in requests:
            request = json.loads(line)
            if trial is None:
                trial = _start(request, lambda done, of: send({"done": done, "of": of}))
                send({"ready": _described(trial)})
            else:
                send(_answer(trial, request))
    except BrokenPipeError:
        return 1  # nobody listens any more
    except (Exception, SystemExit) as error:  # noqa: BLE001 (the user's own code may raise anything)
        send(_problem(error))
        return 1
    finally:
        if trial is not None:
            trial.close()
    return 0


def _start(request: dict[str, Any], progress: Callable[[int, int], None]) -> "PlanStepper":
    from accel_engine.training.plan_stepper import PlanStepper

    run = Path(request["run"]) if request.get("run") else None
    return PlanStepper(Plan.from_mapping(request["plan"]), Path(request["folder"]), request["step"], run, progress)


def _described(trial: "PlanStepper") -> dict[str, Any]:
    from accel_engine.data.dataset import Split
    from accel_engine.keras_support.optimizers import optimizer_name

    assembly = trial.assembly
    return {
        "build_seconds": trial.build_seconds,
        "compile_seconds": trial.compile_seconds,
        "global_batch": assembly.step_counts.global_batch,
        "steps_per_epoch": assembly.step_counts.steps_per_epoch,
        "devices": list(assembly.devices),
        "has_orders": trial.has_orders,
        "replicas": assembly.replicas,
        "learning_rate": assembly.learning_rate if assembly.has_constant_rate else None,
        "optimizer": optimizer_name(assembly.optimizer) if assembly.optimizer else "",
        "examples": len(train) if isinstance(train := assembly.dataset.train, Split) else None,
        "device_memory": trial.device_memory,
        "memory": trial.peak_memory,
    }


def _answer(trial: "PlanStepper", request: dict[str, Any]) -> dict[str, Any]:
    match request:
        case {"seconds": seconds}:
            return {"taken": asdict(trial.take_for(seconds)), "memory": trial.peak_memory}
        case {"steps": steps}:
            return {"taken": asdict(trial.take(steps)), "memory": trial.peak_memory}
        case {"rates": rates}:
            return {"taken": asdict(trial.take_at(rates)), "memory": trial.peak_memory}
        case {"restore": seed, "initialize": initialize}:
            trial.restore(seed, initialize=initialize)
            return {"restored": seed}
        case {"validate": _}:
            metrics, seconds = trial.validate()
            return {"metrics": metrics, "seconds": seconds}
        case {"save": _}:
            return {"seconds": trial.save()}
    raise ValueError(f"unknown request {request}")


def _problem(error: BaseException) -> dict[str, Any]:
    """Why the plan cannot be tried, and whether memory ran out."""
    from accel_engine.training.reporting.memory_errors import is_out_of_memory

    if not isinstance(error, AccelError):
        traceback.print_exception(error)
    if is_out_of_memory(error):
        return {"problem": OUT_OF_MEMORY, "out_of_memory": True}
    return {"problem": format_error(error), "out_of_memory": False}
