"""The rows of docs/what-trains.md reach what it says: all of them with ``make gallery``, else a share."""

from pathlib import Path

import numpy as np
import pytest

from accel_engine.events import Outcome
from end_to_end.gallery_table import ROWS, Row, copy_gallery

from .conftest import Gym


@pytest.fixture(scope="session")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gallery")
    copy_gallery(folder)
    return folder


@pytest.mark.share(24)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_reaches_what_the_document_says(
    gym: Gym, gallery: Path, row: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(gallery)
    gym.steps = 50

    trained = gym.train(row.plan)

    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    value = trained.ended.metrics.get(row.metric)
    if value is None:  # without validation: the mean of the last steps
        value = float(np.mean(trained.series[row.metric][-20:]))
    row.check(value)
