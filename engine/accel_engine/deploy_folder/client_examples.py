"""Writes the example that the clients of a folder send: as JSON for every model, and as a file where one is natural."""

import csv
import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.data_options import ColumnFormat
from accel_engine.data.tables.dates import ISO, UNIX
from accel_engine.data.tables.raw_inputs import DATE_PARTS, input_keys
from accel_engine.model_server.protocols import DATATYPES
from accel_engine.model_server.service import Service, UploadForm, load_examples, read_service

EXAMPLE, EXPECTED, V1_EXAMPLE = "example.json", "expected.json", "example-v1.json"
"""The files of a request, the trained model's answer to it, and the request in the protocol of TensorFlow Serving."""

MEDIA_TYPES = {".png": "image/png", ".csv": "text/csv", ".txt": "text/plain", ".wav": "audio/wav"}


def write_client_examples(folder: Path, clients: Path) -> str:
    """Write a request with the expected answer, for the clients in the folder.

    Args:
        folder: A servable folder.
        clients: The directory.

    Returns:
        The name of the file for ``POST /predict``; empty if there is none.

    Raises:
        OSError: A file cannot be written.
    """
    service, (inputs, outputs) = read_both(folder)
    row = whole_row(inputs)
    example = {name: array[row : row + 1] for name, array in inputs.items()}
    expected = {name: plain(array[row : row + 1].reshape(-1)) for name, array in outputs.items()}
    write_json_line(clients / EXAMPLE, {"inputs": _v2_inputs(service, example)})
    write_json_line(clients / V1_EXAMPLE, v1_request(service, example))
    write_json_line(clients / EXPECTED, expected)
    name = _write_file(service, {key: np.asarray(array[0]) for key, array in example.items()}, clients)
    return name or ""


def read_both(folder: Path) -> tuple[Service, tuple[dict[str, npt.NDArray[Any]], dict[str, npt.NDArray[Any]]]]:
    """The description and the examples of a folder; see :mod:`accel_engine.model_server.service`."""
    return read_service(folder), load_examples(folder)


def _v2_inputs(service: Service, example: Mapping[str, npt.NDArray[Any]]) -> list[dict[str, Any]]:
    """The inputs of a request of the Open Inference Protocol, of some examples."""
    return [
        {
            "name": each.name,
            "shape": list(example[each.name].shape),
            "datatype": DATATYPES[each.dtype],
            "data": plain(example[each.name].reshape(-1)),
        }
        for each in service.inputs
    ]


def v1_request(service: Service, example: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """A request of TensorFlow Serving's REST API, of some examples."""
    values = {each.name: plain(example[each.name]) for each in service.inputs}
    return {"inputs": next(iter(values.values())) if len(values) == 1 else values}


def plain(array: npt.NDArray[Any]) -> Any:
    """Values as JSON has them, in nested lists; ``None`` for what is not a finite number."""
    return _plain(array.astype(str).astype(object) if array.dtype.kind in "SU" else array)


def _plain(array: npt.NDArray[Any]) -> Any:
    if array.dtype.kind == "f" and array.dtype.itemsize < 8:
        # As short as it can be, so that what reads it gets the same number.
        array = array.astype(str).astype(np.float64)
    return array.tolist() if array.dtype.kind in "biu" else _finite(array.tolist())


def _finite(value: Any) -> Any:
    if isinstance(value, list):
        return [_finite(each) for each in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return None if isinstance(value, float) and not math.isfinite(value) else value


def whole_row(inputs: Mapping[str, npt.NDArray[Any]]) -> int:
    """The first example with the fewest missing numbers and texts."""
    count = len(next(iter(inputs.values())))
    missing = np.zeros(count, np.int64)
    for array in inputs.values():
        rows = array.reshape(count, -1)
        if array.dtype.kind in "fO":
            missing += (rows == "" if array.dtype == object else ~np.isfinite(rows)).sum(axis=1)
    return int(missing.argmin())


def write_json_line(path: Path, value: Any) -> None:
    """Write a value as a line of JSON; a number that is not finite is an error."""
    path.write_text(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")


def _write_file(service: Service, example: Mapping[str, npt.NDArray[Any]], clients: Path) -> str | None:
    """Write an example as a file of its kind; ``None`` if there is no such file."""
    form, only = service.files, next(iter(example.values()))
    match form.kind:
        case "images" if len(example) == 1 and only.ndim in (2, 3):
            return _write_image(clients, only, form.low, form.high)
        case "table" if _is_plain(form):
            return _write_row(clients, form, example)
        case "series" if _is_plain(form) and only.ndim == 2 and len(form.features) == only.shape[1]:
            return _write_series(clients, form, only)
        case "text" if len(example) == 1:
            return _write_text(clients, form, str(only.reshape(-1)[0]))
        case "language" if form.vocabulary and len(example) == 1:
            tokens = (int(each) for each in only.reshape(-1))
            (clients / "example.txt").write_text("".join(form.vocabulary[each] for each in tokens), "utf-8")
            return "example.txt"
        case "audio" if form.sample_rate and len(example) == 1:
            return _write_sound(clients, only, form.sample_rate)
    return None


def _write_text(clients: Path, form: UploadForm, text: str) -> str | None:
    """Write a text as the line of a file, or as the cell of a table if it has several lines."""
    if text.strip() and text.splitlines() == [text]:
        (clients / "example.txt").write_text(text, "utf-8")
        return "example.txt"
    return _write_rows(clients, form.features, [[text]]) if form.features else None


def _write_row(clients: Path, form: UploadForm, example: Mapping[str, npt.NDArray[Any]]) -> str | None:
    """Write the columns that an example has; ``None`` where inputs are joined from many columns."""
    parts = [
        [f"{each.name} {part}" for part in DATE_PARTS] if each.kind == "date" else [each.name] for each in form.columns
    ]
    keys = dict(zip(chain(*parts), input_keys(chain(*parts)), strict=True))
    if any(keys[each.name] not in example for each in form.columns if each.kind != "date"):
        return None
    cells = [
        _date(each, [example.get(keys[f"{each.name} {part}"]) for part in DATE_PARTS])
        if each.kind == "date"
        else _cell(example[keys[each.name]])
        for each in form.columns
    ]
    return _write_rows(clients, [each.name for each in form.columns], [cells])


def _date(column: ColumnFormat, parts: Sequence[npt.NDArray[Any] | None]) -> str:
    """A date as the training file wrote it, from its parts; empty if it is missing, or the model does not take all."""
    values = [math.nan if part is None else float(part.reshape(-1)[0]) for part in parts]
    if not np.isfinite(values).all():
        return ""
    year, month, day, _, hour = values
    try:
        date = datetime(int(year), int(month), int(day), tzinfo=UTC) + timedelta(seconds=round(hour * 3600))
    except (ValueError, OverflowError):
        return ""
    if column.date_format in UNIX:
        return str(round(date.timestamp() * UNIX[column.date_format]))
    if column.date_format == ISO:
        return date.strftime("%Y-%m-%d" if not hour else "%Y-%m-%d %H:%M:%S")
    return date.strftime(column.date_format)


def _is_plain(form: UploadForm) -> bool:
    """Whether numbers in a file are as programs write them."""
    return all(each.notation.is_plain for each in form.columns)


def _write_series(clients: Path, form: UploadForm, window: npt.NDArray[Any]) -> str | None:
    """Write the rows of a window, with their times counted from 0; ``None`` where times are dates."""
    kinds = {each.name: each.kind for each in form.columns}
    if form.time and kinds.get(form.time) != "number":
        return None
    lead = [name for name in (form.time, form.group) if name]
    rows = []
    for at, values in enumerate(window):
        cells = ([str(at)] if form.time else []) + (["a"] if form.group else [])
        rows.append([*cells, *(repr(float(each)) for each in values)])
    return _write_rows(clients, [*lead, *form.features], rows)


def _write_image(clients: Path, pixels: npt.NDArray[Any], low: float, high: float) -> str | None:
    from PIL import Image

    image = pixels[..., 0] if pixels.ndim == 3 and pixels.shape[-1] == 1 else pixels
    if image.ndim == 3 and image.shape[-1] != 3:
        return None
    levels = (image.astype(np.float64) - low) / ((high - low) or 1.0) * 255
    Image.fromarray(np.clip(np.rint(levels), 0, 255).astype(np.uint8)).save(clients / "example.png")
    return "example.png"


def _write_sound(clients: Path, samples: npt.NDArray[Any], rate: int) -> str:
    import soundfile

    values = samples.reshape(len(samples), -1).astype(np.float64)
    soundfile.write(clients / "example.wav", np.clip(values, -1, 1), rate, subtype="PCM_16")
    return "example.wav"


def _cell(value: npt.NDArray[Any]) -> str:
    found = value.reshape(-1)[0]
    if isinstance(found, bytes):
        return found.decode("utf-8", "replace")
    if isinstance(found, str):
        return found
    return "" if not np.isfinite(found) else str(found)


def _write_rows(clients: Path, names: Any, rows: list[list[str]]) -> str:
    with (clients / "example.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
    return "example.csv"
