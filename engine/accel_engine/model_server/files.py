"""Makes raw examples of a file, and readable predictions of a model's outputs: what ``POST /predict`` does."""

import re
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from accel_engine.data.characters import decoded, tokens_of_text
from accel_engine.data.data_options import DataOptions
from accel_engine.data.folders.sound_files import read_sound, resampled_length, sound_header, sound_window_starts
from accel_engine.data.structure import ArraySpec
from accel_engine.data.tables import rows_to_predict
from accel_engine.data.tables.raw_inputs import arrays_of
from accel_engine.errors import AccelError
from accel_engine.image_files import parse_header, read_example
from accel_engine.inference.output_prediction import OutputPrediction, prediction, rows_not_finite
from accel_engine.inference.runtime import Arrays
from accel_engine.model_server.back_end_process import Outputs
from accel_engine.model_server.request_error import RequestError
from accel_engine.model_server.service import Meaning, Service, UploadForm
from accel_engine.model_server.tensors import Array
from accel_engine.text import printable_line
from accel_engine.words import numbers

TABLES = {"text/csv": ".csv", "text/tab-separated-values": ".tsv", "application/jsonl": ".jsonl",
          "application/x-ndjson": ".jsonl", "application/vnd.apache.parquet": ".parquet"}  # fmt: skip
"""The suffixes of tables, by their media type."""

_SUFFIXES = frozenset(TABLES.values())

_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,7}$")
"""The suffix of a sound, which may tell its format."""

LONGEST_NAME = 200
"""Characters of a file's name that answers and errors have."""

MOST_PIXELS, LARGE_PICTURE = 1 << 26, 1 << 22
"""Pixels of an image at most, as a small file may have any number of them; of larger ones, one at a time is decoded."""

_LARGE_PICTURES = threading.Lock()

MOST_ROWS = 1 << 16
"""Rows of a table, and lines of a text, at most: far more than the examples of a request, and little memory."""

MOST_SAMPLES = 1 << 26
"""Samples of a sound's channels at most: hours of silence are a small file."""

_QUOTED = re.compile(rb'"[^"]*"')

MAX_TOKENS = 5
"""The most probable tokens of an answer of a language model."""


@dataclass(frozen=True, slots=True)
class FileExamples:
    """The examples of a file.

    Attributes:
        names: Names of all examples; a text is its name.
        inputs: Raw inputs of the examples without a problem, ``[readable, ...]``; of a sound, its windows.
        problems: Why the others have no prediction, by their place in ``names``.
        last: The place of the last token of a prompt; ``None`` if the file is not a prompt.
        notes: What reading changed in the file.
    """

    names: Sequence[str]
    inputs: Arrays
    problems: Mapping[int, str]
    last: int | None = None
    notes: tuple[str, ...] = ()


def read_file(content: bytes, name: str, media_type: str, service: Service) -> FileExamples:
    """Make raw examples of a file, as the run's own data was read.

    Args:
        content: What is in the file.
        name: Its name; empty if it is not known.
        media_type: What the client says it is.
        service: What the model takes.

    Raises:
        RequestError: The file has no examples for the model; the message says what to send.
    """
    if not content:
        raise RequestError(f"the file is empty: send {_wanted(service.files)}")
    try:
        return _read(content, printable_line(Path(name).name)[-LONGEST_NAME:] or "the file", media_type, service)
    except RequestError:
        raise
    except AccelError as error:
        raise RequestError(f"{error}; send {_wanted(service.files)}") from None


def _read(content: bytes, name: str, media_type: str, service: Service) -> FileExamples:
    form, specs = service.files, service.specs
    single = next(iter(specs)) if len(specs) == 1 else ""
    spec = specs.get(single, ArraySpec((), ""))
    suffix = Path(name).suffix.lower() if Path(name).suffix.lower() in _SUFFIXES else TABLES.get(media_type, "")
    if form.kind in ("table", "series", "text"):
        _check_rows(content, suffix)
    match form.kind:
        case "images":
            pixels, notes = picture(content, spec, form)
            return FileExamples(
                [name], {single: pixels[np.newaxis]}, {}, notes=tuple(f"{name}: {note}" for note in notes)
            )
        case "table":
            with _temporary(content, suffix or ".csv", name) as path:
                return _rows(path, name, form, specs)
        case "series":
            with _temporary(content, suffix or ".csv", name) as path:
                columns = rows_to_predict.table_columns(path, form.columns)
            options = DataOptions(time=form.time, group=form.group, window=form.window)
            names, windows, problems = rows_to_predict.last_windows(name, columns, form.features, options)
            found = np.empty((0, *(side or 0 for side in spec.shape))) if windows is None else windows
            return FileExamples(names, {single: found.astype(spec.dtype)}, problems)
        case "text":
            return _texts(content, suffix, name, single, form, spec)
        case "audio":
            ending = _SUFFIX.search(name)
            with _temporary(content, ending[0] if ending else ".wav", name) as path:
                header = sound_header(path)
                if (count := header.samples * header.channels) > MOST_SAMPLES:
                    raise RequestError(
                        f"the sound has {count:,} samples; the server takes {MOST_SAMPLES:,} at most", 413
                    )
                samples, rate = spec.shape[0] or 0, form.sample_rate
                length = resampled_length(header.samples, header.rate, rate)
                starts = sound_window_starts(length, samples) if form.window else [None]
                windows = np.array([read_sound(path, samples, rate, first)[0] for first in starts])
            return FileExamples([name], {single: windows[..., np.newaxis].astype(spec.dtype)}, {})
        case "language":
            return _prompt(decoded(content, "the text")[0], single, form, spec)
    raise RequestError("this model takes arrays only: send them to /v2/models or /v1/models")


def _check_rows(content: bytes, suffix: str) -> None:
    """Check, before it is read, that a table or a text has no more rows than any request may have.

    Raises:
        RequestError: The file has more than :data:`MOST_ROWS` rows.
    """
    if content.startswith(b"PAR1"):
        from pyarrow import ArrowException, parquet

        try:
            rows = parquet.read_metadata(BytesIO(content)).num_rows
        except (ArrowException, OSError):  # which reading it tells better
            return
    else:
        rows = content.count(b"\n")
        if rows > MOST_ROWS and suffix in (".csv", ".tsv"):
            rows = _QUOTED.sub(b"", content).count(b"\n")
    if rows > MOST_ROWS:
        raise RequestError(f"the file has {rows:,} rows; the server takes {MOST_ROWS:,} at most", 413)


def _rows(path: Path, file_name: str, form: UploadForm, specs: Mapping[str, ArraySpec]) -> FileExamples:
    """The rows of a table, as the raw columns that the model takes."""
    found = rows_to_predict.read_rows_to_predict(path, form.columns, form.categories)
    inputs = arrays_of(found.inputs, {key: spec.dtype for key, spec in specs.items()})
    kept = {key: np.delete(array, list(found.problems), axis=0) for key, array in inputs.items()}
    problems = {row: text.replace(path.name, file_name) for row, text in found.problems.items()}
    return FileExamples(
        found.names, kept, problems, notes=tuple(each.replace(path.name, file_name) for each in found.notes)
    )


def _texts(content: bytes, suffix: str, file_name: str, single: str, form: UploadForm, spec: ArraySpec) -> FileExamples:
    """The texts of a table's column, or the lines of a file."""
    if suffix:
        with _temporary(content, suffix, file_name) as path:
            texts = rows_to_predict.read_texts_to_predict(path, form.features)
    else:
        lines = [line for line in decoded(content, "the text")[0].splitlines() if line.strip()]
        texts = np.array(lines, object)
    if not len(texts):
        raise RequestError("the file has no text")
    return FileExamples(
        [str(text) for text in texts], {single: texts.reshape(len(texts), *(1 for _ in spec.shape))}, {}
    )


def _prompt(text: str, single: str, form: UploadForm, spec: ArraySpec) -> FileExamples:
    """The last tokens of a prompt, padded at the end to the window of the model."""
    tokens = tokens_of_text(text, form.vocabulary)
    window = spec.shape[0]
    kept = tokens[-(window or form.window or len(tokens)) :]
    filled = [*kept, *[0] * ((window or len(kept)) - len(kept))]
    return FileExamples([text], {single: np.array([filled], spec.dtype)}, {}, last=len(kept) - 1)


@contextmanager
def _temporary(content: bytes, suffix: str, name: str) -> Iterator[Path]:
    """A file with some content while a block runs, for readers that take paths; errors in it name the client's file."""
    with tempfile.NamedTemporaryFile(prefix="uploaded", suffix=suffix) as file:
        file.write(content)
        file.flush()
        try:
            yield Path(file.name)
        except RequestError:
            raise
        except AccelError as error:
            raise AccelError(str(error).replace(file.name, name).replace(Path(file.name).name, name)) from None


def picture(content: bytes, spec: ArraySpec, form: UploadForm) -> tuple[Array, tuple[str, ...]]:
    """An example of an image file, and what reading changed.

    Raises:
        RequestError: The image has more than :data:`MOST_PIXELS` pixels.
        DataError: The image cannot be decoded.
    """
    sides = tuple(side or 0 for side in spec.shape)
    header = parse_header(content)
    count = header.width * header.height if header else 0
    if count > MOST_PIXELS:
        raise RequestError(f"the image has {count:,} pixels; the server takes {MOST_PIXELS:,} at most", 413)
    with _LARGE_PICTURES if count > LARGE_PICTURE else nullcontext():
        pixels, notes = read_example(content, sides, form.low, form.high, integers=form.integers)
    return pixels.astype(spec.dtype), notes


def _wanted(form: UploadForm) -> str:
    """The files that a model takes, in words."""
    match form.kind:
        case "table":
            names = [column.name for column in form.columns]
            return f"a CSV file with the {numbers.plural(len(names), 'column')} {_listed(names)}"
        case "series":
            return f"a CSV file with at least {form.window:,} rows and the columns {_listed(form.features)}"
        case "images":
            return "an image, such as PNG or JPEG"
        case "audio":
            return "a sound, such as WAV or FLAC"
        case "language":
            return "a text to continue"
        case "text":
            return "a text in each line, or a CSV file"
    return "arrays to /v2/models"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def predictions(examples: FileExamples, outputs: Outputs, service: Service) -> list[dict[str, Any]]:
    """An object for each example, as ``accel-tui predict --json`` prints it.

    Args:
        examples: The examples.
        outputs: The model's outputs for those without a problem.
        service: Has what they mean.
    """
    if examples.last is not None:
        return [_next_tokens(examples, outputs, service)]
    if service.files.kind == "audio":  # one sound, by the mean of its windows
        outputs = {name: array.mean(0, keepdims=True) for name, array in outputs.items() if array.dtype.kind == "f"}
    known = {each.output: each for each in service.meanings}
    found = {name: _output(known.get(name) or Meaning(name, name, ""), array) for name, array in outputs.items() if
             array.dtype.kind not in "OUS"}  # fmt: skip
    wrong = set[int]().union(*map(rows_not_finite, found.values()))
    rows = iter(range(len(examples.names)))
    answers = []
    for place, name in enumerate(examples.names):
        values: dict[str, Any] = {"example": name, "problem": examples.problems.get(place, "")}
        if place not in examples.problems and (row := next(rows)) in wrong:
            values["problem"] = f"the model's outputs for {name} are not finite"
        elif place not in examples.problems:
            parts = {each.name: prediction(each, row, service.kind) for each in found.values()}
            values |= {"outputs": parts} if len(parts) > 1 else next(iter(parts.values()))
        answers.append(values)
    return answers


def _output(meaning: Meaning, array: Any) -> OutputPrediction:
    """The prediction of an output from its served values: probabilities, or numbers in their units."""
    values, chances = np.asarray(array), None
    if meaning.task in ("classification", "multi-label"):
        values = values.reshape(len(values), -1)
        if meaning.task == "classification" and values.shape[1] == 1 and len(meaning.classes) == 2:
            values = np.concatenate([1 - values, values], axis=1)
    elif meaning.task in ("sequence", "segmentation") and meaning.classes:
        if values.shape[-1] == 1 and len(meaning.classes) == 2:
            values = np.concatenate([1 - values, values], axis=-1)
        values, chances = values.argmax(-1).astype(np.int32), values.max(-1)
    return OutputPrediction(meaning.name, meaning.task, meaning.classes, meaning.columns, values, chances)


def _next_tokens(examples: FileExamples, outputs: Outputs, service: Service) -> dict[str, Any]:
    """The most probable tokens after a prompt."""
    vocabulary = service.files.vocabulary
    chances = next(iter(outputs.values()))[0]
    chances = chances[examples.last] if chances.ndim > 1 else chances
    best = np.argsort(-chances[: len(vocabulary)], kind="stable")[:MAX_TOKENS].tolist()
    top = [{"label": vocabulary[place], "probability": float(chances[place])} for place in best]
    return {"example": examples.names[0], "problem": "", **top[0], "top": top}
