"""Tries one plan in a conversation: the process compiles its steps, and then takes steps when it is asked to."""

import os
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from accel_engine import strategies
from accel_engine.engine_main.tensorflow_import import TensorFlowImport
from accel_engine.engine_main.trial_group import EXIT_SECONDS, TrialGroup, wait_for_members
from accel_engine.errors import AccelError, format_error
from accel_engine.events import OUT_OF_MEMORY
from accel_engine.plan.placement import find_cluster
from accel_engine.requests.protocol.request import Problem, Send, reports
from accel_engine.requests.try_plan import (
    MemberReady,
    ReturnToStart,
    SaveTrial,
    TakeSteps,
    TrialAnswer,
    TrialReady,
    TrialRequest,
    ValidateTrial,
)
from accel_engine.strategies.cluster_spec import ClusterSpec

if TYPE_CHECKING:
    from accel_engine.training.plan_stepper import PlanStepper


def try_plan(request: TrialRequest, send: Send, asked: Iterator[Any], tensorflow: TensorFlowImport) -> Problem:
    """Answer what is asked until standard input ends, with which the process exits, or something fails.

    Args:
        request: The plan.
        send: Sends an answer.
        asked: What is asked.
        tensorflow: Imported once the other processes of a cluster are started.

    Returns:
        Why the plan cannot be tried, or no further.

    Raises:
        BrokenPipeError: Nobody reads the answers.
    """
    plan, group = request.start.plan, None
    strategy = strategies.find(plan.strategy)
    try:
        cluster = find_cluster(strategy, os.environ)
        if strategy.processes and cluster is None:
            group = TrialGroup(request, _exit_after(send), workers=plan.local_workers, coordinated=strategy.coordinated)
            cluster = group.cluster
        tensorflow.wait()
        if cluster is not None:
            wait_for_members(cluster)
        if cluster is not None and cluster.serves:
            _serve_coordinator(request, asked, send)
        _take_steps(request, asked, send, cluster, group)
    except BrokenPipeError:
        raise  # nobody listens any more
    except (Exception, SystemExit) as error:  # noqa: BLE001 (the user's own code may raise anything)
        if strategy.processes:
            _let_others_explain(error, group)
        return _problem(error)
    finally:
        if group is not None:
            group.end()


def _exit_after(send: Send) -> Callable[[Problem], object]:
    """Send a problem, and exit although the main thread may wait for another process in native code."""

    def send_and_exit(problem: Problem) -> None:
        try:
            send(problem)
        finally:
            os._exit(1)

    return send_and_exit


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
    request: TrialRequest, asked: Iterator[Any], send: Send, cluster: ClusterSpec | None, group: TrialGroup | None
) -> NoReturn:
    """Take steps of a plan when it is asked for, with the workers that this process leads."""
    from accel_engine.training.plan_stepper import PlanStepper

    def memory() -> float | None:
        own = trial.peak_memory
        return own if group is None else group.memory(own, on_cpu=trial.assembly.on_cpu)

    start = request.start
    trial = PlanStepper(start.plan, request.work_folder, start.step, start.run, reports(send), cluster)
    try:
        if group is not None:
            group.wait_ready()
        ready = replace(_described(trial), memory=memory())
        if group is not None:  # all have answered
            ready = replace(ready, device_memory=group.device_memory(trial.device_memory))
        send(ready)
        while True:
            message = next(asked)
            if group is not None:
                group.ask(message)
            send(replace(_answer(trial, message), memory=memory()))
    finally:
        trial.close()


def _serve_coordinator(request: TrialRequest, asked: Iterator[Any], send: Send) -> NoReturn:
    """Run what a coordinator sends to TensorFlow's server, and tell the memory that it takes."""
    from accel_engine.devices import detect
    from accel_engine.plan.resolved_plan import resolve
    from accel_engine.training.distributed.cluster_server import ServedMember
    from accel_engine.training.memory_meters import HostMemory
    from accel_engine.training.plan_stepper import peak_memory

    host_memory = HostMemory()
    host_memory.start()
    resolved = resolve(request.start.plan, chosen=()).check()
    member = ServedMember(resolved, detect())
    if resolved.cluster is not None and resolved.cluster.role == "worker":
        member.read()
    send(MemberReady(peak_memory(member.devices, host_memory), member.device_memory))
    while True:
        next(asked)
        send(TrialAnswer(peak_memory(member.devices, host_memory)))


def _described(trial: "PlanStepper") -> TrialReady:
    from accel_engine.data.dataset import Split
    from accel_engine.keras_support.optimizers import optimizer_name

    assembly = trial.assembly
    return TrialReady(
        build_seconds=trial.build_seconds,
        compile_seconds=trial.compile_seconds,
        global_batch=trial.global_batch,
        steps_per_epoch=assembly.step_counts.steps_per_epoch,
        devices=tuple(assembly.devices),
        has_orders=trial.has_orders,
        replicas=assembly.replicas,
        learning_rate=assembly.learning_rate if assembly.has_constant_rate else None,
        optimizer=optimizer_name(assembly.optimizer) if assembly.optimizer else "",
        examples=len(train) if isinstance(train := assembly.dataset.train, Split) else None,
        device_memory=trial.device_memory,
    )


def _answer(trial: "PlanStepper", message: Any) -> Any:
    match message:
        case TakeSteps(rates=rates) if rates:
            return trial.take_at(rates)
        case TakeSteps(steps=steps):
            return trial.take(steps) if steps else trial.take_for(message.seconds)
        case ReturnToStart():
            trial.restore(message.seed, initialize=message.initialize)
            return TrialAnswer()
        case ValidateTrial():
            metrics, seconds = trial.validate()
            return TrialAnswer(seconds=seconds, metrics=metrics)
        case SaveTrial():
            return TrialAnswer(seconds=trial.save())
    raise ValueError(f"unknown request {message}")


def _problem(error: BaseException) -> Problem:
    """Why the plan cannot be tried, and whether memory ran out."""
    from accel_engine.training.reporting.error_explanation import is_out_of_memory

    if not isinstance(error, AccelError):
        traceback.print_exception(error)
    if is_out_of_memory(error):
        return Problem(OUT_OF_MEMORY, out_of_memory=True)
    return Problem(format_error(error))
