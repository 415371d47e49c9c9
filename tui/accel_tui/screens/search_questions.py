"""What is asked before a search begins, or is changed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from accel_engine.errors import AccelError, PlanError, UsageError
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.search.definition import Parameter, StudyDefinition
from accel_engine.search.over import format_over, format_values, parameter_of
from accel_engine.words import numbers
from accel_tui.formatting import field_labels
from accel_tui.formatting.field_labels import word
from accel_tui.plan import search_start
from accel_tui.plan.search_start import SearchRequest
from accel_tui.plan.whole_number import parse_count
from accel_tui.screens.entry_screen import Entry, EntryScreen

SearchChange = tuple[str, Any]
"""A command to the search, and its argument."""

LABELS = {
    "name": "name of the search",
    "trials": "number of trials",
    "monitor": "monitor (e.g. val_loss, or my_metric maximize)",
    "within": "no further trial after (e.g. 2h)",
}
"""What is asked before a search begins."""


class StartSearchScreen(EntryScreen[SearchRequest]):
    """Asks what a search needs besides the form; returns the search to begin.

    Args:
        filled: The form.
        parameters: What varies.
    """

    def __init__(self, filled: ResolvedPlan, parameters: Sequence[Parameter]) -> None:
        ranges = (f"{field_labels.label(each.name)} {format_values(each)}" for each in parameters)
        entries = (
            Entry(name, text, LABELS[name], "no limit" if name == "within" else "")
            for name, text in search_start.default_texts(filled).items()
        )
        super().__init__("Search for the best plan", ", ".join(ranges), *entries)
        self._plan, self._parameters = filled.plan, tuple(parameters)

    def parse(self, texts: Mapping[str, str]) -> SearchRequest:
        """Parse the answers; the first mistake names its question."""
        for name, text in texts.items():
            try:
                search_start.PARSERS[name](text)
            except AccelError as error:
                raise UsageError(f"{LABELS[name].partition(' (')[0]}: {_problem(error)}") from None
        return search_start.search_request(self._plan, self._parameters, texts)

    def effect(self, value: SearchRequest) -> str:  # noqa: ARG002 (it is the same for all)
        """Search."""
        return "searches"


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


def _problem(error: AccelError) -> str:
    """What is wrong, with the label of the field as the form has it."""
    if isinstance(error, PlanError):
        return f"{field_labels.label(error.field)} {word(error.reason)}"
    return str(error)
