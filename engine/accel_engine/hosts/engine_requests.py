"""Requests about mirrored runs: an engine process of their host answers them, and files that it writes come here."""

import json
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, Generic, TypeVar, cast

from accel_engine.errors import RunError, file_errors
from accel_engine.files import replacing
from accel_engine.hosts import host_requests
from accel_engine.hosts.carried_files import carried_name, carried_value
from accel_engine.hosts.encoded_message import from_text, to_text
from accel_engine.hosts.link import HostLink, link_to
from accel_engine.requests.protocol.request import Doing, EngineRequest, request_name

ResultT = TypeVar("ResultT")

_READ = ("data", "files", "custom_objects")
"""The fields of requests and their options with files of the user, which travel."""


class HostCall(Generic[ResultT]):
    """A request that a host answers.

    Args:
        host: The host's name.
        request: The request.
    """

    def __init__(self, host: str, request: EngineRequest[ResultT]) -> None:
        self._link = link_to(host)
        self._request = request
        self._key = secrets.token_hex(8)
        self._outputs = _outputs(request)
        self._carried: dict[str, str] = {}
        """What the user calls each file that has travelled, by its path there."""

    def result(self, on_part: Callable[[Any], object], on_doing: Callable[[str], object]) -> ResultT:
        """Wait for the result, whose files are then here.

        Raises:
            RunError: There is no result; the message says why.
        """
        kind = type(self._request)
        ask = host_requests.AskRequest(self._key, request_name(kind), self._line())
        try:

            def take(part: Any) -> None:
                if isinstance(part, Doing):
                    on_doing(part.what)
                elif isinstance(part, host_requests.AskedMessage):
                    on_part(from_text(self._here(part.line), part.arrays, *kind.parts))

            answer = self._link.ask(ask, take)
            for path in answer.files:
                if (target := self._target(path)) is not None:
                    fetch_file(self._link, host_requests.FilePartRequest(path, 0, key=self._key), target)
            return cast("ResultT", from_text(self._here(answer.line), answer.arrays, kind.result))
        except RunError as error:
            error.args = (self._named(str(error)),)
            raise
        finally:
            self.cancel()

    def cancel(self) -> None:
        """End it, from any thread; what waits for a result raises."""
        with suppress(RunError):
            self._link.ask(host_requests.EndAskRequest(self._key))

    def _line(self) -> str:
        """The request as the host understands it."""
        line, _ = to_text(self._request)
        message = json.loads(line)
        message["fields"] = self._there(message["fields"])
        text = json.dumps(message)
        return text.replace(_in_json(self._link.host.directory / "runs"), host_requests.RUNS) + "\n"

    def _there(self, value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: self._there(each, key) for key, each in value.items()}
        if isinstance(value, list):
            return [self._there(each, name) for each in value]
        if name in _READ:
            path = carried_value(self._link, name, value)
            if isinstance(path, str) and carried_name(path):
                self._carried[path] = value
            return path
        if name == "folder":
            return host_requests.FOLDER if value else value
        if isinstance(value, str):
            for number, output in enumerate(self._outputs):
                if value == str(output) or value.startswith(f"{output}/"):
                    return f"{host_requests.FOLDER}/{number}{value.removeprefix(str(output))}"
        return value

    def _here(self, line: str) -> str:
        """A message of the host with the paths of this machine."""
        for number, output in enumerate(self._outputs):
            line = line.replace(f"{host_requests.FOLDER}/{number}", _in_json(output))
        line = self._named(line, _in_json)
        return line.replace(host_requests.RUNS, _in_json(self._link.host.directory / "runs"))

    def _named(self, text: str, written: Callable[[str], str] = str) -> str:
        """A text of the host in which files that have travelled are called as the user calls them."""
        for there, named in self._carried.items():
            text = text.replace(written(there), written(named))
        return text

    def _target(self, path: str) -> Path | None:
        """Where a file of the folder there belongs here; ``None`` for one that was not asked for."""
        number, _, rest = path.partition("/")
        parts = PurePosixPath(rest).parts
        is_within = bool(parts) and ".." not in parts and not PurePosixPath(rest).is_absolute()
        is_output = number.isdecimal() and int(number) < len(self._outputs)
        return self._outputs[int(number)] / rest if is_output and is_within else None


def _outputs(request: object) -> list[Path]:
    """The directories in which a request writes files, none within another."""
    found = {Path(target.path).absolute().parent for target in getattr(request, "targets", ())}
    if folder := getattr(request, "service_folder", None):
        found.add(folder.absolute())
    return sorted(each for each in found if not any(each.is_relative_to(other) for other in found - {each}))


def _in_json(path: Path | str) -> str:
    return json.dumps(str(path))[1:-1]


def fetch_file(link: HostLink, request: host_requests.FilePartRequest, target: Path) -> int:
    """Bring a file here, and return its size.

    Args:
        link: The link to the host.
        request: Its first part.
        target: Where it is written.

    Raises:
        RunError: The file cannot be read there, or written here.
    """
    offset = 0
    with file_errors(f"{target} cannot be written"):
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as unfinished, unfinished.open("wb") as file:
            while True:
                part = link.ask(host_requests.FilePartRequest(request.path, offset, request.run, request.key))
                file.write(part.data)
                offset += len(part.data)
                if offset >= part.size:
                    return offset
                if not part.data:
                    raise RunError(f"{request.path} has become shorter while it came: try again")
