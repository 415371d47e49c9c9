"""Warns of batches that are not as the plan says."""

from accel_engine.data.dataset import Examples, Split
from accel_engine.plan.estimate import StepCounts
from accel_engine.plan.resolved_plan import ResolvedPlan


def batch_notes(resolved: ResolvedPlan, train: Examples) -> list[str]:
    """Warnings for the user on how examples are put in batches.

    Args:
        resolved: The plan, with its steps.
        train: The training examples.
    """
    step_counts, wanted, cluster = resolved.step_counts, resolved.plan.batch_size, resolved.cluster
    assert step_counts is not None  # noqa: S101 (the caller has counted them)
    notes, replicas = [], step_counts.replicas
    if isinstance(train, Split) and wanted > len(train):
        taken = step_counts.global_batch
        every = f"all {taken}" if taken == len(train) else f"{taken} of {len(train)}"
        notes.append(f"the batch size {wanted} is larger than the data: a step takes {every} examples")
    elif isinstance(train, Split) and step_counts.global_batch < wanted:
        notes.append(
            f"the batch size {wanted} is not divisible by {replicas} replicas: each takes "
            f"{step_counts.per_replica_batch}, so the global batch is {step_counts.global_batch}"
        )
    if cluster is not None and cluster.coordinated and len(cluster.workers) > 1:
        notes.append(
            f"{len(cluster.workers)} workers run steps of {step_counts.global_batch} examples asynchronously, "
            "on weights that the others are updating"
        )
    return notes


def uneven_note(step_counts: StepCounts, train: Examples, inexact: str) -> list[str]:
    """A warning if replicas cannot divide a batch evenly, and examples that several have count on each.

    Args:
        step_counts: The batches.
        train: The training examples.
        inexact: Why they cannot count once; empty if they can.
    """
    replicas = step_counts.replicas
    may_be_uneven = step_counts.last_batch % replicas if isinstance(train, Split) else replicas > 1
    if not inexact or not may_be_uneven:
        return []
    last = f"the last batch of {step_counts.last_batch}"
    which, cure = (last, "; last_batch = drop leaves it out") if isinstance(train, Split) else ("each batch", "")
    return [
        f"{replicas} replicas cannot divide {which} evenly: some examples are on several of them, and count on each, "
        f"as {inexact}{cure}"
    ]
