"""Writes the images, texts and histograms of an imported run, one at a time."""

import math
from collections import Counter, defaultdict

import numpy as np

from accel_engine.errors import RunError
from accel_engine.imported_runs.source_run import SourceRun, named
from accel_engine.run.writing.writer import RunWriter
from accel_engine.words import numbers


def write_media(writer: RunWriter, run: SourceRun, began: float) -> None:
    """Write images, texts and histograms by rising step, and note which ones cannot be read or are too large.

    Args:
        writer: Writes the run.
        run: The run, whose notes are extended.
        began: Seconds since the Unix epoch: the time of items without one.

    Raises:
        RunError: The run cannot be written.
    """
    unreadable: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)  # by kind and reason; by name
    too_large: Counter[str] = Counter()  # by name
    first_error = ""
    which = np.repeat(np.arange(len(run.media)), [len(media.points.steps) for media in run.media])
    rows = np.concatenate([np.empty(0, np.int64), *(np.arange(len(media.points.steps)) for media in run.media)])
    steps = np.concatenate([np.empty(0, np.int64), *(media.points.steps for media in run.media)])
    for at in np.argsort(steps, kind="stable"):
        media, row = run.media[which[at]], rows[at]
        time = float(media.points.times[row])
        try:
            item = media.read(float(media.points.values[row]))
            writer.write_media(int(steps[at]), time if math.isfinite(time) else began, media.name, item)
        except ValueError as error:
            unreadable[media.kind, str(error)][media.name] += 1
        except RunError as error:
            if not isinstance(error.__cause__, ValueError):  # such as a full disk
                raise
            too_large[media.name] += 1
            first_error = first_error or str(error)
    for (kind, reason), names in unreadable.items():
        run.notes.append(f"left out: {numbers.counted(names.total(), kind)} in {named(names)}: {reason}")
    if too_large:
        count = f"{too_large.total():,} of the images, texts and histograms"
        run.notes.append(f"left out: {count} in {named(too_large)}: {first_error}")
