import pytest

from accel_engine import data, models, strategies
from accel_engine.text import suggestion


def test_close_names_are_suggested_in_their_own_case() -> None:
    assert suggestion("resnet5", ["ResNet50", "mlp"]) == "did you mean ResNet50?"
    assert suggestion("DIGITS", ["digits", "mnist"]) == "did you mean digits?"


def test_without_close_names_some_are_listed() -> None:
    assert suggestion("zzz", ["mlp", "cnn"]) == "known: mlp, cnn"
    shown = suggestion("zzz", [f"model{index}" for index in range(30)])
    assert shown.endswith(", ...")
    assert len(shown) < 200


@pytest.mark.parametrize("catalogue", [models.CATALOGUE, data.CATALOGUE, strategies.CATALOGUE])
def test_catalogues_are_keyed_by_name_with_short_summaries(catalogue: dict[str, object]) -> None:
    for name, entry in catalogue.items():
        assert entry.name == name  # type: ignore[attr-defined]
        summary = entry.summary  # type: ignore[attr-defined]
        assert summary
        assert "\n" not in summary
        assert len(summary) <= 90
