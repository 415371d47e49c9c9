"""What was written to a run since the last look."""

from typing import Any

import numpy as np
import pytest

from accel_engine.devices.device_types import Sample
from accel_engine.events import Warned
from accel_engine.run.reading.update import Chunk, Update


@pytest.mark.parametrize(
    "written",
    [
        {"events": (Warned(time=1.0, message="x"),)},
        {"chunks": (Chunk(0, 1, 1.0, 2.0, {"loss": np.ones(1)}),)},
        {"samples": (Sample(1.0, "cpu:0"),)},
    ],
)
def test_an_update_with_anything_is_true(written: dict[str, Any]) -> None:
    assert Update(**written)


def test_an_update_with_nothing_is_false() -> None:
    assert not Update()
    assert not Update().more
