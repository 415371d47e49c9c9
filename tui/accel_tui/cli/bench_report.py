"""What ``accel-tui bench`` prints: tables, and JSON lines."""

from collections.abc import Iterator, Sequence
from typing import Any

from accel_engine.inference.candidate import Candidate
from accel_engine.inference.comparison import Comparison
from accel_engine.inference.measurement.percentiles import RANKS
from accel_tui.cli.table import table
from accel_tui.formatting.bench import notes, tables


def page(candidates: Sequence[Candidate]) -> Iterator[str]:
    """A table for each setup, and what brackets in them mean."""
    for each in tables(candidates):
        yield f"{each.title}\n{table(each.header, each.rows)}"
    if words := list(notes(candidates)):
        yield "\n".join(words)


def compared(found: Comparison) -> dict[str, Any]:
    """A comparison for ``--json``."""
    described = {name: getattr(found.other, name) for name in ("model", "format", "device", "xla", "precision")}
    return {
        **described,
        "batch_size": found.other.batch_size if found.meets_target else None,
        "metric": found.other.metrics.main[0] if found.other.metrics else None,
        "metric_difference": found.metric_difference,
        "throughput_ratio": found.throughput if found.meets_target else None,
        "size_ratio": found.size,
    }


def values(candidate: Candidate) -> dict[str, Any]:
    """A candidate for ``--json``; latencies are in seconds."""
    plain = candidate.to_values()
    measured = plain.pop("percentiles")
    latencies = {name: measured[name]["value"] if name in measured else None for name in RANKS}
    metrics = plain.pop("metrics")
    plain["metrics"] = metrics and metrics.pop("values")
    plain["held_out"] = metrics
    plain["intervals"] = {name: [each["low"], each["high"]] for name, each in measured.items()}
    known = ("throughput", "requests", "seconds", "stable", "disagreement", "first_seconds")
    if candidate.problem:  # nothing was measured
        plain |= dict.fromkeys((*known, "warm_up_requests", "warm_up_seconds"))
    order = ("model", "format", "device", "xla", "precision", "scenario", "batch_size")
    return {name: plain.pop(name) for name in order} | latencies | plain
