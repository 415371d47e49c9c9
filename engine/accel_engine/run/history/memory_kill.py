"""Whether a run was lost because memory ran out, and how it can train on with less."""

import signal
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from accel_engine.errors import RunError, UsageError
from accel_engine.plan import Plan
from accel_engine.plan.memory_cures import Cure, MemoryFacts, next_cure
from accel_engine.run.engine.memory_loss import MemoryLoss
from accel_engine.run.engine.status import read_info
from accel_engine.run.reading.reader import RunReader
from accel_engine.run.store.connection import connect, writing
from accel_engine.run.store.meta import effective_plan, read_meta


@dataclass(frozen=True, slots=True)
class Adaptation:
    """How a run trains on with less memory.

    Attributes:
        plan: The plan, with the changes of the cure.
        cure: What changes, and what it does.
        variables: The environment variables that chose the GPUs of the lost engine.
    """

    plan: Plan
    cure: Cure
    variables: Mapping[str, str]


def was_killed_for_memory(directory: Path, exit_status: int | None = None) -> bool:
    """Whether a run was probably lost because memory ran out: the kernel killed its engine, or native code crashed.

    The run keeps the answer if the kernel's counters have given it, which may rise again for other reasons.

    Args:
        directory: The run's directory.
        exit_status: What its process returned, by ``Popen.returncode``, if this process has started it.

    Raises:
        RunError: The run cannot be read.
    """
    if exit_status is not None and exit_status >= 0:  # no signal ended it
        return False
    with closing(RunReader(directory, steps=False, past_phases=False)) as reader:
        loss = reader.info(watched=False).memory_loss
    if loss is MemoryLoss.KILLED:
        _keep(directory)
    return loss is not None and (loss is MemoryLoss.CRASHED or exit_status in (None, -signal.SIGKILL))


def _keep(directory: Path) -> None:
    """Write that a run was killed, unless its engine was started again meanwhile; a full disk does not take it."""
    with suppress(RunError), writing(directory) as database:
        if read_info(database, watched=False).memory_loss is MemoryLoss.KILLED:
            database.set_meta(memory_loss=MemoryLoss.KILLED.value)


def adapted(directory: Path) -> Adaptation | None:
    """How to continue a run that the kernel has killed, from what its engine wrote; ``None`` if nothing is known.

    Also if the plan says ``--on-oom fail``, and if no CPU trains: it was the host's memory that ran out.

    Args:
        directory: The run's directory.

    Raises:
        RunError: The run cannot be read.
    """
    with closing(connect(directory, read_only=True)) as database:
        meta = read_meta(database)
    facts = MemoryFacts.parse(meta.get("memory"))
    try:
        plan = Plan.from_mapping(effective_plan(meta.get("plan", "")))
    except (UsageError, ValueError):
        return None
    if facts is None or not facts.on_host or plan.on_oom == "fail":
        return None
    cure = next_cure(plan, replace(facts, caches_data=False))  # no field of a plan says so
    return None if cure is None else Adaptation(plan.replace(**cure.changes), cure, facts.variables)
