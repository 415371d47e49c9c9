"""Images, texts and histograms that a script logs at a step, and how they are stored.

Each is a row of the table ``media``: a JSON head and a compressed body.
"""

from accel_engine.run.media.from_arrays import histogram_of, image_of
from accel_engine.run.media.items import (
    KINDS,
    MAX_NAME,
    Histogram,
    LoggedImage,
    LoggedItem,
    LoggedText,
    MediaItem,
    MediaKind,
    MediaSeries,
    check_position,
    pack_media,
    unpack_media,
)

__all__ = [
    "KINDS",
    "MAX_NAME",
    "Histogram",
    "LoggedImage",
    "LoggedItem",
    "LoggedText",
    "MediaItem",
    "MediaKind",
    "MediaSeries",
    "check_position",
    "histogram_of",
    "image_of",
    "pack_media",
    "unpack_media",
]
