"""How a change of data is said."""

import pytest

from accel_engine.data.changes import Change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (Change("converted", "pixels", detail="to 8 bits"), "pixels converted: to 8 bits"),
        (Change("left out", "columns", 1, detail="country"), "1 column left out: country"),
        (Change("left out", "columns without numbers", 1200), "1,200 columns without numbers left out"),
        (Change("padded", "sounds", 1, 24), "1 of 24 sounds padded"),
        (Change("turned", "images", 3, 64, "by EXIF", is_sampled=True), "3 of 64 images looked at turned: by EXIF"),
    ],
)
def test_a_change_is_said_with_its_counts(change: Change, said: str) -> None:
    assert str(change) == said
