"""Finds the classes, splits, length and sample rate of a folder of WAV files from names and headers."""

from collections import Counter
from dataclasses import replace

from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset_entry import DatasetEntry, EntryColumn
from accel_engine.data.folders.class_folder import ClassFolder, scan_class_folder, survey_of_classes
from accel_engine.data.folders.file_check import unreadable_note
from accel_engine.data.folders.headers import read_headers
from accel_engine.data.folders.layout import AUDIO_SUFFIXES
from accel_engine.data.folders.wav_header import read_wav_header
from accel_engine.errors import DataError, PlanError


def survey(entry: DatasetEntry, options: DataOptions) -> DatasetEntry:
    """Find classes, counts, length and sample rate.

    Raises:
        DataError: The folder does not have a folder of WAV files per class, or they differ in their sample rates.
        PlanError: The window is invalid, or the split does not fit.
    """
    folder, samples, rate = scan_audio_folder(entry, options)
    unreadable = unreadable_note(folder.files, read_wav_header, options)
    surveyed = survey_of_classes(entry, folder, (samples, 1), "float32", "audio", unreadable)
    sound = EntryColumn(
        "audio", "audio", "input", detail=f"{samples} samples, {samples / rate:.3g} s at {rate} samples per second"
    )
    return replace(surveyed, value_range=None, sample_rate=rate, columns=(sound, *surveyed.columns[1:]))


def scan_audio_folder(entry: DatasetEntry, options: DataOptions) -> tuple[ClassFolder, int, int]:
    """Find the files of a folder, their classes, the number of samples of an example, and samples per second.

    Args:
        entry: Has the folder's path.
        options: The number of samples, as ``window``, and how validation files are chosen if the folder is not split.

    Raises:
        DataError: The folder does not have a folder of WAV files per class, or they differ in their sample rates.
        PlanError: The window is invalid, or the split does not fit.
    """
    if options.window is not None and options.window < 1:
        raise PlanError("window", options.window, "must be a number of samples")
    folder = scan_class_folder(entry, options, AUDIO_SUFFIXES, "WAV files")
    headers = read_headers(folder.files, read_wav_header, options)
    (rate, _), *others = Counter(header.rate for _, header in headers).most_common()
    if others:
        file, header = next((file, header) for file, header in headers if header.rate != rate)
        raise DataError(wrong_rate(file, header.rate, rate))
    lengths = Counter(header.samples for _, header in headers)
    samples = options.window or lengths.most_common(1)[0][0]
    notes = list(folder.notes)
    if set(lengths) != {samples}:
        chosen = "" if options.window else ", the most common length (change it with window)"
        notes.append(
            f"sounds have several lengths: padded with silence or cut to {samples} samples, "
            f"{samples / rate:.3g} s{chosen}"
        )
    if any(header.channels > 1 for _, header in headers):
        notes.append("channels are mixed into one")
    return replace(folder, notes=tuple(notes)), samples, rate


def wrong_rate(file: str, rate: int, expected: int) -> str:
    """The message about a file with another sample rate."""
    return (
        f"cannot use the sound {file}: it has {rate} samples per second and others {expected}; convert it, e.g. with "
        f"ffmpeg -i IN.wav -ar {expected} OUT.wav"
    )
