"""Shows a race while it runs: bars that grow in place on a terminal, lines elsewhere, or JSON."""

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, TextIO

from rich.text import Text

from accel_engine.race.configuration import ConfigurationResult, ConfigurationState
from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_tui.appearance.glyphs import to_ascii
from accel_tui.cli.live import LiveArea, Size
from accel_tui.cli.output import paragraph, print_to_stderr, table, write_json
from accel_tui.formatting import race
from accel_tui.formatting.race import bars

REDRAW_SECONDS = 0.1
"""Seconds between two pictures of the bars, at least."""

_COLOURS = {"success": "green", "primary": "cyan", "note": "bright_black", "error": "red"}
"""Colours of a terminal for colours of a theme."""

_WITHOUT_LINE = (ConfigurationState.WAITING, ConfigurationState.MEASURING, ConfigurationState.NOT_MEASURED)
"""States without a line of their own while a race runs; the page at the end lists what is not measured."""

Show = Callable[[ConfigurationResult], object]
"""Shows the result of a configuration that has changed."""


class LiveBars:
    """Draws bars over those before.

    Args:
        stream: The terminal.
        size: Tells its columns and lines.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        stream: TextIO,
        size: Size = shutil.get_terminal_size,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._live, self._clock = LiveArea(stream, size), clock
        self._results: dict[str, ConfigurationResult] = {}
        self._due = 0.0

    def show(self, result: ConfigurationResult) -> None:
        """Take a result, and draw if that is due, or if it is more than another turn."""
        self._results[result.title] = result
        if result.state is not ConfigurationState.WAITING and (
            result.state is not ConfigurationState.MEASURING or self._clock() >= self._due
        ):
            self._draw()

    def end(self) -> None:
        """Draw all bars for the last time; they stay."""
        self._draw()
        self._live.leave()

    def _draw(self) -> None:
        self._due = self._clock() + REDRAW_SECONDS
        shown = [each for each in self._results.values() if each.state is not ConfigurationState.REFUSED]
        lines = bars(shown, min(self._live.width, 150))
        self._live.show(Text("\n", no_wrap=True, overflow="crop").join(map(self._painted, lines)))

    def _painted(self, line: Sequence[tuple[str, str]]) -> Text:
        plain = str if self._live.has_unicode else to_ascii
        return Text.assemble(*((plain(text), _COLOURS.get(style, "")) for text, style in line))


class StateLines:
    """Writes a line to standard error when a configuration begins, is compiled or ends."""

    def __init__(self) -> None:
        self._states: dict[str, ConfigurationState] = {}

    def show(self, result: ConfigurationResult) -> None:
        """Write a line, if the state is another one than before."""
        is_new = self._states.get(result.title) is not result.state
        self._states[result.title] = result.state
        if is_new and result.state not in _WITHOUT_LINE:
            _show_line(result)


def _show_line(result: ConfigurationResult) -> None:
    text = race.state_text(result)
    if result.state is ConfigurationState.FINISHED and result.examples_per_second is not None:
        text = f"{numbers.compact(result.examples_per_second)} examples/s ({race.tolerance_text(result)})"
    print_to_stderr(f"{printable_line(result.title)}: {text}")


def results_page(results: Sequence[ConfigurationResult]) -> list[str]:
    """The table of what was measured, and what it means."""
    header, rows = race.table_of(results)
    return [*([table(header, rows), ""] if rows else []), *map(paragraph, race.notes_on(results))]


def show_json(result: ConfigurationResult) -> None:
    """Write a JSON object for each change."""
    write_json(
        {
            "event": f"configuration_{result.state.value.replace(' ', '_').replace('measuring', 'measured')}",
            **configuration_values(result),
        }
    )


def configuration_values(result: ConfigurationResult) -> dict[str, Any]:
    """What is known of a configuration, in types of JSON."""
    check, compared = result.losses, result.against_reference
    plan = result.configuration.plan.to_mapping()
    return {
        "configuration": result.title,
        "state": result.state.value,
        "reason": result.reason,
        "plan": {name: plan[name] for name in result.configuration.changes},
        "options": result.configuration.options,
        "changes_training": result.configuration.changes_training,
        "examples_per_second": result.examples_per_second,
        "between": result.between,
        "rounds": len(result.rates),
        "speed": compared.value if compared else 1.0 if result.configuration.is_reference and result.rates else None,
        "compile_seconds": result.compile_seconds,
        "memory": result.memory,
        "memory_of": result.memory_of,
        "joules_per_example": result.joules,
        "energy_of": result.energy_of,
        "energy_problem": result.energy_problem,
        "losses": race.losses_text(result) or None,
        "loss_difference": check.difference if check else None,
        "loss_steps": check.steps if check else 0,
        **({"learned": asdict(result.learned)} if result.learned else {}),
    }
