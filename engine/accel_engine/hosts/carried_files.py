"""The files of a plan that travel to a host: the user's Python files, weights and small data, by their checksums.

The host keeps each content once, under its checksum, and makes of a plan's files a folder of links to these. So only
what has changed travels, and an earlier run keeps the files that it began with.
"""

import ast
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from accel_engine import data, models
from accel_engine.errors import RunError, UsageError, file_errors
from accel_engine.files import private_directory, replacing
from accel_engine.hosts.host_requests import (
    CarriedFile,
    ContentRequest,
    Done,
    FolderOfFilesRequest,
    MissingFiles,
    MissingRequest,
)
from accel_engine.hosts.link import HostLink
from accel_engine.plan import PATH_FIELDS
from accel_engine.plan.task_choices import IMAGENET, WEIGHT_FILES
from accel_engine.requests.protocol.request import Send
from accel_engine.run import find_run
from accel_engine.run.directory.run_paths import MODEL, home, host_of_run
from accel_engine.user_paths import absolute_path, exists, user_path
from accel_engine.words import numbers

MAX_BYTES = 100 << 20
"""Most bytes that a plan's files may have; larger data is named by its path on the host."""

MAX_FILES = 20_000
"""Most files of a plan."""

THERE = "there:"
"""Begins a path of a plan that is one on the host."""

_BLOCK = 1 << 18
"""Bytes of a file in a message."""

_FOLDER = "from-other-machines"

_HASH = re.compile(r"[0-9a-f]{64}")


def carry(link: HostLink, name: str, target: Path) -> str:
    """Bring what a field of a plan names to a host, and return its path there; of a run that is there, its id.

    Args:
        link: The link to the host.
        name: The field.
        target: The file or the folder here.

    Raises:
        UsageError: The files are too large or too many, or cannot be read, or belong to a run of another machine.
        RunError: The host does not take it.
    """
    if (host := host_of_run(target)) == link.host.name:
        return target.name  # a run there
    if host or (target / "run.db").is_file():
        where, there = host or "this machine", link.host.name
        how = f"name one that is, as {there}:RUN, or a file, such as its {MODEL}"
        raise UsageError(f"{name}: run {target.name} is on {where}, not on {there}: {how}")
    root, sizes = _sizes(name, target)
    files = {path: CarriedFile(path.relative_to(root).as_posix(), size, _hash(path)) for path, size in sizes.items()}
    missing = set(link.ask(MissingRequest(tuple(files.values()))).hashes)
    for path, file in files.items():
        if file.hash in missing:
            missing.discard(file.hash)
            _send(link, path, file)
    folder = link.ask(FolderOfFilesRequest(tuple(files.values()))).text
    return f"{folder}/{target.relative_to(root).as_posix()}"


def _sizes(name: str, target: Path) -> tuple[Path, dict[Path, int]]:
    """The folder that paths are relative to, and the size of each file that travels.

    Raises:
        UsageError: The files are too large or too many, or cannot be read.
    """
    root, paths = _files_of(target)
    try:
        sizes = {path: path.stat().st_size for path in paths}
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be read: {error.strerror}") from error
    if (size := sum(sizes.values())) > MAX_BYTES or len(paths) > MAX_FILES:
        raise UsageError(
            f"{name} = {str(target)!r} has {numbers.size(size)} in {numbers.counted(len(paths), 'file')}, and at most "
            f"{numbers.size(MAX_BYTES)} in {MAX_FILES:,} files travel: copy it to the host yourself, and name its path "
            f"there: {THERE}/PATH"
        )
    return root, sizes


def travelling(values: Mapping[str, Any]) -> tuple[int, int]:
    """How many files of a plan travel to a host, and their bytes; those that are there already do not travel again.

    Args:
        values: The fields of the plan that are not at their defaults.

    Raises:
        UsageError: The files are too large or too many, or cannot be read.
    """
    sizes: dict[Path, int] = {}
    for name in PATH_FIELDS:
        value = values.get(name)
        if not isinstance(value, str) or not value or value.startswith(THERE) or _is_built_in(name, value):
            continue
        path = user_path(value)
        if not exists(path):
            path = user_path(value.rpartition(":")[0])
            if path.suffix != ".py" or not exists(path):
                continue  # an entry of a catalogue
        if not host_of_run(path):
            sizes |= _sizes(name, path.absolute())[1]
    return len(sizes), sum(sizes.values())


def carried_value(link: HostLink, name: str, value: Any) -> Any:
    """The value of a field on a host; what it names here is brought there.

    Args:
        link: The link to the host.
        name: The field.
        value: A path, a path and a function after a colon, or anything else.

    Raises:
        UsageError: See :func:`carry`; or it names a module here, which does not travel, or no run.
    """
    if not isinstance(value, str) or not value or _is_built_in(name, value):
        return value
    if value.startswith(THERE):
        return value.removeprefix(THERE)
    if name == "initial_weights" and "/" not in value and not value.endswith(WEIGHT_FILES):
        value = str(find_run(value))  # as all commands here understand it: "last" is not the newest run there
    path, colon, function = value, "", ""
    if not exists(user_path(path)):
        path, colon, function = value.rpartition(":")
        if not path.endswith(".py"):
            _refuse_module(name, value, path)
            return value  # no file, but an entry of a catalogue, or a run there
    return f"{carry(link, name, absolute_path(user_path(path)))}{colon}{function}"


def _is_built_in(name: str, value: str) -> bool:
    """Whether a field takes its value as a name of this program, also where a file here has the same name."""
    if name == "initial_weights":
        return value == IMAGENET
    if name == "model":
        return models.find_built_in(value) is not None
    return name in ("data", "validation_data") and data.find_built_in(value) is not None


def carried_name(value: str) -> str:
    """The checksum of the folder and the path within it, of a path to what was carried to a host; else empty."""
    return value.rpartition(f"/{_FOLDER}/")[2] if f"/{_FOLDER}/" in value else ""


def _refuse_module(name: str, value: str, module: str) -> None:
    file = Path(module.replace(".", "/") + ".py") if module else None
    if file and file.is_file():
        raise UsageError(f"{name} = {value!r}: name its file, which travels then: {file}:{value.rpartition(':')[2]}")


def _files_of(target: Path) -> tuple[Path, list[Path]]:
    """The folder that paths are relative to, and the files: of a folder all, of a Python file those that it imports."""
    if target.is_dir():
        found = sorted(path for path in target.rglob("*") if path.is_file() and not _is_hidden(path, target))
        return target.parent, found
    if target.suffix == ".py":
        return target.parent, sorted(_with_imports(target))
    return target.parent, [target]


def _is_hidden(path: Path, root: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.relative_to(root).parts)


def _with_imports(file: Path) -> set[Path]:
    """A Python file, and the files beside it that it imports, and so on."""
    found, open_files = set[Path](), [file]
    while open_files:
        path = open_files.pop()
        if path in found:
            continue
        found.add(path)
        try:
            tree = ast.parse(path.read_bytes(), str(path))
        except (OSError, SyntaxError, ValueError) as error:
            raise UsageError(f"{path} cannot be read as Python: {error}") from error
        for name in _imported(tree):
            package = file.parent / name
            if package.with_suffix(".py").is_file():
                open_files.append(package.with_suffix(".py"))
            elif (package / "__init__.py").is_file():
                open_files += [each for each in package.rglob("*.py") if not _is_hidden(each, package)]
    return found


def _imported(tree: ast.Module) -> Iterator[str]:
    """The first names of the modules that are imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)


def _hash(path: Path) -> str:
    with file_errors(f"{path} cannot be read", UsageError), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _send(link: HostLink, path: Path, file: CarriedFile) -> None:
    with path.open("rb") as source:
        offset, data = 0, source.read(_BLOCK)
        while True:
            following = source.read(_BLOCK)
            link.ask(ContentRequest(file.hash, offset, data, is_last=not following))
            if not following:
                return
            offset, data = offset + len(data), following


# on the host


def _folder() -> Path:
    return home() / _FOLDER


def _content(name: str) -> Path:
    if not _HASH.fullmatch(name):
        raise RunError(f"{name!r} is not a checksum")
    return _folder() / "contents" / name


def missing(request: MissingRequest, _: Send) -> MissingFiles:
    """Which contents are not here."""
    return MissingFiles(tuple({file.hash for file in request.files if not _content(file.hash).is_file()}))


def take(request: ContentRequest, _: Send) -> Done:
    """Take a part of a content, and check it when it is whole."""
    path = _content(request.hash)
    part = path.with_suffix(".part")
    with file_errors(f"{path.parent} cannot be written"):
        private_directory(path.parent)
        with part.open("ab" if request.offset else "wb") as file:
            if file.tell() != request.offset:
                raise RunError("a part of a file is missing: try again")
            file.write(request.data)
        if request.is_last:
            if _hash(part) != request.hash:
                part.unlink()
                raise RunError("a file has changed while it was sent: try again")
            part.chmod(0o400)
            part.replace(path)
    return Done()


def make_folder(request: FolderOfFilesRequest, _: Send) -> Done:
    """Make a folder of links to contents."""
    listed = sorted((file.path, file.hash) for file in request.files)
    folder = _folder() / hashlib.sha256(repr(listed).encode("utf-8", "surrogatepass")).hexdigest()[:20]
    if folder.is_dir():
        return Done(str(folder.absolute()))
    unfinished = folder.with_name(f".{os.getpid()}-{folder.name}")
    with file_errors(f"{folder} cannot be written"), replacing(folder, unfinished):
        private_directory(unfinished)
        for file in request.files:
            place = unfinished / _relative(file.path)
            private_directory(place.parent)
            os.link(_content(file.hash), place)
    return Done(str(folder.absolute()))


def _relative(text: str) -> PurePosixPath:
    path = PurePosixPath(text)
    if path.is_absolute() or not path.parts or ".." in path.parts:
        raise RunError(f"{text!r} is not a path within a folder")
    return path
