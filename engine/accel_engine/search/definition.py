"""The definition of a search: the plan, the parameters that vary, the objectives and the limits; without Optuna."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from accel_engine.errors import UsageError
from accel_engine.plan.interval import parse_duration
from accel_engine.plan.monitor import is_better_lower
from accel_engine.plan.options import OptionSpec, option
from accel_engine.plan.task_choices import metric_name

DEFAULT_TRIALS = 40

MAX_TRIALS = 100_000
"""The most trials of a search."""

AUTO = "auto"
"""A sampler, or pruner, that is chosen by the objectives and the number of trials."""

SAMPLERS = (AUTO, "tpe", "random", "grid")
DIRECTIONS = ("maximize", "minimize")
PRUNERS = (AUTO, "hyperband", "asha", "median", "off")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A field of the plan that varies."""

    name: str
    """Name of the plan's field."""
    low: float | None = None
    """The least value of a range; ``None`` for choices."""
    high: float | None = None
    """The largest value of a range, which is included."""
    log: bool = False
    """Whether the logarithm of the value is sampled uniformly."""
    step: float | None = None
    """The distance of two values of a range; ``None`` for any."""
    whole: bool = False
    """Whether values of the range are whole numbers."""
    choices: tuple[Any, ...] = ()
    """The values, in the field's type; empty for a range."""


def _read_within(text: str) -> str:
    if text.strip():
        parse_duration("within", text)
    return text.strip()


def _read_direction(text: str) -> str:
    direction = text.strip()
    if direction and direction not in DIRECTIONS:
        raise UsageError(f"{direction!r} is not a direction: use {' or '.join(DIRECTIONS)}")
    return direction


def _read_name(text: str) -> str:
    from accel_engine.search.study_paths import study_directory  # slow to import; the first frame does not need it

    if text.strip():
        study_directory(text.strip())
    return text.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """The options of a search besides the plan; all as :class:`StudyDefinition` has it, but for texts."""

    parameters: Sequence[Parameter] = field(default=())
    """The fields that vary."""
    trials: int = option(DEFAULT_TRIALS, OptionSpec("Number of trials.", int, minimum=1, maximum=MAX_TRIALS))
    within: str = option(
        "",
        OptionSpec(
            "Start no trial after this time, e.g. 2h; then confirm the best.",
            str,
            hint="no limit",
            metavar="TIME",
            read=_read_within,
        ),
    )
    objectives: Sequence[str] = option(
        (),
        OptionSpec(
            "A further objective: time, memory, latency or a metric.",
            tuple,
            flags=("--objective",),
            metavar="NAME",
            repeats=True,
        ),
    )
    direction: str = option(
        "",
        OptionSpec(
            "Of the monitor, if its name does not tell.",
            str,
            hint="as its name tells",
            choices=DIRECTIONS,
            read=_read_direction,
        ),
    )
    sampler: str = option(AUTO, OptionSpec("How values are proposed.", str, choices=SAMPLERS))
    pruner: str = option(AUTO, OptionSpec("How trials are ended early.", str, choices=PRUNERS))
    at_once: int = option(
        0, OptionSpec("Most trials at once; 0 for one for each accelerator.", int, minimum=0, maximum=MAX_TRIALS)
    )
    confirm: int = option(3, OptionSpec("Seeds that confirm the best plan.", int, minimum=0, maximum=MAX_TRIALS))
    patience: int = option(
        0,
        OptionSpec(
            "End after this number of trials without a better one; 0 for no limit.",
            int,
            minimum=0,
            maximum=MAX_TRIALS,
            flags=("--search-patience",),
        ),
    )
    storage: str = option(
        "", OptionSpec("Journal file or database that other machines share.", str, metavar="PATH|URL")
    )
    name: str = option(
        "", OptionSpec("Name of the search; of its model and data by default.", str, metavar="NAME", read=_read_name)
    )


@dataclass(frozen=True, slots=True)
class Objective:
    """A figure of a trial to be made as large, or small, as possible."""

    name: str
    """A metric, such as ``validation_accuracy``, or ``time``, ``memory`` or ``latency``."""
    maximize: bool
    """Whether larger is better."""


@dataclass(frozen=True, slots=True)
class StudyDefinition:
    """All that a user chooses of a search."""

    name: str
    """The study's name, unique in this program's directory."""
    plan: Mapping[str, Any]
    """The fields of the plan whose other values all trials share."""
    parameters: tuple[Parameter, ...]
    """The fields that vary."""
    objectives: tuple[Objective, ...]
    """The first one is the monitor, by which trials are pruned."""
    trials: int = DEFAULT_TRIALS
    """How many trials to run."""
    within: float | None = None
    """Seconds after which no further trial starts, but the confirmation does; ``None`` for no limit."""
    sampler: str = AUTO
    """One of :data:`SAMPLERS`."""
    pruner: str = AUTO
    """One of :data:`PRUNERS`."""
    seed: int = 0
    """Seed of the proposals, and of all trials' runs unless the plan has another."""
    at_once: int = 0
    """Most trials that train at the same time; 0 for as many as devices are free."""
    confirm: int = 3
    """Seeds with which the best plan is trained again at the end."""
    storage: str = ""
    """Address of a database, or path of a journal file, that other machines share; empty for the search's own file."""
    patience: int = 0
    """Trials without a better one after which the search ends; 0 for no limit."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The best plan, trained again with several seeds."""

    trial: int
    """Number of the best trial."""
    runs: tuple[str, ...] = ()
    """Ids of the runs that confirm it."""
    values: tuple[float, ...] = field(default=())
    """The monitor's best value of each that has finished."""
    mean: float | None = None
    """Their mean; ``None`` before the first."""
    spread: float | None = None
    """Their standard deviation; ``None`` with fewer than two."""


FIGURES = {
    "time": "seconds of training, without validation and checkpoints",
    "memory": "most bytes of a device that the engine has used",
    "latency": "median seconds of a prediction for one example",
}
"""Objectives that are not metrics, with what they are; lower is better."""


DIRECTION_OF_MODE = {"min": "minimize", "max": "maximize"}
"""The direction of a plan's ``monitor_mode``, unless that is ``auto``."""


def _objective_of(name: str, direction: str = "") -> Objective:
    """An objective.

    Args:
        name: A metric, or one of :data:`FIGURES`.
        direction: One of :data:`DIRECTIONS`; empty to follow from the name.

    Raises:
        UsageError: The name is empty, or does not tell the direction.
    """
    name = metric_name(name)
    if not name:
        raise UsageError("an objective has no name: use a metric, such as val_accuracy, or time, memory or latency")
    if _read_direction(direction):
        return Objective(name, direction == "maximize")
    lower = True if name in FIGURES else is_better_lower(name)
    if lower is None:
        raise UsageError(
            f"the name {name} does not tell whether larger values are better: if the model measures it, "
            "choose the direction maximize or minimize"
        )
    return Objective(name, not lower)


def objectives_of(monitor: str, further: Sequence[str], direction: str = "") -> tuple[Objective, ...]:
    """The objectives of a search.

    Args:
        monitor: The first one, a metric.
        further: Others.
        direction: Of the monitor; empty to follow from its name.

    Raises:
        UsageError: The monitor is not a metric, one is given twice, or a direction is unknown.
    """
    if monitor in FIGURES:
        raise UsageError(f"the monitor is a metric, unlike {monitor}: add --objective {monitor} besides it")
    found = (_objective_of(monitor, direction), *map(_objective_of, further))
    names = [each.name for each in found]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise UsageError(f"{twice} is an objective twice")
    return found


def better(objective: Objective, first: float, second: float) -> bool:
    """Whether the first value is better than the second."""
    return first > second if objective.maximize else first < second
