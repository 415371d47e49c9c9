"""Follows runs whose directory mirrors a run of a host while they are read, and changes them there.

What reads and changes runs calls these by :func:`accel_engine.run.directory.run_paths.host_function`.
"""

import threading
from collections.abc import Callable
from pathlib import Path

from accel_engine.errors import AccelError
from accel_engine.hosts.host_requests import AnnotateRequest, CancelRequest, ContentsRequest, RemoveRequest
from accel_engine.hosts.link import HostLink, link_to, never_ask
from accel_engine.hosts.mirror import ListMirror, RunMirror
from accel_engine.run.directory.run_paths import host_of_run
from accel_engine.run.runs.removal import Contents
from accel_engine.run.store.annotations import Annotations

_mirrors: dict[Path, RunMirror] = {}
_lists: dict[HostLink, ListMirror] = {}
_forwarded: set[Path] = set()
_changing = threading.Lock()
_is_patient = True


def show_on_screen() -> None:
    """From now on, a screen shows what there is: :func:`follow` does not wait, and ``ssh`` asks the user nothing."""
    global _is_patient
    _is_patient = False
    never_ask()


def list_mirror(host: str) -> ListMirror:
    """The mirror of the list of a host's runs.

    Raises:
        UsageError: There is no host of this name.
    """
    link = link_to(host)
    with _changing:
        return _lists.setdefault(link, ListMirror(link))


def list_runs_of(host: str) -> None:
    """Bring the list of a host's runs up to date.

    Raises:
        UsageError: There is no host of this name.
        RunError: The host cannot be reached.
    """
    list_mirror(host).poll_all()


def follow(directory: Path) -> Callable[[], None]:
    """Mirror all of a run until the function that this returns is called.

    In a program that shows no screen, this waits until all of the run is here.

    Raises:
        RunError: The host cannot be reached, in a program that waits for it.
    """
    with _changing:
        mirror = _mirrors.get(directory)
        if mirror is None or mirror.is_over:
            mirror = _mirrors[directory] = RunMirror(directory, link_to(host_of_run(directory)))
        mirror.add_reader()

    def leave() -> None:
        with _changing:
            mirror.remove_reader()

    if _is_patient:
        try:
            mirror.wait()
        except BaseException:
            leave()
            raise
    return leave


def problem_of(directory: Path) -> str:
    """Why a mirrored run that is followed is not up to date now; empty while it is."""
    with _changing:
        mirror = _mirrors.get(directory)
    if mirror is None or mirror.problem is None:
        return ""
    wait = link_to(host_of_run(directory)).next_try
    return f"{mirror.problem}{f'; tries again in {wait:.0f} s' if wait >= 1 else ''}"


def forward(directory: Path) -> None:
    """Give commands that are added to a mirrored run to its engine, until this program ends.

    Raises:
        RunError: The host cannot be reached.
    """
    if directory not in _forwarded:
        follow(directory)
        _forwarded.add(directory)
    with _changing:
        problem = _mirrors[directory].problem
    if problem:
        raise problem


def annotate(directory: Path, after: Annotations) -> None:
    """Change a run's annotations on its host.

    Raises:
        RunError: The host cannot be reached, or refuses.
    """
    link_to(host_of_run(directory)).ask(AnnotateRequest(directory.name, after.name, after.note, after.tags))


def count_contents(directory: Path) -> Contents:
    """Count what deleting a run on its host would delete; raises as :func:`annotate` does."""
    return link_to(host_of_run(directory)).ask(ContentsRequest(directory.name))


def remove(directory: Path) -> None:
    """Delete a run on its host, and its mirror; raises as :func:`annotate` does."""
    link_to(host_of_run(directory)).ask(RemoveRequest(directory.name))
    list_runs_of(host_of_run(directory))


def cancel_queued(run: str) -> None:
    """Take a run, ``HOST:ID``, out of the queue of its host; raises as :func:`annotate` does."""
    host, _, name = run.partition(":")
    link_to(host).ask(CancelRequest(name))
    list_runs_of(host)


def why_waits(run: str) -> str:
    """Why a run, ``HOST:ID``, waits in the queue of its host."""
    host, _, name = run.partition(":")
    try:
        return next((each.why for each in list_mirror(host).queue if each.id == name), f"in the queue of {host}")
    except AccelError as error:
        return str(error)
