"""Shows a search in the terminal: JSON lines, log lines, or log lines above a live one."""

import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from accel_engine.search.definition import Confirmation, StudyDefinition
from accel_engine.search.progress import seconds_left, trials_done
from accel_engine.search.results import best_trial
from accel_engine.search.trial import Trial, TrialState
from accel_engine.text import printable, printable_line
from accel_engine.words import numbers
from accel_tui.cli.live import LiveArea, Size, with_bar
from accel_tui.cli.output import write, write_json
from accel_tui.cli.search_summary import short_value, summary
from accel_tui.formatting.text import shorten
from accel_tui.study_state.texts import objective_name, objective_text

WORDS = {
    "trial_started": "started",
    "trial_continued": "continued from its checkpoint",
    "trial_finished": "finished",
    "trial_pruned": "pruned",
    "trial_stopped": "stopped",
    "trial_failed": "failed",
    "trial_out_of_memory": "out of memory",
    "trial_lost": "lost",
}
"""Events of trials in words."""

REASON = 80
"""The most columns of a reason in a line; JSON and the Search screen have all of it."""

Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SearchNow:
    """A search as it is now.

    Attributes:
        definition: What is searched.
        trials: Its trials by number.
        spent: Seconds for which it has run.
        spent_at_end: The same when the last trial ended; 0 if unknown.
        confirmation: Of its best plan; ``None`` before.
    """

    definition: StudyDefinition
    trials: Sequence[Trial]
    spent: float = 0.0
    spent_at_end: float = 0.0
    confirmation: Confirmation | None = None

    @property
    def done(self) -> int:
        """The number of trials with runs of their own that have ended."""
        return trials_done(self.trials)


class SearchView(Protocol):
    """Shows a search while it runs."""

    def show(self, events: Sequence[Event], now: SearchNow) -> None:
        """Show what is new, which may be nothing."""

    def end(self, ended: Mapping[str, Any], now: SearchNow) -> None:
        """Show what was found."""

    def clear(self) -> None:
        """Make room for a message on standard error."""


class SearchLines:
    """Shows a search as JSON lines."""

    def show(self, events: Sequence[Event], now: SearchNow) -> None:  # noqa: ARG002 (all is in the events)
        """Write a line for each event."""
        write_json(*events)
        if events:
            sys.stdout.flush()

    def end(self, ended: Mapping[str, Any], now: SearchNow) -> None:  # noqa: ARG002
        """Write the last line."""
        write_json(dict(ended))

    def clear(self) -> None:
        """Do nothing: messages go to standard error."""


class SearchLog:
    """Shows a search as a line for each trial that starts or ends."""

    def show(self, events: Sequence[Event], now: SearchNow) -> None:  # noqa: ARG002 (all is in the events)
        """Write a line for each event."""
        for event in events:
            if line := event_line(event):
                write(f"{time.strftime('%H:%M:%S', time.localtime(event['time']))} {line}")

    def end(self, ended: Mapping[str, Any], now: SearchNow) -> None:
        """Write the best trials, and the command that trains the best one."""
        for line in summary(ended, now.definition, now.trials):
            write(line)

    def clear(self) -> None:
        """Do nothing: there is no live line."""


class SearchBar(SearchLog):
    """Shows a search on a terminal: a line for each trial, above a live one.

    Args:
        size: Tells the terminal's present columns and lines.
    """

    def __init__(self, size: Size = shutil.get_terminal_size) -> None:
        self._live = LiveArea(sys.stdout, size)

    def show(self, events: Sequence[Event], now: SearchNow) -> None:
        """Write a line for each event, and the live line below."""
        bar = with_bar(now.done / now.definition.trials, live_text(now), self._live.width)
        self._live.show(bar, [line for event in events if (line := event_line(event))])

    def end(self, ended: Mapping[str, Any], now: SearchNow) -> None:
        """Erase the live line, and write what was found."""
        self.clear()
        super().end(ended, now)

    def clear(self) -> None:
        """Erase the live line."""
        self._live.clear()


def live_text(now: SearchNow) -> str:
    """The state of a search in about 65 columns: trials, what trains, the best value, the time left."""
    definition = now.definition
    parts = [f"{now.done} of {numbers.counted(definition.trials, 'trial')}"]
    if now.confirmation is not None:
        parts = [
            f"confirming with seed {min(len(now.confirmation.values) + 1, definition.confirm)} of {definition.confirm}"
        ]
    running = sum(each.state is TrialState.RUNNING and not each.machine for each in now.trials)
    if running > 1:
        parts.append(f"{running} train")
    if best := best_trial(definition, now.trials):
        monitor = definition.objectives[0].name
        value = objective_text(monitor, best.objectives[monitor])
        parts.append(f"best {objective_name(monitor)} {value} (trial {best.number})")
    left = seconds_left(definition, now.trials, now.spent, now.spent_at_end)
    if left is not None and now.confirmation is None:
        parts.append(f"{numbers.duration(left)} left")
    return printable_line("  ".join(parts))


def event_line(event: Event) -> str:
    """An event as a line of text; empty for one that has no line."""
    words = WORDS.get(event["event"])
    if words is None:
        return ""
    parts = [f"trial {event['trial']} {words}"]
    if "duplicate_of" in event:
        parts[0] = f"trial {event['trial']} is as trial {event['duplicate_of']}: {words}"
    if event.get("machine"):
        parts.append(f"on {event['machine']}")
    objectives = event.get("objectives", {})
    parts += [f"{objective_name(name)} {objective_text(name, value)}" for name, value in objectives.items()]
    values = event["values"] if "values" in event and event["event"] != "trial_continued" else {}
    shown = " ".join(f"{name}={short_value(value)}" for name, value in values.items())
    reason = event.get("reason", "") if event["event"] != "trial_out_of_memory" else ""
    short = shorten(printable(reason).partition("\n")[0], REASON)
    return printable_line("  ".join(filter(None, [*parts, shown, short])))
