"""Shows a search in the terminal: JSON lines, log lines, or log lines above a live one."""

import math
import shutil
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accel_engine.search.definition import Confirmation, StudyDefinition
from accel_engine.search.progress import seconds_left, trials_done
from accel_engine.search.ranges import format_value
from accel_engine.search.results import best_trial, front, is_counted
from accel_engine.search.trial import Trial, TrialState
from accel_engine.text import printable, printable_line
from accel_engine.words import numbers
from accel_tui.cli.live import LiveArea, Size, with_bar
from accel_tui.cli.output import table, write, write_json
from accel_tui.formatting.text import shorten
from accel_tui.plan import field_labels
from accel_tui.study_state.study_texts import objective_name, objective_text

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
    """The present state of a search."""

    definition: StudyDefinition
    """What is searched."""
    trials: Sequence[Trial]
    """Its trials by number."""
    spent: float = 0.0
    """Seconds for which it has run."""
    spent_at_end: float = 0.0
    """Seconds for which it had run when the last trial ended; 0 if unknown."""
    confirmation: Confirmation | None = None
    """The confirmation of its best plan; ``None`` before."""

    @property
    def done(self) -> int:
        """The number of trials with their own runs that have ended."""
        return trials_done(self.trials)


class SearchLines:
    """Shows a search as JSON lines."""

    def show(self, events: Sequence[Event], now: SearchNow) -> None:
        """Write a line for each event."""
        write_json(*events)
        if events:
            sys.stdout.flush()

    def end(self, ended: Mapping[str, Any], now: SearchNow) -> None:
        """Write the last line."""
        write_json(dict(ended))

    def clear(self) -> None:
        """Do nothing: messages go to standard error."""


class SearchLog:
    """Shows a search as a line for each trial that starts or ends."""

    def show(self, events: Sequence[Event], now: SearchNow) -> None:
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


SearchView = SearchLines | SearchLog
"""Shows what is new of a search, what was found at its end, and makes room for a message on standard error."""


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
    shown = " ".join(f"{name}={_short_value(value)}" for name, value in values.items())
    reason = event.get("reason", "") if event["event"] != "trial_out_of_memory" else ""
    short = shorten(printable(reason).partition("\n")[0], REASON)
    return printable_line("  ".join(filter(None, [*parts, shown, short])))


BEST = 10
"""Trials of the table at the end; with several objectives, all of the front if it has more."""

MOST_NUMBERS = 8
"""Trials that are listed by number; more are counted."""


def summary(ended: Mapping[str, Any], definition: StudyDefinition, trials: Sequence[Trial]) -> Iterator[str]:
    """The results of a search, as lines."""
    yield printable_line(f"the search {definition.name} {_outcome(ended)}: {ended['reason']}")
    best, monitor, marked = ended.get("best"), definition.objectives[0].name, _front(definition, trials)
    if best:
        yield ""
        yield table(*_best_table(definition, trials, marked))
    yield from _below(definition, trials, marked)
    if not best:
        return
    confirmed = ended.get("confirmation")
    yield ""
    yield printable_line(_best_line(best, monitor) + (_again(confirmed) if confirmed else ""))
    if confirmed:
        yield "The best of many trials is partly luck: expect what the other seeds reach."
    if best["command"]:
        yield f"Train it: {best['command']}"


def _best_line(best: Mapping[str, Any], monitor: str) -> str:
    """The best trial: its number, where it was trained, and its monitor."""
    where = f"run {best['run'].partition('-')[0]}" if best["run"] else f"on {best.get('machine', '')}"
    value = objective_text(monitor, best["objectives"][monitor])
    return f"best trial: {best['trial']} ({where}), {objective_name(monitor)} {value}"


def _again(confirmed: Mapping[str, Any]) -> str:
    """The results of the best plan with other seeds."""
    spread = confirmed["spread"]
    around = f" ± {numbers.metric(spread)}" if spread is not None else ""
    seeds = numbers.counted(len(confirmed["values"]), "other seed")
    return f"; trained again with {seeds}: {numbers.metric(confirmed['mean'])}{around}"


def _best_table(
    definition: StudyDefinition, trials: Sequence[Trial], marked: Collection[int]
) -> tuple[list[str], list[list[str]]]:
    """The header and the rows of the best trials; with several objectives, the front comes first."""
    monitor = definition.objectives[0]
    counted = [each for each in trials if is_counted(each, monitor.name)]
    sign = -1 if monitor.maximize else 1
    counted.sort(key=lambda each: (each.number not in marked, sign * each.objectives[monitor.name]))
    header = ["TRIAL", "RUN", "STATE", *(["FRONT"] if marked else [])]
    header += [objective_name(each.name).upper() for each in definition.objectives]
    header += [field_labels.label(each.name).upper() for each in definition.parameters]
    rows = [
        [
            str(each.number),
            each.run.partition("-")[0] or printable_line(each.machine),
            str(each.state),
            *(["yes" if each.number in marked else ""] if marked else []),
            *(objective_text(one.name, each.objectives.get(one.name, math.nan)) for one in definition.objectives),
            *(printable_line(_short_value(each.values.get(one.name))) for one in definition.parameters),
        ]
        for each in counted[: max(BEST, len(marked))]
    ]
    return header, rows


def _front(definition: StudyDefinition, trials: Sequence[Trial]) -> set[int]:
    """Numbers of the trials of the front; none with a single objective."""
    return {each.number for each in front(definition, trials)} if len(definition.objectives) > 1 else set()


def _below(definition: StudyDefinition, trials: Sequence[Trial], marked: Collection[int]) -> Iterator[str]:
    """Lines below the table: the meaning of its column, and the trials that it leaves out."""
    monitor = definition.objectives[0].name
    if marked:
        yield "FRONT: no other trial is better in one objective and as good in all others."
    own = [each for each in trials if each.duplicate_of is None]
    counted = [each for each in own if is_counted(each, monitor)]
    if (more := len(counted) - max(BEST, len(marked))) > 0:
        every = f"accel-tui runs --filter name:{definition.name} --sort best"
        yield printable_line(f"{numbers.counted(more, 'more trial')} with results; {every} lists all")
    groups: dict[str, list[int]] = {}
    for each in own:
        if not is_counted(each, monitor):
            words = f"{each.state} on {each.machine}" if each.machine else str(each.state)
            groups.setdefault(words, []).append(each.number)
    if groups:
        parts = "; ".join(f"{_named(found)} {words}" for words, found in groups.items())
        yield printable_line(f"without a result here: {parts}")
    if counted:
        yield from _failing_choices(definition, own)


def _failing_choices(definition: StudyDefinition, trials: Sequence[Trial]) -> Iterator[str]:
    """A line for each choice with which several trials have ended, all of them failed."""
    ended = [each for each in trials if not each.state.live and each.state is not TrialState.LOST]
    for parameter in definition.parameters:
        for choice in parameter.choices:
            found = [each for each in ended if each.values.get(parameter.name) == choice]
            if len(found) > 1 and all(each.state.failed for each in found):
                numbers_of = [each.number for each in found]
                yield printable_line(f"{parameter.name}={_short_value(choice)} failed each time: {_named(numbers_of)}")


def _named(found: Sequence[int]) -> str:
    """Trials by their numbers, or how many if they are many."""
    if len(found) > MOST_NUMBERS:
        return numbers.counted(len(found), "trial")
    return f"{numbers.plural(len(found), 'trial')} {', '.join(map(str, found))}"


def _outcome(ended: Mapping[str, Any]) -> str:
    return {"finished": "has finished", "stopped": "was stopped", "failed": "has failed"}[str(ended["outcome"])]


def _short_value(value: Any) -> str:
    """A value of a field: a number in four digits, a path without its folders."""
    return f"{value:.4g}" if isinstance(value, float) else format_value(value).rpartition("/")[2]
