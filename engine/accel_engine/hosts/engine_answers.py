"""Answers requests to engine processes on a host, and gives files to whoever has asked."""

import json
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from accel_engine.errors import RunError, file_errors
from accel_engine.files import private_directory, regular
from accel_engine.hosts import host_requests
from accel_engine.hosts.answers import directory_of
from accel_engine.hosts.encoded_message import from_text, to_text
from accel_engine.process.engine_call import EngineCall
from accel_engine.process.polled_command import PolledCommand
from accel_engine.requests.export_model import ExportTarget
from accel_engine.requests.protocol.request import Doing, Problem, Send, find_request
from accel_engine.run.directory.run_paths import WORKERS, home, runs_directory
from accel_engine.run.runs.worker_runs import path_of
from accel_engine.run.store.database import DATABASE
from accel_engine.run_queue.request_device import placed
from accel_engine.versioned_database import copy_database

_PART = 1 << 18
"""Bytes of a part of a file."""

_POLL_SECONDS = 0.1

_folders: dict[str, Path] = {}
_calls: dict[str, Callable[[], object]] = {}
"""The functions that end the requests that are being answered, by the request's key."""
_ended: set[str] = set()
_changing = threading.Lock()


def answer(request: host_requests.AskRequest, send: Send) -> host_requests.AskedResult:
    """Ask an engine process of this machine, and pass on what it sends."""
    folder = _new_folder(request.key)
    there = {host_requests.FOLDER: _in_json(folder), host_requests.RUNS: _in_json(runs_directory().absolute())}
    asked = from_text(_replaced(request.line, there), {}, find_request(request.name))
    if isinstance(asked, Problem):
        raise RunError(asked.text)
    for output in (getattr(asked, "service_folder", None), *(Path(each.path).parent for each in _targets(asked))):
        if output:
            private_directory(output)
    back = {path: name for name, path in there.items()}

    def pass_on(part: object) -> None:
        line, arrays = to_text(part)
        send(host_requests.AskedMessage(_replaced(line, back), arrays))

    with placed(asked) as on_device, EngineCall(on_device) as call, _ended_by(request.key, call.cancel):
        result = call.result(pass_on, lambda what: send(Doing(what)))
    line, arrays = to_text(result)
    files = tuple(sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()))
    return host_requests.AskedResult(_replaced(line, back), arrays, files)


def run_command(request: host_requests.CommandRequest, send: Send) -> host_requests.CommandEnded:
    """Run a command of the program, and pass on what it prints."""
    from accel_engine.places.place import program_command  # seldom needed

    folder = _new_folder(request.key)
    if request.plan is not None:
        (folder / host_requests.PLAN).write_text(json.dumps(request.plan), "utf-8")
    command = PolledCommand()
    command.start(
        program_command([_replaced(word, {host_requests.FOLDER: str(folder)}) for word in request.words]), str(folder)
    )
    with _ended_by(request.key, command.end):
        while True:
            lines, status = command.news()
            for is_error, line in lines:
                send(host_requests.PrintedLine(line, is_error))
            if status is not None:
                return host_requests.CommandEnded(status)
            time.sleep(_POLL_SECONDS)


@contextmanager
def _ended_by(key: str, end: Callable[[], object]) -> Iterator[None]:
    """While something is answered, what ends it; it may have been ended before."""
    with _changing:
        _calls[key] = end
        if key in _ended:
            end()
    try:
        yield
    finally:
        with _changing:
            _calls.pop(key, None)


def _targets(asked: object) -> Sequence[ExportTarget]:
    return getattr(asked, "targets", ())


def end(request: host_requests.EndAskRequest, _: Send) -> host_requests.Done:
    """End what is asked, and delete its files."""
    with _changing:
        _ended.add(request.key)
        if cancel := _calls.get(request.key):
            cancel()
        folder = _folders.pop(request.key, None)
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
    return host_requests.Done()


def delete_folders() -> None:
    """Delete the files of all requests; the connection has ended."""
    for folder in list(_folders.values()):
        shutil.rmtree(folder, ignore_errors=True)


def run_files(request: host_requests.RunFilesRequest, _: Send) -> host_requests.RunFiles:
    """The files of a run, the databases of its other workers included, but its own database and its locks."""
    directory = directory_of(request.run)
    paths = (path for path in sorted(directory.rglob("*")) if path.is_file() and not path.is_symlink())
    wanted = [path for path in paths if path.suffix != ".lock" and _travels(path.relative_to(directory))]
    return host_requests.RunFiles(
        tuple(host_requests.RunFile(path.relative_to(directory).as_posix(), path.stat().st_size) for path in wanted)
    )


def _travels(path: Path) -> bool:
    """Whether a file of a run is one that has all of its contents, as SQLite's files beside a database have not."""
    return not path.name.startswith(DATABASE) or (path.name == DATABASE and path.parent.parent.name == WORKERS)


def file_part(request: host_requests.FilePartRequest, _: Send) -> host_requests.FilePart:
    """Read a part of a file of a run, or of a request's folder."""
    root = directory_of(request.run) if request.run else _folders.get(request.key)
    relative = PurePosixPath(request.path)
    if root is None or relative.is_absolute() or ".." in relative.parts or not relative.parts:
        raise RunError(f"{request.path!r} was not asked for")
    key = f"{request.run}/{request.path}"
    with file_errors(f"{request.path} cannot be read"):
        path = regular(root / relative)
        if request.run and path.name == DATABASE:
            path = _copy_of(path, key, is_new=request.offset == 0)
        with path.open("rb") as file:
            file.seek(request.offset)
            part = host_requests.FilePart(file.read(_PART), path.stat().st_size)
    if request.offset + len(part.data) >= part.size and (folder := _folders.pop(key, None)):
        shutil.rmtree(folder, ignore_errors=True)
    return part


def _copy_of(database: Path, key: str, *, is_new: bool) -> Path:
    """A copy of a database that stays as it is while its parts are asked for."""
    folder = _folders.get(key) or _new_folder(key)
    if is_new:
        copy_database(database, folder / DATABASE, f"run {path_of(database.parent)}")
    return folder / DATABASE


def _new_folder(key: str) -> Path:
    private_directory(home())
    folder = Path(tempfile.mkdtemp(prefix=".request-", dir=home())).absolute()
    with _changing:
        _folders[key] = folder
    return folder


def _in_json(path: Path) -> str:
    return json.dumps(str(path))[1:-1]


def _replaced(text: str, names: dict[str, str]) -> str:
    for name, other in names.items():
        text = text.replace(name, other)
    return text
