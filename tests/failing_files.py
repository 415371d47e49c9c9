"""A thin layer over the file operations that write, Python's and SQLite's, of which one fails."""

import builtins
import ctypes
import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any
from unittest import mock

SHORT = "short write"
"""A write that writes half, which is no error: the caller must write the rest."""

FAULTS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EDQUOT": errno.EDQUOT, "EROFS": errno.EROFS, SHORT: 0}
"""What may happen to an operation, with the error's number."""

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT

_PYTHONS = ("mkdir", "rmdir", "unlink", "remove", "rename", "replace", "fsync", "truncate", "ftruncate")
"""Functions of ``os``, each an operation; ``open`` and writes are more than a call."""


class FailingFiles:
    """Counts operations, and lets one fail.

    Args:
        number: Which one fails, from 1; 0 for none.
        fault: How, of :data:`FAULTS`; only operations with ``write`` in their names can be short.

    Attributes:
        operations: The names of the operations so far.
    """

    def __init__(self, number: int = 0, fault: str = "ENOSPC") -> None:
        self._number = number
        self._fault = fault
        self.operations: list[str] = []

    @property
    def has_failed(self) -> bool:
        """Whether the operation that fails has been called."""
        return 0 < self._number <= len(self.operations)

    def error_of(self, operation: str) -> int:
        """Count an operation; returns the number of its error, 0 for none."""
        self.operations.append(operation)
        return FAULTS[self._fault] if len(self.operations) == self._number else 0

    def is_short(self) -> bool:
        """Whether the operation just counted writes only half."""
        return self._fault == SHORT and len(self.operations) == self._number

    def check(self, operation: str, path: object) -> None:
        """Count an operation, and raise its error."""
        if number := self.error_of(operation):
            raise OSError(number, os.strerror(number), path if isinstance(path, (str, os.PathLike)) else None)

    @contextmanager
    def active(self) -> Iterator["FailingFiles"]:
        """Count all operations of this process inside the ``with`` block."""
        with ExitStack() as stack:
            for name in _PYTHONS:
                stack.enter_context(mock.patch.object(os, name, self._counted(name, getattr(os, name))))
            stack.enter_context(mock.patch.object(os, "open", self._os_open(os.open)))
            for name in ("write", "pwrite"):
                stack.enter_context(mock.patch.object(os, name, self._os_write(name, getattr(os, name))))
            opened = self._open(io.open)
            for module in (io, builtins):
                stack.enter_context(mock.patch.object(module, "open", opened))
            stack.enter_context(_sqlite_calls(self))
            yield self

    def _counted(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: object, *args: Any, **kwargs: Any) -> Any:
            self.check(name, path)
            return real(path, *args, **kwargs)

        return call

    def _os_open(self, real: Callable[..., int]) -> Callable[..., int]:
        def call(path: object, flags: int, *args: Any, **kwargs: Any) -> int:
            if flags & _WRITES:
                self.check("open", path)
            return real(path, flags, *args, **kwargs)

        return call

    def _os_write(self, name: str, real: Callable[..., int]) -> Callable[..., int]:
        def call(descriptor: int, content: bytes, *args: Any) -> int:
            self.check(name, None)
            return real(descriptor, content[: len(content) // 2] if self.is_short() else content, *args)

        return call

    def _open(self, real: Callable[..., Any]) -> Callable[..., Any]:
        files = self

        class Raw(io.FileIO):
            def write(self, content: Any) -> int:
                files.check("file.write", None)
                view = memoryview(content).cast("B")
                return super().write(view[: len(view) // 2] if files.is_short() else view)

        def call(file: Any, mode: str = "r", buffering: int = -1, *args: Any, **kwargs: Any) -> Any:
            if not {*mode} & {*"wax+"}:
                return real(file, mode, buffering, *args, **kwargs)
            self.check("open", file)
            closefd, opener = kwargs.pop("closefd", True), kwargs.pop("opener", None)
            raw = Raw(file, mode.replace("b", "").replace("t", ""), closefd, opener)
            if buffering == 0:
                return raw
            buffered: Any = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
            return buffered if "b" in mode else io.TextIOWrapper(buffered, *args, **kwargs)

        return call


class _Vfs(ctypes.Structure):
    """``sqlite3_vfs`` of sqlite3.h, whose last functions replace the system calls of SQLite's Unix files."""

    _fields_ = (
        ("iVersion", ctypes.c_int),
        ("szOsFile", ctypes.c_int),
        ("mxPathname", ctypes.c_int),
        ("pNext", ctypes.c_void_p),
        ("zName", ctypes.c_char_p),
        ("pAppData", ctypes.c_void_p),
        ("before", ctypes.c_void_p * 13),  # xOpen to xCurrentTimeInt64
        ("xSetSystemCall", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)),
        ("xGetSystemCall", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)),
    )


_INT, _SIZE, _OFFSET = ctypes.c_int, ctypes.c_ssize_t, ctypes.c_int64

_PWRITE = (_SIZE, _INT, ctypes.c_void_p, ctypes.c_size_t, _OFFSET)

_SYSTEM_CALLS: dict[str, tuple[Any, ...]] = {
    "open": (_INT, ctypes.c_char_p, _INT, _INT),
    "write": (_SIZE, _INT, ctypes.c_void_p, ctypes.c_size_t),
    "pwrite": _PWRITE,
    "pwrite64": _PWRITE,
    "ftruncate": (_INT, _INT, _OFFSET),
    "unlink": (_INT, ctypes.c_char_p),
}
"""SQLite's names of the system calls that write, with the types of their result and arguments."""


@cache
def missing_sqlite() -> str:
    """Why SQLite's system calls cannot be replaced; empty if they can."""
    try:
        vfs = _unix_vfs()
    except (ImportError, AttributeError, OSError) as error:
        return f"the functions of SQLite's library cannot be reached: {error}"
    return "" if vfs and vfs.contents.iVersion >= 3 else "SQLite has no replaceable system calls"


def _unix_vfs() -> Any:
    import _sqlite3

    library = ctypes.CDLL(getattr(_sqlite3, "__file__", None))
    library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
    library.sqlite3_vfs_find.argtypes = [ctypes.c_char_p]
    return library.sqlite3_vfs_find(b"unix")


@contextmanager
def _sqlite_calls(files: FailingFiles) -> Iterator[None]:
    """Count the system calls of SQLite's files, where they can be reached."""
    if missing_sqlite():
        yield
        return
    pointer = _unix_vfs()
    vfs = pointer.contents
    replaced = []
    for name, types in _SYSTEM_CALLS.items():
        address = vfs.xGetSystemCall(pointer, name.encode())
        if address:
            prototype = ctypes.CFUNCTYPE(*types, use_errno=True)
            replacement = prototype(_system_call(files, name, prototype(address)))
            replaced.append((name.encode(), address, replacement))
    try:
        for name_bytes, _, replacement in replaced:
            vfs.xSetSystemCall(pointer, name_bytes, ctypes.cast(replacement, ctypes.c_void_p))
        yield
    finally:
        for name_bytes, address, _ in replaced:
            vfs.xSetSystemCall(pointer, name_bytes, address)


def _system_call(files: FailingFiles, name: str, real: Callable[..., int]) -> Callable[..., int]:
    def call(*args: Any) -> int:
        if name == "open" and not args[1] & _WRITES:
            return real(*args)
        if number := files.error_of(f"sqlite {name}"):
            ctypes.set_errno(number)
            return -1
        if files.is_short() and "write" in name:
            args = (*args[:2], args[2] // 2, *args[3:])
        return real(*args)

    return call
