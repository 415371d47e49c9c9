"""The metrics of measured models as text, and what formats and precisions cost and gain."""

from collections.abc import Iterator, Sequence
from itertools import islice

from accel_engine.inference.candidate import Candidate
from accel_engine.inference.comparison import Comparison
from accel_tui.formatting import numbers

_SHOWN = 2
"""Metrics in the title of a table: the one that counts, and the loss."""


def metric_values(candidates: Sequence[Candidate]) -> str:
    """The main metrics of a model, which do not depend on the batch size: ``accuracy 0.9944, loss 0.0365``."""
    found = next((each.metrics for each in candidates if each.metrics), None)
    shown = islice(found.values.items(), _SHOWN) if found else ()
    return ", ".join(f"{name} {'none' if value is None else numbers.metric(value)}" for name, value in shown)


def metric_examples(candidates: Sequence[Candidate]) -> Iterator[str]:
    """A line about the examples that metrics are of, or one for each model where they differ.

    Then a line about each model that may have seen them.
    """
    texts: dict[str, str] = {}
    for each in candidates:
        if found := each.metrics:
            count = numbers.count(found.examples)
            texts.setdefault(each.model, f"Metrics on {count} {found.split} examples of {found.source}.")
    if len(set(texts.values())) == 1:
        yield next(iter(texts.values()))
    else:
        yield from (f"{model}: {text}" for model, text in texts.items())
    for model in dict.fromkeys(each.model for each in candidates if each.metrics and each.metrics.is_foreign):
        yield f"{model} does not tell which run it is from: its own training may have seen these examples."


def comparison_sentences(found: Sequence[Comparison], target_latency: float | None) -> Iterator[str]:
    """What each model, format and precision costs in the metric that counts, and gains in speed and size.

    Args:
        found: The comparisons, all with the same first candidate.
        target_latency: Seconds that the 99th percentile may be at most; ``None`` for any.
    """
    if found:
        yield f"Compared with batch {found[0].first.batch_size} of {found[0].first.title}:"
    for each in found:
        if not each.meets_target and target_latency:
            yield f"{each.other.title}: {_metric(each)}no batch size within {numbers.latency(target_latency)} at p99."
            continue
        size = "" if each.size is None else f", size {_ratio(each.size)} times"
        gained = f"{_metric(each)}throughput {_ratio(each.throughput)} times{size}"
        yield f"{each.other.title}, batch {each.other.batch_size}: {gained}."


def _metric(comparison: Comparison) -> str:
    """Such as ``accuracy 0.9917 (-0.0028), ``; empty without metrics."""
    if not comparison.other.metrics:
        return ""
    name, value = comparison.other.metrics.main
    if value is None:
        return f"{name} none, "
    difference = comparison.metric_difference
    if difference is None:
        return f"{name} {numbers.metric(value)}, "
    change = f"{'+' * (difference > 0)}{numbers.metric(difference)}" if difference else "no difference"
    return f"{name} {numbers.metric(value)} ({change}), "


def _ratio(value: float) -> str:
    """Such as ``23``, ``2.4`` or ``0.28``."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2g}"
