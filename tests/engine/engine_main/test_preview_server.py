"""A preview of data is answered without TensorFlow."""

from pathlib import Path
from typing import Any, cast

from accel_engine.data_profile.described_data import DescribedData
from accel_engine.engine_main.request_server import answer
from accel_engine.plan import Plan
from accel_engine.requests.preview_data import PreviewRequest
from accel_engine.requests.protocol.request import Problem


class NoTensorFlow:
    """An import that nobody may wait for."""

    imported = False

    def wait(self) -> None:
        raise AssertionError


def test_data_is_described_without_waiting_for_tensorflow() -> None:
    found = answer(PreviewRequest(Plan(data="digits")), list[Any]().append, cast(Any, NoTensorFlow()))
    assert isinstance(found, DescribedData)
    assert found.picture
    assert (len(found.picture.pictures), sum(found.entry.class_counts)) == (6, 1437)


def test_what_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "bad.npz").write_bytes(b"nothing of the kind")
    found = answer(PreviewRequest(Plan(data=str(tmp_path / "bad.npz"))), list[Any]().append, cast(Any, NoTensorFlow()))
    assert isinstance(found, Problem)
