"""Services, as text: how one compares with a trained model, and the deployments of this machine."""

from collections.abc import Iterator
from typing import Any

from accel_engine.requests.check_service import ServiceCheck
from accel_engine.words import numbers
from accel_tui.formatting.model_export import model_row


def check_lines(found: ServiceCheck) -> Iterator[str]:
    """What was compared, whether it is equal, and how fast the service is."""
    version = f", version {found.version}" if found.version else ""
    by = ", ".join(filter(None, (found.server, found.platform)))
    yield f"{found.model}{version}, over {found.protocol}{f' ({by})' if by else ''}"
    examples = f"{found.examples:,} " if found.examples else ""
    yield f"compared with {found.name} at step {found.step:,} on {examples}{found.split} examples"
    yield verdict(found)
    for each in found.loads:
        stable = "" if each.is_stable else ", not stable yet"
        yield (
            f"{numbers.counted(each.connections, 'connection')}: {numbers.compact(float(each.rate))} requests/s, "
            f"p50 {numbers.latency(each.p50)}, p99 {numbers.latency(each.p99)}{stable}"
        )


def verdict(found: ServiceCheck) -> str:
    """Whether the service answers as the trained model."""
    if found.served.problem:
        return f"not equal: {found.served.problem}"
    value = found.served.mean if found.by_mean else found.served.largest
    name = "mean" if found.by_mean else "largest"
    return f"equal: the {name} difference is {value or 0:.2g}, and {found.tolerance:g} is the tolerance"


def check_header(found: ServiceCheck) -> tuple[str, ...]:
    """The titles of the columns of :func:`check_rows`."""
    return ("MODEL", *(name.upper() for name in found.original.metrics), "DIFFERENCE", "LATENCY")


def check_rows(found: ServiceCheck) -> list[tuple[str, ...]]:
    """The trained model and the service, side by side."""
    metrics = tuple(found.original.metrics)
    rows = (model_row(each, metrics, is_original=each is found.original) for each in (found.original, found.served))
    return [(*row[: 2 + len(metrics)], row[-2]) for row in rows]


def check_values(found: ServiceCheck) -> dict[str, Any]:
    """A check for ``--json``."""
    return {
        "run": found.name,
        "step": found.step,
        "split": found.split,
        "examples": found.examples,
        "protocol": found.protocol,
        "model": found.model,
        "version": found.version or None,
        "platform": found.platform or None,
        "server": found.server or None,
        "url": found.served.path,
        "equal": not found.served.problem,
        "problem": found.served.problem or None,
        "tolerance": found.tolerance,
        "largest_difference": found.served.largest,
        "mean_difference": found.served.mean,
        "metrics": found.served.metrics,
        "trained_metrics": found.original.metrics,
        "latency": found.served.latency,
        "loads": [
            {
                "connections": each.connections,
                "rate": each.rate,
                "p50": each.p50,
                "p99": each.p99,
                "stable": each.is_stable,
            }
            for each in found.loads
        ],
    }
