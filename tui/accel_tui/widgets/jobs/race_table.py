"""The configurations of a race, each a line with its bar; and what is known of the current one."""

from collections.abc import Hashable, Iterator, Sequence

from textual.content import Content

from accel_engine.race.configuration import ConfigurationResult, ConfigurationState
from accel_engine.text import printable
from accel_engine.words import numbers
from accel_tui.formatting import race
from accel_tui.widgets.table import Table


class RaceTable(Table[ConfigurationResult]):
    """The configurations, in the order in which they race."""

    BINDING_GROUP_TITLE = "Configurations"
    opens = False

    def key_of(self, row: ConfigurationResult) -> Hashable:
        """The title of a configuration."""
        return row.title

    def show(self, results: Sequence[ConfigurationResult]) -> None:
        """Show results."""
        self.show_rows(results, race.columns_of(results, self.room, race.TITLE))

    def select(self, title: str) -> None:
        """Move the cursor to a configuration, if it is there."""
        titles = [each.title for each in self.shown]
        if title in titles:
            self.go_to(titles.index(title))

    def on_resize(self) -> None:
        """Draw the bars for another width."""
        self.show(self.shown)


def details(result: ConfigurationResult) -> Content:
    """The changes of a configuration, and what was measured, each with its name."""
    options = Content.styled(result.configuration.options or "the plan as it is", "$accent")
    lines = [Content.assemble((printable(result.title), "bold"), "  ", options)]
    lines += [Content.assemble((f"{name:<12}", "$text-muted"), printable(text)) for name, text in _facts(result)]
    return Content("\n").join(lines)


def _facts(result: ConfigurationResult) -> Iterator[tuple[str, str]]:
    if result.reason:
        yield result.state.value, result.reason
    if result.is_measured:
        low, high = result.between or (0.0, 0.0)
        rate = numbers.compact(result.examples_per_second or 0.0)
        rounds = numbers.counted(len(result.rates), "turn")
        if race.is_alone(result):
            rounds += ", not beside this plan"
        yield "examples/s", f"{rate}, between {numbers.compact(low)} and {numbers.compact(high)} ({rounds})"
    elif result.state not in (ConfigurationState.FAILED, ConfigurationState.REFUSED):
        yield "state", race.state_text(result)
    measured = [
        f"memory {numbers.size(result.memory)} of the {result.memory_of}" if result.memory is not None else "",
        f"compiled in {race.compile_text(result)}" if result.compile_seconds is not None else "",
    ]
    if any(measured):
        yield "takes", ", ".join(filter(None, measured))
    if result.compile_seconds is not None:
        yield "energy", race.energy_text(result) + (" an example" if result.joules is not None else "")
    if result.losses:
        yield "losses", race.losses_text(result)
