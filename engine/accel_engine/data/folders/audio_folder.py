"""Describes and loads sounds in a folder per class."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import Change, Verb
from accel_engine.data.data_options import DataOptions
from accel_engine.data.file_kinds import AUDIO_SUFFIXES
from accel_engine.data.folders.class_source import ClassFileForm, ClassFolderSource
from accel_engine.data.folders.files import FilesSeen
from accel_engine.data.folders.folder_source import SplitFiles
from accel_engine.data.folders.sound_files import (
    SoundHeader,
    read_sound,
    resampled_length,
    sound_header,
    sound_window_starts,
)
from accel_engine.errors import DataError, PlanError

CUT = 0.01
"""Share of the sounds that may be longer than all others, and are cut to their length."""

MOST_SAMPLES = 1 << 27
"""Samples of an example at most, 50 minutes of music."""


class SoundWindow(str):
    """The path of a sound of which a window is an example."""

    first: int
    """The sample, at the sample rate of all, where the window begins."""

    def __new__(cls, path: str, first: int) -> Self:
        """A window of a sound."""
        window = super().__new__(cls, path)
        window.first = first
        return window


_COUNTED = SoundHeader(0, 0, 0)
"""Returned as the header of all windows of a sound but the first, so that the sound counts once."""


@dataclass
class SoundForm(ClassFileForm[SoundHeader]):
    """Sounds that are brought to one length and one sample rate, float32 ``[samples, 1]``."""

    samples: int
    """Number of samples."""
    sample_rate: int
    """Samples per second."""
    hint: str = ""
    """What the note that they are cut ends with; empty where the plan gives the length."""
    divides: bool = False
    """Whether each window of a sound of at least two windows is an example; otherwise the loudest one is."""
    dtype = "float32"
    looked_at = 5_000  # the longest of a few would be shorter than many others

    @classmethod
    def of(cls, seen: FilesSeen[str, SoundHeader], options: DataOptions) -> Self:
        """The most common sample rate, and the length of the longest sound, but for one in a hundred; or the window.

        Sounds are divided if the median one has two windows, and all files were looked at.

        Raises:
            DataError: The sounds are too long.
            PlanError: The window is invalid.
        """
        if options.window is not None and not 1 <= options.window <= MOST_SAMPLES:
            raise PlanError("window", options.window, f"must be a number of samples up to {MOST_SAMPLES:,}")
        rates = Counter[int]()
        for header, count in seen.counts.items():
            rates[header.rate] += count
        rate = max(rates, key=lambda each: (rates[each], each))
        lengths = sorted(resampled_length(header.samples, header.rate, rate) for header in seen.headers.values())
        if options.window is not None:
            are_long = lengths[len(lengths) // 2] >= 2 * options.window
            return cls(options.window, rate, divides=are_long and not seen.is_sampled)
        samples = lengths[-1 - int(CUT * len(lengths))]
        if samples > MOST_SAMPLES:
            raise DataError(
                f"the sounds are too long, {samples:,} samples: set window to at most {MOST_SAMPLES:,} samples"
            )
        return cls(samples, rate, " (change it with window)")

    def __post_init__(self) -> None:
        self.shape = (self.samples, 1)
        self.detail = f"{self.samples} samples, {self._seconds} at {self.sample_rate} samples per second"

    @property
    def _seconds(self) -> str:
        return f"{self.samples / self.sample_rate:.3g} s"

    @classmethod
    def check(cls, file: str) -> SoundHeader:
        """The header of a sound that is not truncated."""
        return sound_header(Path(file))

    def read(self, file: str) -> tuple[npt.NDArray[Any], SoundHeader]:
        """The samples of a sound, and its header."""
        first = file.first if isinstance(file, SoundWindow) else None
        sound, header = read_sound(Path(file), self.samples, self.sample_rate, first)
        return sound[:, np.newaxis], _COUNTED if first else header

    def windows_of(self, file: str, header: SoundHeader | None) -> list[str]:
        """The windows that a sound is divided into, or the sound."""
        starts = sound_window_starts(self.length_of(header), self.samples) if header and self.divides else [None]
        return [file if first is None else SoundWindow(file, first) for first in starts]

    def _is_divided(self, header: SoundHeader) -> bool:
        return len(self.windows_of("", header)) > 1

    def changes(self, headers: Counter[SoundHeader], *, is_sampled: bool = False) -> tuple[Change, ...]:
        """Notes on sounds that are mixed, resampled, padded and cut."""
        counts, total, lost, windows = Counter[Verb](), 0, 0, 0
        headers = Counter({header: count for header, count in headers.items() if header != _COUNTED})
        for header, count in headers.items():
            length = self.length_of(header)
            for verb in (found := self.changes_of(header)):
                counts[verb] += count
            total += count * length
            if "cut" in found:
                lost += count * (length - self.samples)
            if "divided" in found:
                windows += count * len(self.windows_of("", header))
        all_are = f"{self.samples:,} samples, {self._seconds}"
        details: dict[Verb, str] = {
            "mixed": "their channels into one",
            "resampled": f"to {self.sample_rate:,} samples per second",
            "padded": f"with silence to {all_are}",
            "divided": f"into {windows:,} windows of {all_are}, an example each; no sound is in two splits",
            "cut": f"to their loudest {all_are}, without {100 * lost / max(1, total):.2g}% of all sound{self.hint}",
        }
        return tuple(
            Change(verb, "sounds", counts[verb], headers.total(), detail, is_sampled)
            for verb, detail in details.items()
            if counts[verb]
        )

    def changes_of(self, header: SoundHeader) -> list[Verb]:
        """The changes by reading a sound."""
        length = self.length_of(header)
        found: dict[Verb, bool] = {
            "mixed": header.channels > 1,
            "resampled": header.rate != self.sample_rate,
            "padded": length < self.samples,
            "divided": self._is_divided(header),
            "cut": length > self.samples and not self._is_divided(header),
        }
        return [verb for verb, applies in found.items() if applies]

    def length_of(self, header: SoundHeader) -> int:
        """Number of samples of a sound at the sample rate of all."""
        return resampled_length(header.samples, header.rate, self.sample_rate)


class AudioFolder(ClassFolderSource):
    """Sounds in a folder per class: float32 ``[n, samples, 1]``.

    This is the shape of ``keras.utils.audio_dataset_from_directory``, whose channels are mixed into one here.
    """

    suffixes = AUDIO_SUFFIXES
    noun = "sounds"
    column = "audio"
    form_type = SoundForm
    takes_window = True

    @cached_property
    def examples(self) -> Mapping[str, SplitFiles[str]]:
        """The sounds of each split, or their windows."""
        [(seen, form)] = self.looks
        return {use: _divided(split, seen.headers, form) for use, split in self.splits.items()}


def _divided(split: SplitFiles[str], headers: Mapping[str, SoundHeader], form: Any) -> SplitFiles[str]:
    windows = [form.windows_of(file, headers.get(file)) for file in split.files]
    file_of = np.repeat(np.arange(len(split)), [len(each) for each in windows])
    return replace(split.select(file_of), files=tuple(chain.from_iterable(windows)), file_of=file_of)
