"""The queue and its back ends, with a stand-in for the process: one wrong request harms no other in its batch."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine.errors import ModelError
from accel_engine.model_server import served_model
from accel_engine.model_server.back_end_process import BackEndGoneError
from accel_engine.model_server.metrics import ServerMetrics
from accel_engine.model_server.request_error import RequestError
from accel_engine.model_server.served_model import Limits, ServedModel
from accel_engine.model_server.service import read_service

DEADLY, WRONG, SLOW = -13, -7, -99


class StandIn:
    """Doubles numbers, but dies of some and refuses others."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()
        self.pid, self.memory = 1, 0
        self.batches: list[list[float]] = []

    async def compute(self, inputs: Any) -> Any:
        x = inputs["x"]
        self.batches.append(x[:, 0].tolist())
        await asyncio.sleep(0)
        if DEADLY in x:
            self.gone.set()
            raise BackEndGoneError
        if WRONG in x:
            raise ModelError("no sevens")
        if SLOW in x:
            await self.gone.wait()
            raise BackEndGoneError
        return {"y": 2 * x}

    def kill(self) -> None:
        self.gone.set()

    async def close(self) -> None:
        self.gone.set()


class Asked:
    """What was asked of a served model at once, and the back ends that there were."""

    def __init__(self, folder: Path, limits: Limits, monkeypatch: pytest.MonkeyPatch) -> None:
        self.back_ends: list[StandIn] = []

        async def start(*_: Any) -> StandIn:
            self.back_ends.append(StandIn())
            return self.back_ends[-1]

        monkeypatch.setattr(served_model.BackEnd, "start", start)
        self._folder, self._limits = folder, limits

    def __call__(self, *values: list[float]) -> list[Any]:
        return asyncio.run(self._ask(values))

    async def _ask(self, values: tuple[list[float], ...]) -> list[Any]:
        back_end: Any = await served_model.BackEnd.start(self._folder, 1)
        model = ServedModel(self._folder, read_service(self._folder), self._limits, ServerMetrics(), back_end)
        asked = (model.infer({"x": np.float32(each).reshape(-1, 1)}) for each in values)
        found = await asyncio.gather(*asked, return_exceptions=True)
        await model.close()
        return [each if isinstance(each, BaseException) else each["y"][:, 0].tolist() for each in found]


@pytest.fixture
def asked(folders: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(folders / "numbers", Limits(queue=20, seconds=5), monkeypatch)


def test_a_batch_has_those_that_wait_and_no_more_than_the_largest(asked: Asked) -> None:
    found = asked(*([float(value)] for value in range(20)))
    assert found == [[2.0 * value] for value in range(20)]
    sizes = [len(each) for each in asked.back_ends[0].batches]
    assert max(sizes) == 8
    assert len(sizes) < 6


def test_a_large_request_is_several_batches(asked: Asked) -> None:
    assert asked([float(value) for value in range(19)]) == [[2.0 * value for value in range(19)]]
    assert [len(each) for each in asked.back_ends[0].batches] == [8, 8, 3]


def test_one_wrong_request_fails_alone(asked: Asked) -> None:
    first, wrong, last = asked([1], [WRONG], [2])
    assert (first, last) == ([2.0], [4.0])
    assert isinstance(wrong, RequestError)
    assert (wrong.status, str(wrong)) == (400, "the model cannot compute these examples: no sevens")
    assert len(asked.back_ends) == 1


def test_one_deadly_request_fails_alone(asked: Asked) -> None:
    *others, deadly = asked([1], [2], [3], [DEADLY])
    assert others == [[2.0], [4.0], [6.0]]
    assert isinstance(deadly, RequestError)
    assert (deadly.status, "ended 4 times" in str(deadly)) == (503, True)
    assert len(asked.back_ends) <= 7


def test_a_queue_that_is_full_and_examples_that_never_fit(asked: Asked) -> None:
    *accepted, refused = asked(*[[1.0] * 4] * 5, [1.0])
    assert accepted == [[2.0] * 4] * 5
    assert isinstance(refused, RequestError)
    assert (refused.status, refused.retry_after) == (429, 1)
    (too_many,) = asked([1.0] * 21)
    assert too_many.status == 413
    (none,) = asked([])
    assert (none.status, str(none)) == (400, "the request has no examples")


def test_a_batch_that_takes_too_long_ends_its_back_end(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(folders / "numbers", Limits(queue=20, seconds=0.2), monkeypatch)
    (slow,) = asked([SLOW])
    assert isinstance(slow, RequestError)
    assert (slow.status, str(slow)) == (504, "no answer within 0.2 s")
    assert asked.back_ends[0].gone.is_set()
