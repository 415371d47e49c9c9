"""The search of a command: defines, joins or continues it, and shows it until it ends."""

import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accel_engine.devices import detect
from accel_engine.devices.device_types import Device
from accel_engine.errors import RunError, UsageError
from accel_engine.places import PlaceName, PlaceRequest
from accel_engine.plan import Plan
from accel_engine.plan.interval import parse_duration
from accel_engine.plan.options import command_words, words_of_values
from accel_engine.plan.plan_file import PlanFile, read_plan_file
from accel_engine.process.detached import leave
from accel_engine.run_queue.queue import set_default_limit
from accel_engine.search import launch, new_study
from accel_engine.search.definition import SearchOptions
from accel_engine.search.progress import check_enough
from accel_engine.search.ranges import format_over, parse_all
from accel_engine.search.search_events import events_between, report_event
from accel_engine.search.search_toml import split_search_options
from accel_engine.search.study_paths import find_study
from accel_engine.search.trial_plan import without_effect
from accel_tui.cli.chosen_plan import with_chosen_plan
from accel_tui.cli.host_run import chosen_host, command_on, run_on_host
from accel_tui.cli.live import is_live
from accel_tui.cli.output import print_to_stderr, write
from accel_tui.cli.search_view import SearchBar, SearchLines, SearchLog, SearchNow, SearchView
from accel_tui.cli.signals import signal_handlers
from accel_tui.settings.user_settings import load_settings

if TYPE_CHECKING:  # slow to import
    from accel_engine.search.runs_at_place import RunsAtPlace
    from accel_engine.search.study_reader import StudyReader

_RESUMED = ("trials", "within", "at_once", "confirm", "patience")
"""Options that a continued search takes."""

INTERVAL = 0.2
"""Seconds between two looks at the search."""

EXIT_SECONDS = 5.0
"""Seconds to wait for the search's process once it has noted its end."""


def define_search(
    plan_file: Path | None,
    range_texts: Sequence[str],
    options: Mapping[str, Any],
    flags: Mapping[str, Any],
    where: tuple[PlaceName, PlaceRequest] | None = None,
) -> Path:
    """Define a search by a plan file, whose table ``[search]`` has its own options, and the options over it.

    Args:
        plan_file: A TOML or JSON file.
        range_texts: The texts of ``--over``.
        options: The options of :class:`SearchOptions` that are given.
        flags: Fields of the plan that are given.
        where: The place where trials train, and what is asked of it; ``None`` for this machine.

    Raises:
        UsageError: Something is wrong.
        RunError: The search cannot be written, or its storage cannot be reached.
    """
    file, chosen = _chosen(plan_file, range_texts, options)
    given = {**(file.values if file else {}), **flags}
    place = runs_at(*where) if where else None

    def begin(plan: Plan, devices: Sequence[Device]) -> Path:
        definition = new_study.define(plan, given, chosen)
        directory = new_study.begin_study(definition, devices, place)
        for sentence in without_effect(definition):
            print_to_stderr(f"warning: {sentence}")
        return directory

    return with_chosen_plan(load_settings(), file, flags, begin, place.devices if place else None)


def _chosen(
    plan_file: Path | None, range_texts: Sequence[str], options: Mapping[str, Any]
) -> tuple[PlanFile | None, SearchOptions]:
    """The plan file without its search, and the search of that and of the options over it."""
    file, written = split_search_options(read_plan_file(plan_file)) if plan_file else (None, SearchOptions())
    ranges = parse_all(range_texts) if range_texts else ()
    parameters = {each.name: each for each in (*written.parameters, *ranges)}
    return file, replace(written, parameters=tuple(parameters.values()), **options)


class HostSearch:
    """A search that runs on a host, in the background there, and is shown here.

    Args:
        where: The host, and what is asked of clusters only.
        as_json: Whether to print JSON lines.
        plain: Whether to print log lines on a terminal too.
        detach: Whether to print its name and return.
    """

    def __init__(self, where: tuple[PlaceName, PlaceRequest], *, as_json: bool, plain: bool, detach: bool) -> None:
        where[1].check_is_empty(where[0])
        self._reading, self._detach = chosen_host(where[0].detail), detach
        self._output = ["--json"] if as_json else ["--plain"] if plain else []

    def start(
        self,
        plan_file: Path | None,
        range_texts: Sequence[str],
        options: Mapping[str, Any],
        flags: Mapping[str, Any],
    ) -> int:
        """Start it, as :func:`define_search` does here, and show it; returns the exit status."""
        file, chosen = _chosen(plan_file, range_texts, options)
        over = [word for each in chosen.parameters for word in ("--over", format_over(each))]
        words, printed = ["search", *over, *command_words(chosen), "--detach"], list[str]()

        def take(line: str, is_error: bool) -> None:
            print_to_stderr(line.strip().removeprefix("accel-tui: ")) if is_error else printed.append(line.strip())

        status = run_on_host(self._reading, words, file, flags, take)
        if status or not self._detach:
            return status or self.resume(printed[-1], {})
        write(printed[-1])
        print_to_stderr(f"it runs on {self._reading.host}; show it: {self._again(printed[-1])}")
        return 0

    def resume(self, name: str, options: Mapping[str, Any]) -> int:
        """Show it, or continue it if it has stopped, as :func:`resume_search` does here; returns the exit status."""
        output = ["--detach"] if self._detach else self._output
        words = ["search", "--resume", name, *words_of_values(SearchOptions, options), *output]
        try:
            return command_on(self._reading.host, words, None)
        except RunError as error:
            raise RunError(f"{error}; the search continues there; show it: {self._again(name)}") from error

    def _again(self, name: str) -> str:
        return f"accel-tui search --on {self._reading.host} --resume {name}"


def runs_at(name: PlaceName, request: PlaceRequest) -> "RunsAtPlace":
    """The runs of trials at a place."""
    from accel_engine.search.runs_at_place import RunsAtPlace  # seldom needed

    return RunsAtPlace(name, request)


def resume_search(name: str, options: Mapping[str, Any]) -> Path:
    """Continue a search, perhaps with another number of trials or other limits.

    Raises:
        UsageError: There is no search of this name, or an option cannot change.
        RunError: The search cannot be read or written.
    """
    directory, changes = find_study(name), dict(options)
    fixed = [each for each in options if each not in _RESUMED]
    if fixed:
        raise UsageError(f"--{fixed[0].replace('_', '-')} cannot change when a search is continued")
    if not changes:
        return directory
    if launch.is_search_running(directory):
        raise UsageError(f"the search {directory.name} is running: show it with --resume {directory.name} alone")
    launch.require_optuna()
    if "within" in changes:
        changes["within"] = parse_duration("within", changes["within"])
    with launch.open_study(directory) as study:
        if "trials" in changes:
            check_enough(changes["trials"], study.trials.values())
        within = changes.get("within")
        changes |= {"within": study.database.part.spent + within} if within is not None else {}
        study.redefine(**changes)
    return directory


def join(storage: str, options: Mapping[str, Any], where: tuple[PlaceName, PlaceRequest] | None = None) -> Path:
    """Join a search of another machine; its trials of this one train at a place, if there is one.

    Raises:
        UsageError: The storage has no such search, or an option cannot change.
        RunError: The storage cannot be reached.
    """
    fixed = [each for each in options if each not in ("name", "at_once")]
    if fixed:
        raise UsageError(f"--{fixed[0].replace('_', '-')} is set by the search that is joined: leave it out")
    place = runs_at(*where) if where else None
    devices = place.devices if place else detect().devices
    return new_study.join_study(storage, options.get("name") or "", devices, options.get("at_once"), place)


def follow_search(directory: Path, *, as_json: bool, plain: bool, detach: bool) -> int:
    """Start the process of a search unless it runs, and show the search until it ends.

    Returns:
        The exit status.
    """
    with launch.open_study(directory) as study:
        launch.reopen_search(directory)
        set_default_limit(load_settings().queue_at_once)
        process = launch.start_search_process(directory)
        if detach:
            leave(process)
            write(directory.name)
            return 0
        view = _view(as_json=as_json, plain=plain)
        interrupts: list[int] = []  # grows with each Ctrl-C
        with signal_handlers(
            dict.fromkeys((signal.SIGINT, signal.SIGTERM), lambda number, _: interrupts.append(number))
        ):
            return _Follower(study, view, process, interrupts).follow()


def _view(*, as_json: bool, plain: bool) -> SearchView:
    if as_json:
        return SearchLines()
    return SearchBar() if is_live(sys.stdout) and not plain else SearchLog()


class _Follower:
    """Follows a search until it ends.

    Args:
        study: The search.
        view: Shows it.
        process: Its process; ends at once if another one runs the search.
        interrupts: Grows with each Ctrl-C.
    """

    def __init__(
        self, study: "StudyReader", view: SearchView, process: "subprocess.Popen[str]", interrupts: list[int]
    ) -> None:
        self._study = study
        self._database = study.database
        self._view = view
        self._process = process
        self._interrupts = interrupts
        self._trials = study.trials
        self._reports = dict(study.reports)
        self._is_stopping = False

    def follow(self) -> int:
        """Show it to its end; returns the exit status."""
        while True:
            is_gone = self._process.poll() is not None and not launch.is_search_running(self._database.directory)
            self._refresh()
            if (ended := self._database.part.ended) is not None:
                break
            if is_gone:
                self._view.clear()
                raise RunError(self._lost())
            if self._interrupts and self._leave():
                return 0
            time.sleep(INTERVAL)
        self._view.end(ended, self._refresh())
        try:
            self._process.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            leave(self._process)
        if ended["outcome"] == "stopped":
            print_to_stderr(f"continue it with: accel-tui search --resume {self._database.directory.name}")
        return int(ended["outcome"] == "failed")

    def _refresh(self) -> SearchNow:
        study, events = self._study, list[dict[str, Any]]()
        for number in study.refresh():
            events += events_between(self._trials.get(number), study.trials[number])
            before, after = self._reports.get(number, {}), study.reports[number]
            monitor = study.definition.objectives[0].name
            events += [report_event(each, monitor) for index, each in after.items() if before.get(index) != each]
        self._trials, self._reports = study.trials, dict(study.reports)
        events.sort(key=lambda event: float(event["time"]))
        part, trials = self._database.part, tuple(study.trials.values())
        now = SearchNow(study.definition, trials, part.spent, part.spent_at_end, part.confirmation)
        self._view.show(events, now)
        return now

    def _leave(self) -> bool:
        """Stop the search at the first Ctrl-C; returns whether to leave, at the second, without waiting for its end."""
        name = self._database.directory.name
        if not self._is_stopping:
            self._is_stopping = True
            self._database.request("stop")
            self._view.clear()
            print_to_stderr("stopping; its trials save checkpoints (press Ctrl-C again to leave at once)")
        if len(self._interrupts) == 1:
            return False
        self._view.clear()
        print_to_stderr(f"the search stops in the background; continue it with: accel-tui search --resume {name}")
        leave(self._process)
        return True

    def _lost(self) -> str:
        """The message on a process that has ended without noting the search's end."""
        directory = self._database.directory
        name, last = directory.name, launch.last_log_line(directory)
        why = f": {last.removeprefix('accel-tui: ')}" if last else ""
        again = f"Its trials go on. Continue it: accel-tui search --resume {name}"
        return f"the process of the search {name} has ended{why}\n{again}"
