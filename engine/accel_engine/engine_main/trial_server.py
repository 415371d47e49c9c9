"""Tries one plan in a conversation: a request and its reply are a JSON object a line.

The first request has the plan; the process compiles its steps, and then takes steps when it is asked to. It ends with
its standard input, or after a reply with a ``problem``.
"""

import json
import os
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accel_engine import strategies
from accel_engine.engine_main.pipes import claim_pipes
from accel_engine.engine_main.tensorflow_import import TensorFlowImport
from accel_engine.engine_main.trial_group import EXIT_SECONDS, TrialGroup, until_input_ends, wait_for_members
from accel_engine.errors import AccelError, format_error
from accel_engine.events import OUT_OF_MEMORY
from accel_engine.plan import Plan
from accel_engine.plan.placement import find_cluster
from accel_engine.strategies.cluster_spec import ClusterSpec

if TYPE_CHECKING:
    from accel_engine.training.plan_stepper import PlanStepper

Send = Callable[[dict[str, Any]], object]
"""Sends a reply."""


def serve_trial(tensorflow: TensorFlowImport) -> int:
    """Answer requests until standard input ends; returns the exit status."""
    requests, replies = claim_pipes()
    sending = threading.Lock()

    def send(reply: dict[str, Any]) -> None:
        with sending:
            replies.write(json.dumps(reply) + "\n")

    line = requests.readline()
    if not line:
        return 0
    start, group = json.loads(line), None
    strategy = strategies.find(start["plan"]["strategy"])
    try:
        cluster = find_cluster(strategy, os.environ)
        lines = until_input_ends(requests) if strategy.processes else requests
        if strategy.processes and cluster is None:
            give_up = _exit_after(send)
            group = TrialGroup(start, give_up, workers=start["plan"]["local_workers"], coordinated=strategy.coordinated)
            cluster = group.cluster
        tensorflow.wait()
        if cluster is not None:
            wait_for_members(cluster)
        if cluster is not None and cluster.serves:
            _serve_coordinator(start, lines, send)
        else:
            _take_steps(start, lines, send, cluster, group)
    except BrokenPipeError:
        return 1  # nobody listens any more
    except (Exception, SystemExit) as error:  # noqa: BLE001 (the user's own code may raise anything)
        if strategy.processes:
            _let_others_explain(error, group)
        send(_problem(error))
        return 1
    finally:
        if group is not None:
            group.end()
    return 0


def _exit_after(send: Send) -> Send:
    """Send a reply, and exit although the main thread may wait for another process in native code."""

    def give_up(reply: dict[str, Any]) -> None:
        try:
            send(reply)
        finally:
            os._exit(1)

    return give_up


def _let_others_explain(error: BaseException, group: TrialGroup | None) -> None:
    """Wait for what another process says, if its connection is lost: that tells why."""
    if isinstance(error, AccelError):  # also if TensorFlow cannot be imported
        return
    from accel_engine.training.trainer import CONNECTION_ERRORS

    if not isinstance(error, CONNECTION_ERRORS):
        return
    if group is not None:
        group.wait_for_problem()
    else:
        time.sleep(EXIT_SECONDS)


def _take_steps(
    start: Mapping[str, Any], lines: Iterable[str], send: Send, cluster: ClusterSpec | None, group: TrialGroup | None
) -> None:
    """Take steps of a plan when it is asked for, with the workers that this process leads."""
    from accel_engine.training.plan_stepper import PlanStepper

    def progress(done: int, of: int) -> None:
        send({"done": done, "of": of})

    def memory() -> float | None:
        own = trial.peak_memory
        return own if group is None else group.memory(own, on_cpu=trial.assembly.on_cpu)

    run, plan = Path(start["run"]) if start.get("run") else None, Plan.from_mapping(start["plan"])
    trial = PlanStepper(plan, Path(start["folder"]), start["step"], run, progress, cluster)
    try:
        if group is not None:
            group.wait_ready()
        ready = {**_described(trial), "memory": memory()}
        if group is not None:  # all have answered
            ready["device_memory"] = group.device_memory(trial.device_memory)
        send({"ready": ready})
        for line in lines:
            request = json.loads(line)
            if group is not None:
                group.ask(request)
            send({**_answer(trial, request), "memory": memory()})
    finally:
        trial.close()


def _serve_coordinator(start: Mapping[str, Any], lines: Iterable[str], send: Send) -> None:
    """Run what a coordinator sends to TensorFlow's server, and tell the memory that it takes."""
    from accel_engine.devices import detect
    from accel_engine.plan.resolved_plan import resolve
    from accel_engine.training.distributed.served_member import ServedMember
    from accel_engine.training.memory_meters import HostMemory
    from accel_engine.training.plan_stepper import peak_memory

    host_memory = HostMemory()
    host_memory.start()
    resolved = resolve(Plan.from_mapping(start["plan"]), chosen=()).check()
    member = ServedMember(resolved, detect())
    if resolved.cluster is not None and resolved.cluster.role == "worker":
        member.read()
    memory = peak_memory(member.devices, host_memory)
    send({"ready": {"memory": memory, "device_memory": member.device_memory}})
    for _ in lines:
        send({"memory": peak_memory(member.devices, host_memory)})


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
    }


def _answer(trial: "PlanStepper", request: dict[str, Any]) -> dict[str, Any]:
    match request:
        case {"seconds": seconds}:
            return {"taken": asdict(trial.take_for(seconds))}
        case {"steps": steps}:
            return {"taken": asdict(trial.take(steps))}
        case {"rates": rates}:
            return {"taken": asdict(trial.take_at(rates))}
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
