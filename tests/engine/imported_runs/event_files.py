"""Writes event files as other tools do, with TensorBoard's own messages."""

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.util.tensor_util import make_tensor_proto

from accel_engine.crc32c import checksums_of_rows


def framed(data: bytes) -> bytes:
    """A TFRecord."""
    length = struct.pack("<Q", len(data))
    return length + _checksum(length) + data + _checksum(data)


def _checksum(data: bytes) -> bytes:
    return struct.pack("<I", int(checksums_of_rows(np.frombuffer(data, np.uint8)[None])[0]))


def old(tag: str, step: int, value: float, time: float) -> Event:
    """A scalar of TensorFlow 1 and PyTorch."""
    return Event(wall_time=time, step=step, summary=Summary(value=[Summary.Value(tag=tag, simple_value=value)]))


def new(tag: str, step: int, value: Any, time: float, plugin: str = "scalars", dtype: Any = np.float32) -> Event:
    """A tensor of TensorFlow 2."""
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=plugin))
    tensor = make_tensor_proto(value, dtype=dtype)
    return Event(
        wall_time=time, step=step, summary=Summary(value=[Summary.Value(tag=tag, tensor=tensor, metadata=metadata)])
    )


def tensor(tag: str, step: int, value: Any, plugin: str, dtype: Any = None, about: str = "") -> Event:
    """A tensor of any type."""
    data = SummaryMetadata.PluginData(plugin_name=plugin)
    metadata = SummaryMetadata(plugin_data=data, summary_description=about)
    return item(tag, step, tensor=make_tensor_proto(value, dtype=dtype), metadata=metadata)


def item(tag: str, step: int, **fields: Any) -> Event:
    """A value of any kind, at 1000 s and a second per step."""
    return Event(wall_time=1000.0 + step, step=step, summary=Summary(value=[Summary.Value(tag=tag, **fields)]))


def old_image(tag: str, step: int, data: bytes) -> Event:
    """An image of TensorFlow 1 and PyTorch."""
    return item(tag, step, image=Summary.Image(encoded_image_string=data))


def old_histogram(tag: str, step: int, limits: Sequence[float], counts: Sequence[float], **fields: float) -> Event:
    """A histogram of TensorFlow 1 and PyTorch; ``fields`` are its min, max and so on."""
    return item(tag, step, histo=HistogramProto(bucket_limit=limits, bucket=counts, num=sum(counts), **fields))


def restart(step: int, time: float) -> Event:
    """The start of a session at a step."""
    return Event(wall_time=time, step=step, session_log=SessionLog(status=SessionLog.START))


def write(directory: Path, events: Sequence[Event], time: int = 1000) -> Path:
    """Write an event file."""
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"events.out.tfevents.{time:010d}.host"
    first = Event(wall_time=float(time), file_version="brain.Event:2")
    file.write_bytes(b"".join(framed(event.SerializeToString()) for event in (first, *events)))
    return file
