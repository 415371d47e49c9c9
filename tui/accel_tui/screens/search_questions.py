"""What is asked before a search is changed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from accel_engine.errors import AccelError, PlanError, UsageError
from accel_engine.search.definition import StudyDefinition
from accel_engine.search.over import format_over, format_values, parameter_of
from accel_engine.words import numbers
from accel_tui.plan import field_labels
from accel_tui.plan.field_labels import word
from accel_tui.screens.entry_screen import Entry, EntryScreen

MAX_COUNT = 100_000
"""The largest number of trials or epochs."""

SearchChange = tuple[str, Any]
"""A command to the search, and its argument."""


class ChangeSearchScreen(EntryScreen[Sequence[SearchChange]]):
    """Asks for other ranges and another number of trials; returns the commands.

    Args:
        definition: The search.
    """

    def __init__(self, definition: StudyDefinition) -> None:
        super().__init__(
            "Change the search",
            "Trials to come are sampled from the new ranges; the others stay.",
            Entry("trials", str(definition.trials), "number of trials"),
            *(
                Entry(f"range-{each.name}", format_values(each), field_labels.label(each.name))
                for each in definition.parameters
            ),
        )
        self._definition = definition

    def parse(self, texts: Mapping[str, str]) -> Sequence[SearchChange]:
        """The commands for all fields that differ."""
        try:
            return tuple(self._changes(texts))
        except AccelError as error:
            raise UsageError(_problem(error)) from None

    def _changes(self, texts: Mapping[str, str]) -> Iterator[SearchChange]:
        trials = parse_count(texts["trials"], "trials")
        if trials != self._definition.trials:
            yield "set_trials", trials
        for parameter in self._definition.parameters:
            changed = parameter_of(parameter.name, texts[f"range-{parameter.name}"].strip())
            if changed != parameter:
                yield "set_range", format_over(changed)

    def effect(self, value: Sequence[SearchChange]) -> str:
        """Name the changes."""
        return f"changes {', '.join(str(argument) for _, argument in value) or 'nothing'}"


class ProlongScreen(EntryScreen[int]):
    """Asks for a number of epochs.

    Args:
        trial: Number of the trial.
    """

    def __init__(self, trial: int) -> None:
        detail = "It continues from its last checkpoint. Number of epochs more:"
        super().__init__(f"Prolong trial {trial}", detail, Entry("epochs", "5"))

    def parse(self, texts: Mapping[str, str]) -> int:
        """Parse a number of epochs."""
        return parse_count(texts["epochs"], "epochs")

    def effect(self, value: int) -> str:
        """Count the epochs."""
        return f"trains {numbers.counted(value, 'epoch')} more"


def parse_count(text: str, noun: str) -> int:
    """Parse a number from 1.

    Args:
        text: The text; commas and blanks between digits are ignored.
        noun: What is counted, in the plural.

    Raises:
        UsageError: It is none.
    """
    try:
        count = int(text.strip().removeprefix("+").replace(",", "").replace(" ", ""))
    except ValueError:
        count = 0
    if not 1 <= count <= MAX_COUNT:
        raise UsageError(f"must be a number of {noun}, from 1 to {MAX_COUNT:,}")
    return count


def _problem(error: AccelError) -> str:
    """What is wrong, with the label of the field as the form has it."""
    if isinstance(error, PlanError):
        return f"{field_labels.label(error.field)} {word(error.reason)}"
    return str(error)
