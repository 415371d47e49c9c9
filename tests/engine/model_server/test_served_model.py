"""The queue and its back ends, with a stand-in for the process: one wrong request harms no other in its batch."""

import asyncio
import socket
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import uvloop

from accel_engine.errors import ModelError
from accel_engine.model_server import back_end_messages, served_model
from accel_engine.model_server.access import ServerAccess
from accel_engine.model_server.application import ServingState
from accel_engine.model_server.back_end_process import BackEnd, BackEndGoneError
from accel_engine.model_server.metrics import ServerMetrics
from accel_engine.model_server.request_error import RequestError
from accel_engine.model_server.serve import ServerSettings, _reload
from accel_engine.model_server.served_model import Limits, ServedModel, largest_body
from accel_engine.model_server.service import UploadForm, read_service

DEADLY, WRONG, SLOW, MIXED, ODD, HELD = -13, -7, -99, -2, -5, -3


class StandIn:
    """Doubles numbers, but dies of some and refuses others."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()
        self.pid, self.memory = 1, 0
        self.batches: list[list[float]] = []
        self.release = asyncio.Event()

    async def compute(self, inputs: Any, seconds: float) -> Any:
        if self.gone.is_set():  # at once, as the real one
            raise BackEndGoneError
        x = inputs["x"]
        self.batches.append(x[:, 0].tolist())
        await asyncio.sleep(0)
        if DEADLY in x:
            self.gone.set()
            raise BackEndGoneError
        if WRONG in x:
            raise ModelError("no sevens")
        if SLOW in x:
            async with asyncio.timeout(seconds):
                await self.gone.wait()
            raise BackEndGoneError
        if HELD in x:
            await self.release.wait()
        if ODD in x:
            raise ZeroDivisionError("odd")
        return {"y": 2 * x[:1]} if MIXED in x else {"y": 2 * x}

    def kill(self) -> None:
        self.gone.set()

    @property
    def is_alive(self) -> bool:
        return not self.gone.is_set()

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


def test_a_back_end_that_has_just_ended_is_no_attempt(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Asked(folders / "numbers", Limits(seconds=5), monkeypatch)

    async def ask() -> Any:
        first: Any = await served_model.BackEnd.start(folders, 1)
        model = ServedModel(folders, read_service(folders / "numbers"), Limits(), ServerMetrics(), first)
        await asyncio.sleep(0)  # the supervisor begins to watch it
        first.gone.set()  # and has not seen that it is gone
        found = await model._outputs({"x": np.float32([[3]])}, asyncio.get_running_loop().time() + 5, 1)
        await model.close()
        return found["y"].tolist()

    assert asyncio.run(ask()) == [[6]]
    assert [each.batches for each in made.back_ends] == [[], [[3]]]


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


def test_a_request_that_waits_too_long_ends_no_back_end(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Asked(folders / "numbers", Limits(seconds=0.2), monkeypatch)

    async def ask() -> None:
        back_end: Any = await served_model.BackEnd.start(folders, 1)
        service, metrics = read_service(folders / "numbers"), ServerMetrics()
        model = ServedModel(folders, service, Limits(seconds=0.2), metrics, back_end)
        with pytest.raises(RequestError, match=r"no answer within 0\.2 s") as raised:
            await model.infer({"x": np.float32([[HELD]] * 100)})  # 13 batches, of which the first is not computed yet
        assert raised.value.status == 504
        assert 'model_server_rejected_total{reason="deadline"} 1.0' in metrics.text().decode()
        model._limits = Limits(seconds=120)
        back_end.release.set()
        assert (await model.infer({"x": np.float32([[4]])}))["y"].tolist() == [[8]]
        assert model.queued == 0
        assert not back_end.gone.is_set()
        await model.close()

    asyncio.run(ask())
    assert [len(each.batches) for each in made.back_ends] == [3]  # two were in flight


def test_outputs_that_are_not_of_one_example_each_are_no_answers(asked: Asked) -> None:
    first, mixed = asked([1], [MIXED, 3])
    assert first == [2.0]
    assert str(mixed).endswith("its output y is [1, 1] for 2 examples, not one for each")


def test_tokens_that_a_language_model_does_not_know_are_not_computed(
    asked: Asked, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = read_service(folders / "numbers")
    form = UploadForm("language", vocabulary=("a", "b"))
    monkeypatch.setitem(globals(), "read_service", lambda _: replace(service, files=form))
    known, negative, unknown = asked([0, 1], [-1, 0], [2])
    assert known == [0.0, 2.0]
    assert [str(each) for each in (negative, unknown)] == [
        "input x takes tokens from 0 to 1, not -1.0",
        "input x takes tokens from 0 to 1, not 2.0",
    ]


def test_whatever_goes_wrong_there_is_an_answer(asked: Asked) -> None:
    first, odd = asked([1], [ODD])
    assert first == [2.0]
    assert (odd.status, str(odd)) == (500, "the server failed; its log says why")


def test_a_model_that_is_replaced_answers_a_request_that_was_on_its_way(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask() -> Any:
        model = ServedModel(folders, read_service(folders / "numbers"), Limits(), ServerMetrics(), StandIn())  # type: ignore[arg-type]
        with model.held():
            retiring = asyncio.create_task(model.retire())
            await asyncio.sleep(0.05)
            found = await asyncio.wait_for(model.infer({"x": np.float32([[4]])}), 120)
        await retiring
        return found["y"].tolist()

    assert asyncio.run(ask()) == [[8.0]]


@pytest.mark.parametrize("is_body_of_model", [True, False])
def test_a_model_that_takes_the_place_of_a_smaller_one_gets_requests_of_its_size(
    folders: Path, monkeypatch: pytest.MonkeyPatch, is_body_of_model: bool
) -> None:
    service = read_service(folders / "numbers")
    large = replace(service, inputs=(replace(service.inputs[0], shape=(1000, 1000, 3)),))

    async def start(folder: Path, limits: Limits, metrics: ServerMetrics) -> ServedModel:
        return ServedModel(folder, large, limits, metrics, StandIn())  # type: ignore[arg-type]

    monkeypatch.setattr(ServedModel, "start", start)
    settings = ServerSettings(folder=folders / "numbers", is_body_of_model=is_body_of_model)
    state = ServingState(settings.limits, ServerAccess(), ServerMetrics())
    asyncio.run(_reload(settings, state))
    assert state.limits.body == (largest_body(large) if is_body_of_model else Limits().body)
    assert largest_body(large) > Limits().body


class Writer:
    """Stands in for the link to a back end, which answers as ``answer`` is called."""

    def __init__(self, *, is_quick: bool) -> None:
        self.reader = asyncio.StreamReader()
        self._is_quick = is_quick

    def answer(self) -> None:
        answer = back_end_messages.packed({"seconds": 0.0}, {"y": np.float32([[4]])})
        self.reader.feed_data(b"".join(bytes(part) for part in answer))

    def writelines(self, _: Any) -> None:
        if self._is_quick:
            self.answer()

    async def drain(self) -> None:
        pass

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        pass


def test_a_message_that_cannot_be_sent_leaves_the_answers_of_others_in_order() -> None:
    async def ask() -> Any:
        writer = Writer(is_quick=True)
        back_end = BackEnd(SimpleNamespace(returncode=0), writer.reader, writer)  # type: ignore[arg-type]
        reading = asyncio.create_task(back_end._read())
        with pytest.raises(UnicodeEncodeError):
            await back_end.compute({"x": np.array(["\ud800"], object)}, 120)
        found = await back_end.compute({"x": np.float32([[2]])}, 120)
        reading.cancel()
        return found["y"].tolist()

    assert asyncio.run(ask()) == [[4.0]]


def test_the_time_of_a_batch_begins_when_the_one_before_is_computed() -> None:
    async def ask() -> None:
        writer = Writer(is_quick=False)
        back_end = BackEnd(SimpleNamespace(returncode=0), writer.reader, writer)  # type: ignore[arg-type]
        reading = asyncio.create_task(back_end._read())
        first = asyncio.create_task(back_end.compute({"x": np.float32([[2]])}, 120))
        second = asyncio.create_task(back_end.compute({"x": np.float32([[2]])}, 0))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not second.done()
        writer.answer()
        assert (await first)["y"].tolist() == [[4]]
        with pytest.raises(TimeoutError):
            await second
        reading.cancel()

    asyncio.run(ask())


def test_a_back_end_whose_link_is_closed_and_not_yet_known_to_be_gone_gets_no_batch() -> None:
    """With uvloop, as in the server: it raises an error where asyncio writes nothing."""

    async def ask() -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            reader, writer = await asyncio.open_connection(sock=ours)
            back_end = BackEnd(SimpleNamespace(returncode=0), reader, writer)  # type: ignore[arg-type]
            assert back_end.is_alive
            writer.close()
            await writer.wait_closed()
            assert not back_end.is_alive
            with pytest.raises(BackEndGoneError):
                await back_end.compute({"x": np.float32([[2]])}, 120)

    uvloop.run(ask())
