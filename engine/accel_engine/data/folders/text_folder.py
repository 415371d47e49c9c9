"""Describes and loads texts in a folder per class."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from accel_engine.data.changes import Change
from accel_engine.data.characters import UTF_8, decoded, encoding_name, encoding_of
from accel_engine.data.data_options import DataOptions
from accel_engine.data.file_kinds import TEXT_SUFFIXES
from accel_engine.data.folders.class_source import ClassFileForm, ClassFolderSource
from accel_engine.data.folders.files import FilesSeen
from accel_engine.errors import DataError, UnreadableError, file_errors
from accel_engine.files import regular

_SHOWN = 200
"""Bytes shown of an example."""


@dataclass
class TextForm(ClassFileForm[str]):
    """Texts as they are; the header of a file is its encoding."""

    shape = ()
    dtype = "object"

    @classmethod
    def of(cls, seen: FilesSeen[str, str], options: DataOptions) -> Self:
        """Texts are read in one way."""
        return cls()

    @classmethod
    def check(cls, file: str) -> str:
        """The encoding of a text."""
        return decoded(_bytes(file), f"the text {file}")[1]

    def read(self, file: str) -> tuple[str, str]:
        """A text, and its encoding."""
        return decoded(_bytes(file), f"the text {file}")

    def changes(self, headers: Counter[str], *, is_sampled: bool = False) -> tuple[Change, ...]:
        """The texts in other encodings than UTF-8."""
        return tuple(
            Change("converted", "texts", count, headers.total(), f"from {encoding_name(encoding)}", is_sampled)
            for encoding, count in sorted(headers.items())
            if encoding != UTF_8
        )


class TextFolder(ClassFolderSource):
    """Text files in a folder per class: strings ``[n]``."""

    suffixes = TEXT_SUFFIXES
    noun = "text files"
    column = "text"
    form_type = TextForm
    ignored = ("unsup",)  # the reviews of IMDB without a class

    def sample(self, file: str, label: str) -> tuple[str, str]:
        """The class of a text, and how it begins."""
        try:
            start = _bytes(file, _SHOWN)
        except DataError as error:
            return label, str(error).replace(f"cannot read the text {file}", "cannot be read")
        return label, " ".join(start.decode(encoding_of(start[:4]), errors="replace").split())


def _bytes(file: str, limit: int = -1) -> bytes:
    with file_errors(f"cannot read the text {file}", UnreadableError), regular(Path(file)).open("rb") as opened:
        return opened.read(limit)
