"""The results of the finders as text, for the command line and the screen."""

from collections.abc import Iterable, Iterator

from accel_engine.finders.batch_effects import BatchEffects
from accel_engine.finders.learning_rate_finder import FoundRate, RampProgress
from accel_engine.finders.rate_suggestions import ABOUT, Suggestion, spread_text
from accel_engine.finders.throughput import MARGIN, ChosenSizes, FoundSize, MeasuredSize, SizeOptions, SizeProgress
from accel_engine.words import numbers

FEW_STEPS = 0.1
"""Share of the plan's steps below which a batch size comes with a warning."""

SIZE_HEADER = ("BATCH", "A REPLICA", "EXAMPLES/S", "STEPS/S", "MEMORY", "")


def ramp_progress(progress: RampProgress) -> str:
    """How far the ramps are, and the last rate with its loss."""
    if not progress.ramps:
        return progress.detail
    ramp, parts = progress.ramps[-1], [f"{progress.share:4.0%}", f"ramp {progress.seed} of {progress.seeds}"]
    if ramp.rates:
        parts += [f"learning rate {ramp.rates[-1]:.2g}", f"loss {numbers.metric(ramp.losses[-1])}"]
    return "  ".join(filter(None, (*parts, progress.detail)))


def size_progress(progress: SizeProgress) -> str:
    """The present phase, and about how long the rest takes, unless that is unknown or over."""
    left = progress.seconds_left or 0.0
    return f"{progress.detail}, about {numbers.duration(left)} left" if round(left) else progress.detail


def size_plan(options: SizeOptions) -> Iterator[str]:
    """How batch sizes are measured, in sentences without a stop."""
    yield f"each size trains for {options.seconds:g} s in separate processes, after compiling the steps"
    yield (
        "sizes double until one does not fit, two are slower, or a batch has all examples; the smallest that is nearly "
        "as fast as the fastest is then measured again"
    )


def size_problem(found: FoundSize) -> str:
    """Why there is no batch size; empty if there is one."""
    if found.batch_size is not None:
        return ""
    return f"no batch size trains: {found.measured[-1].problem if found.measured else found.stopped}"


def rate_header(found: FoundRate) -> tuple[str, ...]:
    """The names of the columns; from a checkpoint, seeds are orders of the examples only."""
    loss = f"LOSS AFTER {found.compared_steps:,}" if found.compared else "LOSS"
    return "SUGGESTION", "RATE", "ORDERS" if found.step else "SEEDS", loss, "TAKES"


def rate_rows(found: FoundRate) -> list[tuple[str, ...]]:
    """A row for each suggestion, the answer first."""
    best = found.best
    return [_rate_row(found, each) for each in sorted(found.suggestions.found, key=lambda each: each is not best)]


def _rate_row(found: FoundRate, each: Suggestion) -> tuple[str, ...]:
    rate, loss = numbers.learning_rate(found.planned(each.rate)), found.compared.get(each.rule)
    written = "" if loss is None else numbers.metric(loss)
    return str(each.rule), rate, _spread(found, each), written, ABOUT[each.rule]


def _spread(found: FoundRate, each: Suggestion) -> str:
    planned = Suggestion(each.rule, each.rate, each.low / found.factor, each.high / found.factor)
    return spread_text(planned) or "the same"


def rate_notes(found: FoundRate) -> Iterator[str]:
    """Notes on learning rates, in sentences without a stop."""
    if found.factor != 1:
        yield f"these are rates of the plan, which the optimizer gets times {found.factor:.3g}"
    if found.has_schedule:
        yield "the plan has a schedule, whose highest rate this is"
    if found.rate is not None:
        yield f"the learning rate was {numbers.learning_rate(found.planned(found.rate))}"
    if found.step:
        yield f"measured from the checkpoint of step {found.step:,}"
    if found.compared:
        last = f"the last {found.compared_last:,} of {found.compared_steps:,} steps"
        yield f"the loss is the mean of {last} with each rate; the first one is the answer"
    yield from found.notes
    if found.suggestions.remark:
        yield found.suggestions.remark


def size_rows(measured: Iterable[MeasuredSize], chosen: ChosenSizes | None = None) -> list[tuple[str, ...]]:
    """A row for each size, with what it is called; a column has one unit."""
    sizes = list(measured)
    rate = numbers.in_one_form(numbers.compact, [each.throughput for each in sizes])
    steps = numbers.in_one_form(numbers.compact, [each.steps_per_second for each in sizes])
    memory = numbers.in_one_form(numbers.size, [each.memory or 0.0 for each in sizes])
    return [
        (
            f"{each.batch_size:,}",
            f"{each.per_replica:,}",
            *(
                ("", "", "", each.problem)
                if each.problem
                else (
                    rate(each.throughput),
                    steps(each.steps_per_second),
                    "" if each.memory is None else memory(each.memory),
                    _names(chosen, each),
                )
            ),
        )
        for each in sizes
    ]


def _names(chosen: ChosenSizes | None, size: MeasuredSize) -> str:
    if chosen is None:
        return ""
    pairs = ((chosen.knee, "knee"), (chosen.fastest, "fastest"), (chosen.largest, "largest"))
    return ", ".join(name for each, name in pairs if each.batch_size == size.batch_size)


def size_notes(found: FoundSize) -> Iterator[str]:
    """Notes on batch sizes, in sentences without a stop."""
    yield f"no larger size was tried: {found.stopped}"
    if found.confirmed is None:
        return
    again = f"{numbers.compact(found.confirmed.throughput)} examples/s"
    yield f"{found.confirmed.batch_size:,} was measured again in a fresh process, with a validation: {again}"
    if found.memory is not None:
        yield f"the largest leaves {MARGIN:.0%} of {numbers.size(found.memory)} free"
    if found.effects is not None:
        yield from effect_notes(found.effects)


def effect_notes(effects: BatchEffects) -> Iterator[str]:
    """Effects of a batch size on steps, learning rate and quality, in sentences without a stop."""
    if effects.factor == 1:
        yield "the plan has this batch size already"
        return
    if effects.total_steps:
        in_all = f"{effects.total_steps:,} in all, not {effects.steps_before:,}"
        yield f"{effects.steps_per_epoch:,} steps an epoch; {in_all}"
    rate = "" if effects.learning_rate is None else f": --learning-rate {effects.learning_rate:g}"
    yield (
        f"by the {effects.rule} rule, the learning rate goes with it times {effects.rate_factor:.3g}{rate}; "
        "accel-tui find learning-rate measures it"
    )
    if effects.quality:
        yield effects.quality
    if 0 < effects.total_steps < FEW_STEPS * effects.steps_before:
        fewer = f"{effects.steps_before / effects.total_steps:.0f} times fewer updates than the plan"
        yield f"{fewer}: it may learn less; train more epochs, or take a smaller batch"
