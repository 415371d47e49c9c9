"""The configurations of a race, each a line with its bar; the highlighted one is selected, and told in lines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from accel_engine.race.configuration import ConfigurationResult, ConfigurationState
from accel_engine.text import printable
from accel_engine.words import numbers
from accel_tui.formatting import race
from accel_tui.formatting.race import Span, bars, heading
from accel_tui.widgets.list_keys import ItemList

_STYLES = {"best": "$text-success bold", "bar": "$primary", "faint": "$text-disabled", "error": "$text-error", "": ""}


class RaceList(ItemList):
    """The configurations, in the order in which they race."""

    BINDING_GROUP_TITLE = "Configurations"
    DEFAULT_CSS = """
    RaceList {
        height: 1fr;
        background: $background;
        border: none;
        padding: 0;
        scrollbar-size-vertical: 1;
        &:focus { background-tint: $background 0%; border: none; }
    }
    """

    @dataclass
    class Selected(Message):
        """Another configuration was selected, or the selected one has changed."""

        result: ConfigurationResult

    def __init__(self) -> None:
        super().__init__(compact=True)
        self._results: tuple[ConfigurationResult, ...] = ()

    @property
    def selected(self) -> ConfigurationResult | None:
        """The selected configuration; ``None`` if there is none."""
        index = self.highlighted
        return self._results[index] if index is not None and index < len(self._results) else None

    @property
    def heading(self) -> str:
        """The headings of the lines."""
        return heading(self._results, self._columns)

    @property
    def _columns(self) -> int:
        return max(self.scrollable_content_region.width or self.size.width, 20)

    def show(self, results: Sequence[ConfigurationResult]) -> None:
        """Show results; those of before are in the same order, with others after or between them."""
        kept = self.selected.title if self.selected else ""
        is_same = [each.title for each in results] == [each.title for each in self._results]
        self._results = tuple(results)
        prompts = [_content(line) for line in bars(self._results, self._columns)]
        if is_same:
            for index, prompt in enumerate(prompts):
                self.replace_option_prompt_at_index(index, prompt)
        else:
            with self.prevent(OptionList.OptionHighlighted):
                self.clear_options()
                self.add_options([Option(prompt) for prompt in prompts])
                titles = [each.title for each in results]
                self.highlighted = titles.index(kept) if kept in titles else 0 if titles else None
        self._tell()

    def select(self, title: str) -> None:
        """Select a configuration by its title, if it is there."""
        titles = [each.title for each in self._results]
        if title in titles:
            self.highlighted = titles.index(title)

    def on_resize(self) -> None:
        """Draw the bars for another width, and keep the selected one in view."""
        self.show(self._results)
        self.call_after_refresh(self.scroll_to_highlight)

    def on_option_list_option_highlighted(self) -> None:
        """Tell that another configuration is selected."""
        self._tell()

    def _tell(self) -> None:
        if result := self.selected:
            self.post_message(self.Selected(result))


def _content(line: Sequence[Span]) -> Content:
    return Content.assemble(*((text, _STYLES[style]) for text, style in line))


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
