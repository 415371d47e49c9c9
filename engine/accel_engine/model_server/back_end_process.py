"""The front end's side of a back end: starts the process, sends it batches, and sees when it is gone."""

import asyncio
import os
import socket
import subprocess
import sys
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.errors import ModelError
from accel_engine.inference.runtime import Arrays
from accel_engine.model_server import back_end_messages

Outputs = dict[str, npt.NDArray[np.generic]]

THREAD_VARIABLES = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")
"""Variables that libraries read the number of their threads from."""


class BackEndGoneError(Exception):
    """The back end ended before it answered."""


class BackEnd:
    """A process that computes batches, one after the other. Made by :meth:`start`.

    Attributes:
        gone: Set once the process has ended, or closed its link; it is killed then.
        load_seconds: How long it took to load and warm up the model.
        memory: Resident bytes of the process after its last batch.
        compute_seconds: How long its last batch took.
    """

    def __init__(
        self, process: asyncio.subprocess.Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.gone = asyncio.Event()
        self.load_seconds = 0.0
        self.memory = 0
        self.compute_seconds = 0.0
        self._process, self._reader, self._writer = process, reader, writer
        self._waiting: deque[asyncio.Future[Outputs]] = deque()
        self._task: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, folder: Path, threads: int) -> "BackEnd":
        """Start a back end; returns once the model is warm.

        Args:
            folder: The folder of the model.
            threads: Threads of an operation.

        Raises:
            ModelError: The model cannot be loaded; the message says why.
        """
        ours, theirs = socket.socketpair()
        environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads))}
        environment |= {"TF_FORCE_GPU_ALLOW_GROWTH": "true", "TF_CPP_MIN_LOG_LEVEL": "2"}
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "accel_engine.model_server.back_end"),
                *(str(folder), str(theirs.fileno()), str(threads)),
                stdin=subprocess.DEVNULL,
                stdout=2,  # what libraries print is of no use to anybody but the log
                pass_fds=(theirs.fileno(),),
                env=environment,
            )
        reader, writer = await asyncio.open_connection(sock=ours)
        self = cls(process, reader, writer)
        try:
            values, _ = await self._receive()
        except (asyncio.IncompleteReadError, OSError):
            status = await process.wait()
            writer.close()
            raise ModelError(f"the process that loads the model ended with status {status}") from None
        except asyncio.CancelledError:
            process.kill()
            raise
        if problem := values.get("problem"):
            await process.wait()
            writer.close()
            raise ModelError(problem)
        self.load_seconds = values["seconds"]
        self._task = asyncio.create_task(self._read())
        return self

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it can take a batch. Its link closes a moment before :attr:`gone` is set, and uvloop raises then."""
        return not self.gone.is_set() and not self._writer.is_closing()

    async def compute(self, inputs: Arrays, seconds: float) -> Outputs:
        """Compute a batch.

        Args:
            inputs: An array for each input, ``[batch, ...]``.
            seconds: How long it may take, once the batch before it is computed.

        Raises:
            BackEndGoneError: The process ended meanwhile.
            TimeoutError: It takes longer.
            ModelError: The model cannot compute these inputs.
        """
        if not self.is_alive:
            raise BackEndGoneError
        # Before anybody waits, as answers come in the order of the messages.
        message = list(back_end_messages.packed({}, inputs))
        answer: asyncio.Future[Outputs] = asyncio.get_running_loop().create_future()
        before = list(self._waiting)[-1:]
        self._waiting.append(answer)
        self._writer.writelines(message)
        if before:
            await asyncio.wait(before)
        async with asyncio.timeout(seconds):
            with suppress(OSError):  # which the reader sees, too
                await self._writer.drain()
            return await answer

    def kill(self) -> None:
        """End the process, whatever it does."""
        if self._process.returncode is None:
            self._process.kill()

    async def close(self) -> None:
        """End the process once it has computed its batches; after 10 seconds it is killed."""
        self._writer.close()
        try:
            async with asyncio.timeout(10):
                await self._process.wait()
        except TimeoutError:
            self.kill()
            await self._process.wait()

    async def _receive(self) -> tuple[dict[str, Any], Outputs]:
        head_size, body_size = back_end_messages.LENGTHS.unpack(
            await self._reader.readexactly(back_end_messages.LENGTHS.size)
        )
        head = await self._reader.readexactly(head_size)
        return back_end_messages.unpacked(head, await self._reader.readexactly(body_size))

    async def _read(self) -> None:
        """Give answers to those that wait for them, until the process is gone."""
        try:
            while True:
                values, outputs = await self._receive()
                answer = self._waiting.popleft()
                self.memory = values.get("memory", self.memory)
                self.compute_seconds = values.get("seconds", 0.0)
                if answer.done():
                    continue
                if problem := values.get("problem"):
                    answer.set_exception(ModelError(problem))
                else:
                    answer.set_result(outputs)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            self.gone.set()
            self.kill()  # it may have closed the link and hang
            for answer in self._waiting:
                if not answer.done():
                    answer.set_exception(BackEndGoneError())
            self._writer.close()
