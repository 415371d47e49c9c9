"""What was measured of models as they are served, as text: tables, a line on each candidate, and the verdict."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from accel_engine.inference.candidate import Candidate
from accel_engine.inference.comparison import comparisons
from accel_engine.inference.measurement.percentiles import RANKS, Percentile
from accel_engine.inference.measurement.window import TOLERANCE
from accel_engine.inference.verdict import Verdict, verdict
from accel_tui.formatting import numbers
from accel_tui.formatting.bench_metrics import comparison_sentences, metric_examples, metric_values

_HEADINGS = {"p50": "P50", "p90": "P90", "p99": "P99 (95%)", "p999": "P99.9"}


def line(candidate: Candidate) -> str:
    """One line on a candidate, as it has been measured."""
    where = f"{candidate.title}: batch {candidate.batch_size}"
    if candidate.problem:
        return f"{where}: {candidate.problem}"
    p99 = candidate.percentiles.get("p99")
    late = f", p99 {numbers.latency(p99.value)}" if p99 else ""
    return f"{where}: {_rate(candidate)}{late}"


@dataclass(frozen=True, slots=True)
class BenchTable:
    """What was measured of a setup, a line for each batch size.

    Attributes:
        title: The setup, the scenario and the main metrics.
        header: The headings.
        rows: The cells.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables(candidates: Sequence[Candidate]) -> Iterator[BenchTable]:
    """A table for each setup."""
    for title, group in groupby(candidates, attrgetter("title")):
        yield _table(title, list(group))


def notes(candidates: Sequence[Candidate]) -> Iterator[str]:
    """What brackets in the tables mean, and of which examples the metrics are."""
    if any(_is_open(name, each) for candidate in candidates for name, each in candidate.percentiles.items()):
        yield (
            "(in brackets): too few requests for the upper end of its confidence interval; "
            "raise the time limit (--seconds)"
        )
    yield from metric_examples(candidates)


def _table(title: str, candidates: Sequence[Candidate]) -> BenchTable:
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
    rows = tuple(tuple(_row(each, has_latencies=has_latencies, has_energy=has_energy)) for each in candidates)
    about = ", ".join(filter(None, (title, candidates[0].scenario, metric_values(candidates))))
    return BenchTable(about, header, rows)


def _row(candidate: Candidate, *, has_latencies: bool, has_energy: bool) -> list[str]:
    known = not candidate.problem
    latencies = [_percentile(name, candidate.percentiles.get(name)) for name in RANKS] if has_latencies else []
    energy = [f"{candidate.energy:.3g}" if candidate.energy is not None else ""] if has_energy else []
    return [
        str(candidate.batch_size),
        *latencies,
        numbers.compact(float(candidate.throughput)) if known else "",
        numbers.latency(candidate.first_seconds) if known else "",
        numbers.long_size(candidate.memory) if candidate.memory is not None else "",
        *energy,
        _stability(candidate),
    ]


def _percentile(name: str, measured: Percentile | None) -> str:
    """A percentile, the 99th with its interval; in brackets if there were too few requests for it."""
    if measured is None:
        return ""
    text = numbers.latency(measured.value)
    if name != "p99":
        return f"({text})" if _is_open(name, measured) else text
    low, high = ("?" if end is None else numbers.latency(end) for end in (measured.low, measured.high))
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
    found = verdict(candidates, target_latency, target_rate)
    compared = comparisons(candidates, target_latency)
    return [
        *_verdict_sentences(found, scenario, target_latency, target_rate),
        *comparison_sentences(compared, target_latency),
    ]


def _verdict_sentences(
    found: Verdict, scenario: str, target_latency: float | None, target_rate: float | None
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
        machines = "1 machine" if found.machines == 1 else f"{numbers.count(found.machines)} machines"
        yield f"{target_rate:g} requests/s take {machines} like this one, without headroom."


def _p99(candidate: Candidate) -> str:
    p99 = candidate.percentiles.get("p99")
    return f", with {numbers.latency(p99.value)} at p99" if p99 else ""


def _rate(candidate: Candidate) -> str:
    unit = "requests/s" if candidate.scenario == "server" else "examples/s"
    return f"{numbers.compact(float(candidate.throughput))} {unit}"
