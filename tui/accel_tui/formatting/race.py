"""The results of a race as texts, a table and conclusions: for the command and the screen."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.cells import cell_len

from accel_engine.plan.placement import process_count
from accel_engine.race.comparison import find_best, has_enough_turns, winners
from accel_engine.race.configuration import Best, ConfigurationResult, ConfigurationState, LearnedValue
from accel_engine.words import numbers
from accel_tui.formatting.bars import bar, interval
from accel_tui.formatting.table_columns import GAP, Column, line_cells
from accel_tui.formatting.text import fit

if TYPE_CHECKING:  # its imports are slow
    from accel_engine.race.cure_race import CureRace

TABLE_TITLE = 22
"""The most columns of a title in the table."""


def marks_of(results: Sequence[ConfigurationResult]) -> dict[str, tuple[str, ...]]:
    """The marks of configurations by their titles, once one was compared with another in enough turns."""
    if sum(each.is_measured and has_enough_turns(each) for each in results) < 2:
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for mark, result in find_best(results).items():
        found[result.title] = (*found.get(result.title, ()), mark.value)
    return found


def marks_text(marks: Sequence[str]) -> str:
    """The marks of a configuration in at most 21 columns."""
    if len(marks) == len(Best):
        return "best in all three"
    return ", ".join(marks).replace(f"{Best.LEAST_MEMORY}, {Best.LEAST_ENERGY}", "least memory, energy")


def state_text(result: ConfigurationResult) -> str:
    """How far a configuration is, and why it has ended, if it has; what it has learned, where that is compared."""
    if result.learned:
        return f"{result.learned.metric} {learned_text(result.learned)}"
    match result.state:
        case ConfigurationState.COMPILING:
            return "starting a process and compiling…"
        case ConfigurationState.READY:
            return f"compiled in {compile_text(result)}, waits for its turns"
        case ConfigurationState.FAILED | ConfigurationState.REFUSED | ConfigurationState.ENDED_EARLY:
            return f"{result.state}: {result.reason}"
    return result.state.value


def learned_text(learned: LearnedValue) -> str:
    """The metric of a plan, with its interval: ``0.2867, between 0.2801 and 0.2933``."""
    low, high = learned.between or (0.0, 0.0)
    between = f", between {numbers.metric(low)} and {numbers.metric(high)}" if learned.between else ""
    return f"{numbers.metric(learned.value)}{between}"


def is_alone(result: ConfigurationResult) -> bool:
    """Whether it was compared with the plan without turns beside it, as on a device for one process."""
    return result.against_reference is not None and not result.ratios


def ratio_text(result: ConfigurationResult) -> str:
    """The rate as a multiple of the reference's: ``2.20x``; empty without one."""
    if result.configuration.is_reference:
        return "1.00x"
    return f"{result.against_reference.value:.2f}x" if result.against_reference else ""


def memory_text(result: ConfigurationResult) -> str:
    """The memory: ``177 MiB``; empty if it is unknown."""
    return "" if result.memory is None else numbers.size(result.memory)


def tolerance_text(result: ConfigurationResult) -> str:
    """By how much the ends of the interval of the rate are away from it, at most: ``±12%``; empty if unknown."""
    return spread_of(result.examples_per_second, result.between)


def spread_of(rate: float | None, between: tuple[float, float] | None) -> str:
    """The same for a rate and its interval."""
    if between is None or not rate:
        return ""
    return f"±{max(rate - between[0], between[1] - rate) / rate:.0%}"


def compile_text(result: ConfigurationResult) -> str:
    """How long compiling took: ``2.9 s``; empty if unknown."""
    return "" if result.compile_seconds is None else f"{result.compile_seconds:.1f} s"


def energy_text(result: ConfigurationResult) -> str:
    """Joules an example, or why they are unknown."""
    return result.energy_problem if result.joules is None else f"{numbers.compact(result.joules)} J"


def losses_text(result: ConfigurationResult) -> str:
    """Whether its first losses equal the reference's, over how many steps."""
    check = result.losses
    if check is None:
        return ""
    return f"{check.text}, {numbers.counted(check.steps, 'step')}" if check.steps else check.text


def table_of(results: Sequence[ConfigurationResult]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The headings and the rows of the configurations that were measured, the fastest first."""
    learned = [(each.title, each.learned) for each in results if each.learned]
    if learned:
        metric = learned[0][1].metric.upper()
        return ("CONFIGURATION", metric), [(title, learned_text(value)) for title, value in learned]
    marks = marks_of(results)
    has_energy = any(each.joules is not None for each in results)
    measured = sorted(
        (each for each in results if each.is_measured), key=lambda each: each.examples_per_second or 0.0, reverse=True
    )
    energy = ("J/EXAMPLE",) if has_energy else ()
    header = ("CONFIGURATION", "EXAMPLES/S", "SPEED", "MEMORY", "COMPILE", *energy, "LOSSES")
    rate, memory = _forms(measured)
    return header, [_row(each, marks, rate, memory, has_energy=has_energy) for each in measured]


def _row(
    result: ConfigurationResult,
    marks: Mapping[str, tuple[str, ...]],
    rate: Callable[[float], str],
    memory: Callable[[ConfigurationResult], str],
    *,
    has_energy: bool,
) -> tuple[str, ...]:
    notes = [*([result.losses.text] if result.losses else []), *marks.get(result.title, ())]
    if result.state is ConfigurationState.ENDED_EARLY:
        notes.append("ended early")
    energy = ("" if result.joules is None else numbers.compact(result.joules),) if has_energy else ()
    return (
        fit(result.title, min(cell_len(result.title), TABLE_TITLE)),
        f"{rate(result.examples_per_second or 0.0)} {tolerance_text(result)}".rstrip(),
        ratio_text(result),
        memory(result),
        compile_text(result),
        *energy,
        "; ".join(filter(None, notes)),
    )


def notes_on(results: Sequence[ConfigurationResult]) -> Iterator[str]:
    """Notes on the table, and the configurations that it lacks, in lines."""
    kinds = {each.memory_of for each in results if each.is_measured and each.memory is not None}
    has_several = any(process_count(each.configuration.plan) > 1 for each in results if each.is_measured)
    growing = "all processes of a configuration grew together" if has_several else "the process grew"
    where = {"host": f"by which {growing} on this machine"}
    texts = [where.get(kind, f"that a process allocated on a {kind.upper()}") for kind in sorted(kinds)]
    if texts:
        yield f"Memory is the most {' or '.join(texts)}."
    if steps := max((each.losses.steps for each in results if each.losses), default=0):
        about = "a difference is the largest, as a share of the mean of this plan's"
        yield f"Losses are of the first {numbers.counted(steps, 'step')}; {about}."
    if any(each.losses and each.losses.difference and not each.losses.is_close for each in results):
        yield "Dropout and other random layers draw other numbers with other batch splits, replicas or precisions."
    if any(each.ratios and not each.configuration.is_reference for each in results):
        yield "Speed is against this plan in the same rounds; examples/s are that times the median of this plan."
    if any(map(is_alone, results)):
        yield "Measured one after the other, not in turns: other programs may have slowed some of them down."
    if problem := next((each.energy_problem for each in results if each.is_measured and each.energy_problem), ""):
        yield f"No energy: {problem}."
    if len({each.energy_of for each in results if each.joules is not None}) > 1:
        yield "Energy is the processor's for configurations on a CPU, and only the GPUs' for the others."
    changed = {each.configuration.other_training for each in results if each.is_measured}
    if "other batches" in changed:
        yield "Another batch size changes training: it is compared by examples a second, and is never the best."
    if "other updates" in changed:
        yield "Updates of parameter-server are asynchronous: other strategies train differently, and are never best."
    for each in results:
        if each.state in (ConfigurationState.FAILED, ConfigurationState.REFUSED):
            yield f"{each.title}: {state_text(each)}"
    if missing := [each for each in results if each.state is ConfigurationState.NOT_MEASURED]:
        why = f", because {missing[0].reason}" if missing[0].reason else ""
        yield f"Not measured{why}: {', '.join(each.title for each in missing)}."


def race_verdict(results: Sequence[ConfigurationResult]) -> str:
    """The fastest configuration in a sentence; empty if nothing was measured."""
    best = best_of(results)
    if best is None:
        return "Too few turns were measured to tell the fastest." if any(each.is_measured for each in results) else ""
    if best.configuration.is_reference:
        return "No configuration is clearly faster than this plan."
    titles, options = [best.title, *(each.title for each in _about_as_fast(results, best))], best.configuration.options
    ratio = best.against_reference.value if best.against_reference else None
    factor = f"{numbers.times(ratio)} as fast as this plan" if ratio else ""
    if not titles[1:]:
        return f"The fastest is {best.title}{', ' * bool(factor)}{factor}: {options}"
    titles = [*titles[:2], f"{len(titles) - 2} more"] if len(titles) > 3 else titles
    first = f"the first is {factor}" if factor else "the first"
    return f"{', '.join(titles[:-1])} and {titles[-1]} are about as fast; {first}: {options}"


def cure_verdict(raced: "CureRace") -> str:
    """Whether a cure helps, in a sentence."""
    without, cure = raced.results
    if raced.quantity == "speed":
        return race_verdict(raced.results)
    if raced.quantity == "memory":
        does, is_least = "takes less memory than", "takes clearly less memory than"
        values = [memory_text(each) or "out of memory" for each in (cure, without)]
    else:
        does, is_least = "learns better than", "learns clearly better than"
        values = [numbers.metric(each.learned.value) for each in (cure, without) if each.learned]
    if not raced.is_better:
        return f"No configuration {is_least} this plan."
    return f"{cure.title.capitalize()} {does} this plan, {' instead of '.join(values)}: {cure.configuration.options}"


def _about_as_fast(results: Sequence[ConfigurationResult], best: ConfigurationResult) -> list[ConfigurationResult]:
    """The other configurations that beat the plan, and whose intervals overlap with the fastest one's."""
    if best.between is None:
        return []
    others = (each for each in winners(results) if each.title != best.title and has_enough_turns(each))
    return [each for each in others if each.between and each.between[1] >= best.between[0]]


def best_of(results: Sequence[ConfigurationResult]) -> ConfigurationResult | None:
    """The fastest configuration that trains as the plan does; ``None`` if nothing was measured."""
    return find_best(results).get(Best.FASTEST)


TITLE_WIDTH = 26
"""The most columns of a title beside a bar."""

TITLE = "configuration"
"""The header of the titles."""

LEAST_BAR, BAR_BESIDE_MARKS = 4, 8
"""The fewest columns of a bar, and of one that leaves room for marks."""

LEAST_SPREAD = 3
"""The fewest columns of a spread that is drawn."""

MARKS = 21
"""Columns of two marks."""

WIDE, WIDEST = 104, 140
"""Columns from which the spread has room, and compile times, energy and losses."""

ENDED = (
    ConfigurationState.ENDED_EARLY,
    ConfigurationState.FAILED,
    ConfigurationState.REFUSED,
    ConfigurationState.NOT_MEASURED,
)
"""States in which a configuration is a note."""


def race_columns(
    results: Sequence[ConfigurationResult], width: int, title: str = ""
) -> list[Column[ConfigurationResult]]:
    """The columns of a table: a bar, whose end is the spread, and figures; or how far a configuration is.

    Args:
        results: The rows.
        width: Cells of a line.
        title: The header of the titles.
    """
    marks = marks_of(results)
    has_two = any(len(each) > 1 for each in marks.values())
    share = width // 4 - 2 if has_two else width // 3
    titles = min(max((cell_len(each.title) for each in results), default=0), TITLE_WIDTH, max(share, 8))
    titles = max(titles, cell_len(title))
    figures = _figures(results, width)
    room = width - titles - GAP - sum(each.width + GAP for each in figures)
    wanted = MARKS if has_two and room - MARKS - GAP >= BAR_BESIDE_MARKS else 13
    marks_width = wanted if room - wanted - GAP >= BAR_BESIDE_MARKS else 0
    bar = max(room - (marks_width and marks_width + GAP), LEAST_BAR)
    longest = max((each.between[1] for each in results if each.between and each.is_measured), default=0.0)

    def colour(result: ConfigurationResult) -> str:
        is_best = Best.FASTEST in marks.get(result.title, ())
        return "note" if result.state in ENDED else "success" if is_best else ""

    def bar_colour(result: ConfigurationResult) -> str:
        if not _has_bar(result) and not result.learned:
            return "error" if result.state is ConfigurationState.FAILED else "note"
        return colour(result) or "primary"

    def drawn(result: ConfigurationResult, _: float) -> str:
        return _bar(result, bar, longest) if _has_bar(result) else state_text(result)

    def note(result: ConfigurationResult, _: float) -> str:
        own = marks.get(result.title, ())
        text = marks_text(own)
        return (text if cell_len(text) <= marks_width else own[0]) or _note(result)

    noted: Column[ConfigurationResult] = Column(
        "",
        marks_width,
        note,
        colour=lambda each: "success" if marks.get(each.title) else "note",
    )
    return [
        Column(title, titles, lambda each, _: each.title, colour=colour),
        Column("", bar, drawn, colour=bar_colour, draw=drawn),
        *(replace(each, colour=colour) for each in figures),
        *([replace(noted, text=_of_measured(noted.text))] if marks_width else []),
    ]


_Text = Callable[[ConfigurationResult, float], str]


def _figures(results: Sequence[ConfigurationResult], width: int) -> list[Column[ConfigurationResult]]:
    """The columns of figures that leave room for a bar."""

    def figure(title: str, width: int, text: Callable[[ConfigurationResult], str]) -> Column[ConfigurationResult]:
        return Column(title, width, _of_measured(lambda each, _: text(each)), right=True)

    written, sized = _forms(results)
    rate = figure("examples/s", 10, lambda each: written(each.examples_per_second or 0.0))
    spread = [figure("spread", 6, tolerance_text)] if width >= WIDE else []
    common = [rate, *spread, figure("speed", 5, ratio_text), figure("memory", 8, sized)]
    if width < WIDEST:
        return common
    has_energy = any(each.joules is not None for each in results)
    energy = figure("J/example", 9, lambda each: energy_text(each) if each.joules else "")
    return [
        *common,
        figure("compile", 7, compile_text),
        *([energy] if has_energy else []),
        figure("losses", 18, lambda each: each.losses.text if each.losses else ""),
    ]


def _forms(
    results: Sequence[ConfigurationResult],
) -> tuple[Callable[[float], str], Callable[[ConfigurationResult], str]]:
    """How a table writes rates, and the memory of a configuration."""
    rate = numbers.in_one_form(numbers.compact, [each.examples_per_second or 0.0 for each in results])
    size = numbers.in_one_form(numbers.size, [each.memory or 0.0 for each in results])
    return rate, lambda each: "" if each.memory is None else size(each.memory)


def _has_bar(result: ConfigurationResult) -> bool:
    return result.is_measured and result.between is not None and result.examples_per_second is not None


def _of_measured(text: _Text) -> _Text:
    """A text that only configurations with a bar have, so that the state of others has its room."""
    return lambda each, now: text(each, now) if _has_bar(each) else ""


def _bar(result: ConfigurationResult, width: int, longest: float) -> str:
    """A bar that is solid up to the lower end of the spread, which follows with the value: ``━━━━├─●─┤``."""
    low, high = result.between or (0.0, 0.0)
    rate = result.examples_per_second or 0.0
    solid, end = (round(width * each / longest) for each in (low, high))
    if end - solid < LEAST_SPREAD:
        return bar(rate / longest, width)
    return "━" * solid + interval(low, rate, high, (low, high), end - solid)


def heading(results: Sequence[ConfigurationResult], width: int) -> list[tuple[str, str]]:
    """The titles above :func:`bars`; nothing where no configuration has figures."""
    if not any(map(_has_bar, results)):
        return []
    columns = race_columns(results, width, TITLE)
    return list(line_cells([(each, each.width) for each in columns], [(each.title, "note") for each in columns]))


def bars(results: Sequence[ConfigurationResult], width: int, title: str = "") -> list[list[tuple[str, str]]]:
    """A line for each configuration: texts, each with a theme colour or none.

    Args:
        results: The results.
        width: Cells of a line.
        title: The header of the titles, which have room for it.
    """
    columns = [(each, each.width) for each in race_columns(results, width, title)]
    lines = ([(each.text(result, 0.0), each.colour(result)) for each, _ in columns] for result in results)
    return [list(line_cells(columns, line)) for line in lines]


def _note(result: ConfigurationResult) -> str:
    if result.state is ConfigurationState.ENDED_EARLY:
        return "ended early"
    return result.configuration.other_training
