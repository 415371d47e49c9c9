"""The axis of a parameter: linear, logarithmic, or choices side by side."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel_engine.search.definition import Parameter
from accel_engine.search.trial import Trial
from accel_tui.formatting.text import shorten
from accel_tui.study_state.state import Floats
from accel_tui.study_state.study_texts import parameter_text
from accel_tui.widgets.chart import raster
from accel_tui.widgets.chart.axes import Axis, LogAxis

_LONGEST = 12  # cells of the name of a choice


@dataclass(frozen=True, slots=True)
class ChoiceAxis(Axis):
    """Choices at 0, 1, 2 and so on."""

    names: tuple[str, ...] = ()
    """Their names."""

    def ticks(self, max_count: int) -> list[float]:
        """The positions of the choices, or of every second one and so on."""
        stride = max(1, math.ceil(len(self.names) / max(max_count, 1)))
        return [float(index) for index in range(0, len(self.names), stride)]

    def ticks_on_rows(self, rows: int, max_count: int) -> list[tuple[float, int]]:
        """The positions with the rows of their dots, counted from 0 at the end."""
        ticks = self.ticks(max_count)
        dots = raster.dot_rows(self.fraction(np.array(ticks)), rows + 1)
        return [(tick, dot // raster.DOTS) for tick, dot in zip(ticks, dots.tolist(), strict=True)]

    def labels(self, ticks: Sequence[float]) -> list[str]:
        """The names of the choices; at an end of the axis, of the nearest."""
        last = len(self.names) - 1
        return [shorten(self.names[min(max(round(tick), 0), last)], _LONGEST) for tick in ticks]


def axis_of_parameter(parameter: Parameter, trials: Iterable[Trial] = ()) -> Axis:
    """The axis of a parameter's range, and of the values that trials have beyond it, from before it was changed."""
    if parameter.choices:
        names = tuple(parameter_text(choice) for choice in choices_of(parameter, trials))
        return ChoiceAxis(-0.5, len(names) - 0.5, names)
    values = [trial.values.get(parameter.name) for trial in trials]
    known = [float(value) for value in values if isinstance(value, int | float) and math.isfinite(value)]
    low = min([*known, *([] if parameter.low is None else [parameter.low])], default=0.0)
    high = max([*known, *([] if parameter.high is None else [parameter.high])], default=1.0)
    if not high > low:
        low, high = low - 0.5, low + 0.5
    return LogAxis(low, high) if parameter.log and low > 0 else Axis(low, high)


def choices_of(parameter: Parameter, trials: Iterable[Trial]) -> tuple[Any, ...]:
    """The choices of a parameter, and earlier ones that trials have."""
    found = list(parameter.choices)
    for trial in trials:
        value = trial.values.get(parameter.name)
        if parameter.name in trial.values and value not in found:
            found.append(value)
    return tuple(found)


def positions(parameter: Parameter, trials: Sequence[Trial]) -> Floats:
    """The position of each trial on the parameter's axis, shape ``[trials]``; NaN for one without the parameter."""
    name = parameter.name
    if parameter.choices:
        known: Mapping[str, int] = {
            parameter_text(choice): index for index, choice in enumerate(choices_of(parameter, trials))
        }
        return np.array(
            [
                known.get(parameter_text(trial.values[name]), math.nan) if name in trial.values else math.nan
                for trial in trials
            ],
            np.float64,
        )
    values = (trial.values.get(name) for trial in trials)
    return np.array([value if isinstance(value, int | float) else math.nan for value in values], np.float64)
