"""Checks that the arrays and lists of a report, and of the views in it, fit together."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from accel_engine.run.diagnostics.reports import SCORE_BINS

_SHAPES: Mapping[str, Mapping[str, tuple[str | int, ...]]] = {
    "Scores": {"positives": ("labels", SCORE_BINS), "negatives": ("labels", SCORE_BINS)},
    "ClassificationReport": {"counts": ("classes", "classes")},
    "MultiLabelReport": {"counts": ("labels", 2, 2)},
    "RegressionReport": {
        "names": ("names",),
        "mae": ("names",),
        "rmse": ("names",),
        "r2": ("names",),
        "points": ("names", "points", 2),
        "residuals": ("names", "bins"),
        "residual_edges": ("names", "edges"),
    },
    "SegmentationReport": {"counts": ("classes", "classes")},
    "ReconstructionReport": {"errors": ("bins",), "error_edges": ("edges",)},
    "SequenceReport": {"counts": ("classes", "classes")},
    "ForecastReport": {"names": ("names",), "mae": ("names", "horizon"), "baseline": ("names", "horizon")},
    "Image": {"pixels": ("height", "width", "channels")},
    "Mask": {"classes": ("height", "width")},
    "Row": {"names": ("columns",), "values": ("columns",)},
    "Tokens": {"tokens": ("tokens",), "losses": ("tokens",)},
    "Curve": {"values": ("series", "points")},
    "Spectrogram": {"levels": ("frequencies", "times")},
    "Parts": {"names": ("parts",), "views": ("parts",)},
}
"""The axes of fields, by class; axes of one name in an object are of one length."""


def check_shapes(value: Any) -> None:
    """Check a report, and all that it contains.

    Raises:
        ValueError: Something has another shape than it should have.
    """
    if isinstance(value, tuple):
        for item in value:
            check_shapes(item)
    elif is_dataclass(value):
        sizes: dict[str, int] = {}
        for name, axes in _SHAPES.get(type(value).__name__, {}).items():
            _check(name, getattr(value, name), axes, sizes)
        if "bins" in sizes and sizes["edges"] != sizes["bins"] + 1:
            raise ValueError("a histogram has one more edge than bins")
        if sizes.get("channels", 1) not in (1, 3, 4):
            raise ValueError(f"an image has no {sizes['channels']} channels")
        for item in fields(value):
            check_shapes(getattr(value, item.name))


def _check(name: str, value: Any, axes: tuple[str | int, ...], sizes: dict[str, int]) -> None:
    if value is None:
        return
    shape = (len(value),) if isinstance(value, tuple) else value.shape
    wanted = [
        axis if isinstance(axis, int) else sizes.setdefault(axis, size) for axis, size in zip(axes, shape, strict=False)
    ]
    if len(shape) != len(axes) or list(shape) != wanted:
        raise ValueError(f"{name} has the shape {list(shape)}")
