"""Answers a request, with standard input and output: reserves both, and reads and writes messages."""

import os
import queue
import shutil
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from accel_engine import user_code
from accel_engine.doctor.tf_probe import refuse_xla_flags
from accel_engine.engine_main.tensorflow_import import TensorFlowImport, set_batch_scheduling
from accel_engine.errors import AccelError, RunError, format_error
from accel_engine.requests.protocol.channel import Channel, ProtocolError
from accel_engine.requests.protocol.request import (
    DeviceRequest,
    Doing,
    EngineRequest,
    FolderRequest,
    KeptState,
    Problem,
    Send,
    find_request,
    request_function,
    request_names,
)

KEPT_MEMORY = 3 << 30
"""Bytes of memory that a process may have and still be kept for further requests. TensorFlow alone takes 0.5 GB."""


def serve_request(kind: type[EngineRequest[Any]], tensorflow: TensorFlowImport) -> int:
    """Answer the request on standard input; returns the exit status."""
    channel = claim_pipes()
    with suppress(BrokenPipeError):  # nobody listens any more
        channel.send(_answer_next(kind, channel, tensorflow))
    return 0


def serve_requests(tensorflow: TensorFlowImport) -> int:
    """Answer requests of any type, one after another, until no more come; returns the exit status.

    The process has :func:`batch scheduling <accel_engine.engine_main.tensorflow_import.set_batch_scheduling>`, which
    the threads of a request that measures must not have: it is then the first one, and the last.
    """
    channel = claim_pipes()
    threading.Thread(target=partial(_import_ahead, tensorflow), name="import-ahead", daemon=True).start()
    kinds = [kind for kind in map(find_request, request_names()) if not kind.asks]
    try:
        for request in until_input_ends(channel, *kinds):
            is_problem = isinstance(request, Problem)
            if not is_problem and not request.is_batch:
                set_batch_scheduling(is_on=False)
            channel.folder = request.folder if isinstance(request, FolderRequest) else None
            answered = request if is_problem else _answer_of_many(request, channel.send, tensorflow)
            channel.send(KeptState(is_problem or (request.is_batch and _may_answer_more())))
            channel.send(answered)
    except BrokenPipeError:
        return 0
    except ProtocolError as error:
        print(error, file=sys.stderr, flush=True)  # noqa: T201 (who asks shows the last line)
        return 1
    return 0


def _import_ahead(tensorflow: TensorFlowImport) -> None:
    with suppress(AccelError):  # which each request reports
        tensorflow.wait()


def _answer_of_many(request: EngineRequest[Any], send: Send, tensorflow: TensorFlowImport) -> Any:
    """See :func:`answer`; as in a new process, but that the last model which a request opened is kept."""
    if tensorflow.imported:
        from accel_engine.trained.kept_model import begin_request

        begin_request()
    return answer(request, send, tensorflow)


def _may_answer_more() -> bool:
    """Whether this process is as good as a new one for the next request, and not too large."""
    return not user_code.has_run() and psutil.Process().memory_info().rss < KEPT_MEMORY


def _answer_next(kind: type[EngineRequest[Any]], channel: Channel, tensorflow: TensorFlowImport) -> Any:
    messages = until_input_ends(channel, kind, *kind.asks)
    try:
        request = next(messages)
    except ProtocolError as error:
        return Problem(f"the request is not what this version understands: {error}")
    if isinstance(request, Problem):
        return request
    if isinstance(request, FolderRequest):
        channel.folder = request.folder
    if kind.asks:
        return request_function(kind)(request, channel.send, messages, tensorflow)
    return answer(request, channel.send, tensorflow)


def answer(request: EngineRequest[Any], send: Send, tensorflow: TensorFlowImport) -> Any:
    """Answer a request.

    Args:
        request: The request.
        send: Sends the parts.
        tensorflow: Imported first, where the request needs it.

    Returns:
        The result, or the :class:`~accel_engine.requests.protocol.request.Problem`.

    Raises:
        BrokenPipeError: Nobody reads what is sent.
    """
    try:
        if request.needs_tensorflow:
            refuse_xla_flags()
            if not tensorflow.imported:
                send(Doing("importing TensorFlow"))
            tensorflow.wait()
        if isinstance(request, DeviceRequest):
            return _answer_on_device(request, send)
        return request_function(type(request))(request, send)
    except BrokenPipeError:
        raise
    except AccelError as error:
        return Problem(str(error))
    except (Exception, SystemExit) as error:  # noqa: BLE001 (the user's own code is built here)
        traceback.print_exc()
        return Problem(format_error(error))


def _answer_on_device(request: Any, send: Send) -> Any:
    """The result, with the device that has computed it.

    Raises:
        AccelError: The request cannot be answered on its device.
    """
    from accel_engine.training.core.device_visibility import use_for_request
    from accel_engine.training.reporting.error_explanation import is_of_host, is_out_of_memory

    device = use_for_request(request.device)
    try:
        return replace(request_function(type(request))(replace(request, device=device), send), device=device)
    except Exception as error:
        if device.is_gpu and is_out_of_memory(error) and not is_of_host(error):
            raise RunError(f"the memory of {device.id} ran out: choose --device cpu") from error
        raise


def until_input_ends(channel: Channel, *kinds: type) -> Iterator[Any]:
    """Messages that a thread reads from now on; the process exits with their end, whatever it does.

    The other program has then ended; the folder of its last request is deleted, as it may have left it.

    Raises:
        ProtocolError: A message is invalid, or of another version of the program.
    """
    received: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=partial(_read, channel, kinds, received), name="requests", daemon=True).start()
    return _raised(iter(received.get, None))


def _read(channel: Channel, kinds: tuple[type, ...], received: "queue.SimpleQueue[Any]") -> None:
    folder: Path | None = None
    try:
        while (numbered := channel.receive(*kinds)) is not None:
            message, _ = numbered
            if isinstance(message, FolderRequest):
                folder = message.folder
            received.put(message)
    except ProtocolError as error:
        received.put(error)
    else:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)


def _raised(messages: Iterator[Any]) -> Iterator[Any]:
    """The messages, with errors among them raised."""
    for message in messages:
        if isinstance(message, Exception):
            raise message
        yield message


def claim_pipes() -> Channel:
    """Return standard input and output as a channel.

    Other output of this process goes to standard error, and its standard input is empty.
    """
    channel = Channel(os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w"))
    null = os.open(os.devnull, os.O_RDONLY)
    redirect(0, null)
    os.dup2(2, 1)
    return channel


def redirect(descriptor: int, file: int) -> None:
    """Make a descriptor refer to an open file, and close the file's own descriptor."""
    os.dup2(file, descriptor)
    os.close(file)
