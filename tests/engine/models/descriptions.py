"""Descriptions of data, to build models for."""

from accel_engine.data.structure import ArraySpec
from accel_engine.models.data_description import DataDescription


def labelled(shape: tuple[int | None, ...], classes: int, dtype: str = "float32") -> DataDescription:
    """Examples with class indices."""
    return DataDescription(
        ArraySpec(shape, dtype), ArraySpec((), "int32"), tuple(map(str, range(classes))), task="classification"
    )
