"""Measurements of served models as text: tables, a line on each candidate, and the verdict."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import attrgetter

from accel_engine.inference.candidate import Candidate
from accel_engine.inference.comparison import ModelComparison, ServingChoice, choose_model, comparisons
from accel_engine.inference.measurement.percentiles import RANKS, Percentile
from accel_engine.inference.measurement.window import TOLERANCE
from accel_engine.words import numbers
from accel_tui.formatting.table_columns import ResultTable

_HEADINGS = {"p50": "P50", "p90": "P90", "p99": "P99 (95%)", "p999": "P99.9"}

_SHOWN = 2
"""Metrics in the title of a table: the one that counts, and the loss."""


def line(candidate: Candidate) -> str:
    """One line on a candidate, as it has been measured."""
    where = f"{candidate.title}: batch {candidate.batch_size}"
    if candidate.problem:
        return f"{where}: {candidate.problem}"
    p99 = candidate.percentiles.get("p99")
    late = f", p99 {numbers.latency(p99.value)}" if p99 else ""
    return f"{where}: {_rate(candidate)}{late}"


def setup_tables(candidates: Sequence[Candidate]) -> Iterator[ResultTable]:
    """A table for each setup."""
    for title, group in groupby(candidates, attrgetter("title")):
        yield _table(title, list(group))


def bench_notes(candidates: Sequence[Candidate]) -> Iterator[str]:
    """Notes on the brackets in the tables, and on the examples of the metrics."""
    if any(_is_open(name, each) for candidate in candidates for name, each in candidate.percentiles.items()):
        yield (
            "(in brackets): too few requests for the upper end of its confidence interval; "
            "raise the time limit (--seconds)"
        )
    yield from _metric_examples(candidates)


def _table(title: str, candidates: Sequence[Candidate]) -> ResultTable:
    has_latencies = any(each.percentiles for each in candidates)
    has_energy = any(each.energy is not None for each in candidates)
    header = (
        "BATCH",
        *(_HEADINGS.values() if has_latencies else ()),
        "REQUESTS/S" if candidates[0].scenario == "server" else "EXAMPLES/S",
        "FIRST CALL",
        "MEMORY",
        *(("J/EXAMPLE",) if has_energy else ()),
        "STABLE",
    )
    forms = _forms(candidates)
    rows = tuple(tuple(_row(each, forms, has_latencies=has_latencies, has_energy=has_energy)) for each in candidates)
    about = ", ".join(filter(None, (title, candidates[0].scenario, _metric_values(candidates))))
    return ResultTable(header, rows, about, optional=("MEMORY", "FIRST CALL", "P90", "P99.9"))


def _forms(candidates: Sequence[Candidate]) -> Mapping[str, Callable[[float], str]]:
    """How the numbers of each column are written."""
    known = [each for each in candidates if not each.problem]
    measured = {name: [each.percentiles[name] for each in known if name in each.percentiles] for name in RANKS}
    latencies = {name: [each.value for each in found] for name, found in measured.items()}
    latencies["p99"] += [end for each in measured["p99"] for end in (each.low, each.high) if end is not None]
    return {
        "rate": numbers.in_one_form(numbers.compact, [float(each.throughput) for each in known]),
        "first": numbers.in_one_form(numbers.latency, [each.first_seconds for each in known]),
        "memory": numbers.in_one_form(numbers.size, [each.memory or 0.0 for each in candidates]),
        **{name: numbers.in_one_form(numbers.latency, values) for name, values in latencies.items()},
    }


def _row(
    candidate: Candidate, forms: Mapping[str, Callable[[float], str]], *, has_latencies: bool, has_energy: bool
) -> list[str]:
    known = not candidate.problem
    latencies = (
        [_percentile(name, candidate.percentiles.get(name), forms[name]) for name in RANKS] if has_latencies else []
    )
    energy = [f"{candidate.energy:.3g}" if candidate.energy is not None else ""] if has_energy else []
    return [
        str(candidate.batch_size),
        *latencies,
        forms["rate"](float(candidate.throughput)) if known else "",
        forms["first"](candidate.first_seconds) if known else "",
        forms["memory"](candidate.memory) if candidate.memory is not None else "",
        *energy,
        _stability(candidate),
    ]


def _percentile(name: str, measured: Percentile | None, form: Callable[[float], str]) -> str:
    """A percentile, the 99th with its interval; in brackets if there were too few requests for it."""
    if measured is None:
        return ""
    text = form(measured.value)
    if name != "p99":
        return f"({text})" if _is_open(name, measured) else text
    low, high = ("?" if end is None else form(end) for end in (measured.low, measured.high))
    return f"{text} ({low} to {high})"


def _is_open(name: str, measured: Percentile) -> bool:
    """Whether a percentile is shown in brackets."""
    return name != "p99" and measured.high is None


def _stability(candidate: Candidate) -> str:
    """Whether the last windows agree, else by how much they differ; or why nothing could be measured."""
    if candidate.problem:
        return candidate.problem
    if candidate.stable:
        return "yes"
    return f"no, ±{100 * candidate.disagreement:.0f}%" if candidate.disagreement > TOLERANCE else "no"


def conclusions(
    candidates: Sequence[Candidate], scenario: str, target_latency: float | None, target_rate: float | None
) -> list[str]:
    """Sentences on what the measurements mean: the best batch size, and what formats and precisions cost and gain.

    Args:
        candidates: What was measured.
        scenario: How requests came.
        target_latency: Seconds that the 99th percentile may be at most; ``None`` for any.
        target_rate: Examples per second that are to be served; ``None`` for none.
    """
    found = choose_model(candidates, target_latency, target_rate)
    compared = comparisons(candidates, target_latency)
    return [
        *_verdict_sentences(found, scenario, target_latency, target_rate),
        *_comparison_sentences(compared, target_latency),
    ]


def _verdict_sentences(
    found: ServingChoice, scenario: str, target_latency: float | None, target_rate: float | None
) -> Iterator[str]:
    if found.best is None:
        if found.fastest and target_latency:
            p99 = numbers.latency(found.fastest.percentiles["p99"].value)
            yield (
                f"No batch size meets p99 <= {numbers.latency(target_latency)}: the fastest is batch "
                f"{found.fastest.batch_size} of {found.fastest.title}, with {p99}."
            )
        return
    best = found.best
    what = "the highest rate" if scenario == "server" else "the best throughput"
    within = f" within {numbers.latency(target_latency)} at p99" if target_latency else ""
    yield f"Batch {best.batch_size} of {best.title} has {what}{within}: {_rate(best)}{_p99(best)}."
    if not found.is_certain:
        yield "Its p99 may exceed that, by its confidence interval: measure with a higher time limit (--seconds)."
    if best.instability:
        yield f"It was not stable within the time limit: {best.instability}."
    if found.fastest and not target_latency and found.fastest is not best:
        yield f"Batch {found.fastest.batch_size} of {found.fastest.title} is the fastest{_p99(found.fastest)}."
    if found.machines and target_rate:
        machines = numbers.counted(found.machines, "machine")
        yield f"{target_rate:g} requests/s take {machines} like this one, without headroom."


def _p99(candidate: Candidate) -> str:
    p99 = candidate.percentiles.get("p99")
    return f", with {numbers.latency(p99.value)} at p99" if p99 else ""


def _rate(candidate: Candidate) -> str:
    unit = "requests/s" if candidate.scenario == "server" else "examples/s"
    return f"{numbers.compact(float(candidate.throughput))} {unit}"


def _metric_values(candidates: Sequence[Candidate]) -> str:
    """The main metrics of a model, which do not depend on the batch size: ``accuracy 0.9944, loss 0.0365``."""
    found = next((each.metrics for each in candidates if each.metrics), None)
    shown = islice(found.values.items(), _SHOWN) if found else ()
    return ", ".join(f"{name} {'none' if value is None else numbers.metric(value)}" for name, value in shown)


def _metric_examples(candidates: Sequence[Candidate]) -> Iterator[str]:
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


def _comparison_sentences(found: Sequence[ModelComparison], target_latency: float | None) -> Iterator[str]:
    """Sentences on what each model, format and precision costs in the monitored metric, and gains in speed and size.

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


def _metric(comparison: ModelComparison) -> str:
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
