"""Warns of batches that are not as the plan says."""

from accel_engine.data.dataset import Examples, Split
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
        notes.append(f"the batch size {wanted} is larger than the data: a step takes all {len(train)} examples")
    elif isinstance(train, Split) and step_counts.global_batch < wanted:
        notes.append(
            f"the batch size {wanted} is not divisible by {replicas} replicas: each takes "
            f"{step_counts.per_replica_batch}, so the global batch is {step_counts.global_batch}"
        )
    elif not isinstance(train, Split) and replicas > 1 and not resolved.coordinated:
        notes.append(f"{replicas} replicas share each batch evenly; up to {replicas - 1} of its examples are left out")
    if cluster is not None and cluster.coordinated and len(cluster.workers) > 1:
        notes.append(
            f"{len(cluster.workers)} workers run steps of {step_counts.global_batch} examples asynchronously, "
            "on weights that the others are updating"
        )
    return notes
