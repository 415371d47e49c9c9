"""A model that is served: its back end, which is started again when it dies, and the queue of what it shall compute.

Requests that wait together are computed as one batch, filled up to a size that the model was warmed up for. While a
batch is computed, the next one gathers: nobody waits for a timer, and batches grow with the load.
"""

import asyncio
import logging
import math
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from accel_engine.errors import ModelError
from accel_engine.inference.runtime import Arrays
from accel_engine.model_server.back_end_process import BackEnd, BackEndGoneError, Outputs
from accel_engine.model_server.metrics import ServerMetrics
from accel_engine.model_server.request_error import RequestError
from accel_engine.model_server.service import Service, read_service

LOG = logging.getLogger("model_server")

IN_FLIGHT = 2
"""Batches that the back end has at most: one that it computes, and the next one, so that it never waits."""

ATTEMPTS, ATTEMPTS_ALONE = 2, 4
"""How often a batch is computed whose back end dies, and then each of its requests alone: one of them may be why."""

LONGEST_PAUSE = 10.0
"""Seconds between two starts of a back end that dies at once, at most."""

_NAMES = 1 << 16
"""Bytes of a request beside its values."""

FILLED_UP = ("savedmodel", "tflite")
"""Formats whose batches are filled up: TensorFlow and LiteRT prepare kernels and memory for each size, ONNX Runtime
does not, and would compute rows in vain."""


@dataclass(slots=True, eq=False)
class _Item:
    """Some examples of a request."""

    inputs: Arrays
    count: int
    kind: tuple[Any, ...]
    """Equal for examples that may be in the same batch."""
    answer: asyncio.Future[Outputs]
    deadline: float


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a server."""

    queue: int = 1024
    """Examples that wait at most."""
    seconds: float = 30.0
    """How long a request may wait and be computed, and also how long a batch may be computed."""
    body: int = 16 << 20
    """Bytes of a request at most."""
    threads: int = 1
    """Threads of an operation of the model."""


def largest_body(service: Service) -> int:
    """The default for the bytes of a request at most: one example as JSON fits, whatever its numbers are."""
    size = 0
    for each in service.inputs:
        characters = 4 if each.dtype in ("int8", "uint8") else 24  # of a number
        around = 2 * (len(each.shape) + 1)  # a comma, a blank, and brackets
        size += (characters + around) * math.prod(side or 1 for side in each.shape)
    return max(Limits().body, size + _NAMES)


class _DeadlyError(RequestError):
    """Back ends die while they compute a batch."""


class ServedModel:
    """A model that is served. Made by :meth:`start`.

    Attributes:
        folder: Its folder.
        service: The description.
    """

    def __init__(
        self, folder: Path, service: Service, limits: Limits, metrics: ServerMetrics, back_end: BackEnd
    ) -> None:
        self.folder, self.service = folder, service
        self._limits, self._metrics = limits, metrics
        self._back_end: BackEnd | None = back_end
        self._alive = asyncio.Event()
        self._alive.set()
        self._queue: deque[_Item] = deque()
        self._queued = 0
        self._work = asyncio.Event()
        self._slots = asyncio.Semaphore(IN_FLIGHT)
        self._batches: set[asyncio.Task[None]] = set()
        self._holders = 0
        self._tasks = [asyncio.create_task(self._dispatch()), asyncio.create_task(self._supervise())]

    @classmethod
    async def start(cls, folder: Path, limits: Limits, metrics: ServerMetrics) -> "ServedModel":
        """Load the model of a folder; returns once it is warm.

        Raises:
            UsageError: The folder has no model to serve.
            ModelError: The model cannot be loaded.
        """
        folder = folder.resolve()  # a link may lead elsewhere later
        service = read_service(folder)
        return cls(folder, service, limits, metrics, await BackEnd.start(folder, limits.threads))

    @property
    def is_ready(self) -> bool:
        """Whether a back end computes."""
        return self._alive.is_set()

    @property
    def queued(self) -> int:
        """Examples that wait."""
        return self._queued

    @property
    def memory(self) -> int:
        """Resident bytes of the back end."""
        return self._back_end.memory if self._back_end else 0

    async def infer(self, inputs: Arrays) -> Outputs:
        """Compute the outputs for some examples.

        Args:
            inputs: An array for each input, in its type and shape, ``[examples, ...]``.

        Raises:
            RequestError: There are too many, the model cannot compute them, or it takes too long.
        """
        count = len(next(iter(inputs.values())))
        if not count:
            raise RequestError("the request has no examples")
        if count > self._limits.queue:
            raise RequestError(f"{count:,} examples are too many: send at most {self._limits.queue:,} at once", 413)
        if self.service.files.kind == "language":
            _check_tokens(inputs, len(self.service.files.vocabulary))
        if self._queued + count > self._limits.queue:
            self._metrics.rejected.labels("queue").inc()
            raise RequestError(f"the server is busy: {self._queued:,} examples wait", 429, retry_after=1)
        loop = asyncio.get_running_loop()
        kind = tuple((name, array.dtype.str, array.shape[1:]) for name, array in sorted(inputs.items()))
        items, size, deadline = list[_Item](), self.service.largest_batch, loop.time() + self._limits.seconds
        for start in range(0, count, size):
            part = inputs if count <= size else {name: array[start : start + size] for name, array in inputs.items()}
            items.append(_Item(part, min(size, count - start), kind, loop.create_future(), deadline))
        self._queue.extend(items)
        self._queued += count
        self._work.set()
        try:
            async with asyncio.timeout_at(deadline):
                if len(items) == 1:
                    return await items[0].answer
                found = await asyncio.gather(*(item.answer for item in items), return_exceptions=True)
        except TimeoutError:  # what is being computed is finished: others wait behind it
            self._metrics.rejected.labels("deadline").inc()
            raise self._too_late() from None
        for each in found:
            if isinstance(each, BaseException):
                raise each
        parts: list[Any] = found
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    @contextmanager
    def held(self) -> Iterator[None]:
        """A block that may call :meth:`infer`, also if another model takes over meanwhile."""
        self._holders += 1
        try:
            yield
        finally:
            self._holders -= 1

    async def retire(self) -> None:
        """Close once nobody holds the model: a request may still be on its way to it."""
        while self._holders:
            await asyncio.sleep(0.01)
        await self.close()

    async def close(self) -> None:
        """Compute what waits, and end the back end."""
        while self._queue or self._batches:
            await asyncio.sleep(0.01)
        for task in self._tasks:
            task.cancel()
        if self._back_end:
            await self._back_end.close()

    async def _dispatch(self) -> None:
        """Make batches of what waits, and have them computed."""
        while True:
            await self._work.wait()
            await self._slots.acquire()
            batch = self._next_batch()
            if not batch:
                self._slots.release()
                self._work.clear()
                continue
            task = asyncio.create_task(self._compute(batch))
            self._batches.add(task)
            task.add_done_callback(self._batches.discard)

    def _next_batch(self) -> list[_Item]:
        """Take the first examples that wait, and those that fit in a batch with them."""
        queue, batch, room = self._queue, list[_Item](), self.service.largest_batch
        while queue and (not batch or (queue[0].kind == batch[0].kind and queue[0].count <= room)):
            item = queue.popleft()
            self._queued -= item.count
            if item.answer.done():  # whoever asked is gone, or was told that it takes too long
                continue
            batch.append(item)
            room -= item.count
        return batch

    async def _compute(self, batch: list[_Item]) -> None:
        try:
            await self._answer(batch)
        finally:
            self._slots.release()

    async def _answer(self, batch: list[_Item]) -> None:
        """Compute a batch, and answer those that wait for it."""
        count = sum(item.count for item in batch)
        try:
            inputs = self._joined(batch, count)
            attempts = ATTEMPTS if len(batch) > 1 else ATTEMPTS_ALONE
            outputs = await self._outputs(inputs, max(item.deadline for item in batch), attempts)
            _check_rows(outputs, len(next(iter(inputs.values()))))
        except Exception as error:
            if isinstance(error, RequestError) and not isinstance(error, _DeadlyError):
                _fail(batch, error)
            elif len(batch) > 1:  # only one of them may be wrong
                for item in batch:
                    if not item.answer.done():
                        await self._answer([item])
            elif isinstance(error, RequestError):
                _fail(batch, error)
            elif isinstance(error, ModelError):
                _fail(batch, RequestError(f"the model cannot compute these examples: {error}"))
            else:
                LOG.exception("a batch cannot be computed")
                _fail(batch, RequestError("the server failed; its log says why", 500))
            return
        self._metrics.batch_size.observe(count)
        start = 0
        for item in batch:
            if not item.answer.done():
                item.answer.set_result({name: each[start : start + item.count] for name, each in outputs.items()})
            start += item.count

    def _joined(self, batch: Sequence[_Item], count: int) -> Arrays:
        """The examples of a batch, filled up with the last one."""
        size = count
        if self.service.model.format in FILLED_UP:
            size = next((each for each in self.service.batch_sizes if each >= count), count)
        if len(batch) == 1 and size == count:
            return batch[0].inputs
        found = {}
        for name in batch[0].inputs:
            parts = [item.inputs[name] for item in batch]
            if size > count:
                parts.append(np.repeat(parts[-1][-1:], size - count, axis=0))
            found[name] = np.concatenate(parts)
        return found

    async def _outputs(self, inputs: Arrays, deadline: float, attempts: int) -> Outputs:
        """Compute a batch, again if its back end dies.

        Raises:
            ModelError: The model cannot compute it.
            RequestError: No back end is alive until the deadline, the batch is computed for too long, or no back end
                survives it (:class:`_DeadlyError`).
        """
        for _ in range(attempts):
            try:
                async with asyncio.timeout_at(deadline):
                    back_end = await self._living()
            except TimeoutError:
                raise self._too_late() from None
            try:
                with self._metrics.batch_seconds.time():
                    return await back_end.compute(inputs, self._limits.seconds)
            except BackEndGoneError:
                continue
            except TimeoutError:
                LOG.warning("a batch took more than %g s: the back end is started again", self._limits.seconds)
                back_end.kill()
                raise self._too_late() from None
        raise _DeadlyError(f"the process of the model ended {attempts} times while it computed these examples", 503)

    def _too_late(self) -> RequestError:
        """The answer to a request whose time is over."""
        if not self.is_ready:
            return RequestError("the model is being started again", 503, retry_after=5)
        return RequestError(f"no answer within {self._limits.seconds:g} s", 504)

    async def _living(self) -> BackEnd:
        """The back end, once one is alive: one that has ended before it got a batch is not an attempt to compute it."""
        while True:
            await self._alive.wait()
            back_end = self._back_end
            assert back_end is not None  # noqa: S101 (it is alive)
            if back_end.is_alive:
                return back_end
            self._alive.clear()  # which the supervisor has not done yet

    async def _supervise(self) -> None:
        """Start a back end again when it has died."""
        pause = 0.0
        while True:
            if self._back_end is not None:
                await self._back_end.gone.wait()
                self._alive.clear()
                LOG.warning("the back end (process %d) is gone: it is started again", self._back_end.pid)
                self._back_end = None
            await asyncio.sleep(pause)
            self._metrics.restarts.inc()  # also of one that ends before it is ready
            try:
                self._back_end = await BackEnd.start(self.folder, self._limits.threads)
            except (ModelError, OSError) as error:
                LOG.warning("cannot start the back end again: %s", error)
                pause = min(LONGEST_PAUSE, pause * 2 or 0.5)
                continue
            pause = 0.0
            LOG.info("the back end is process %d", self._back_end.pid)
            self._alive.set()


def _check_tokens(inputs: Arrays, count: int) -> None:
    """Check that the model knows all tokens: ONNX Runtime counts negative ones from the end.

    Raises:
        RequestError: A token is negative, or too large.
    """
    for name, array in inputs.items():
        if wrong := array[(array < 0) | (array >= count)].tolist():
            raise RequestError(f"input {name} takes tokens from 0 to {count - 1:,}, not {wrong[0]:,}")


def _check_rows(outputs: Outputs, count: int) -> None:
    """Check that the outputs have a row for each example, so that they can be divided among requests.

    Raises:
        ModelError: An output has another number of rows.
    """
    for name, array in outputs.items():
        if not array.ndim or len(array) != count:
            raise ModelError(f"its output {name} is {list(array.shape)} for {count:,} examples, not one for each")


def _fail(batch: Sequence[_Item], error: RequestError) -> None:
    for item in batch:
        if not item.answer.done():
            item.answer.set_exception(RequestError(str(error), error.status, error.retry_after))
