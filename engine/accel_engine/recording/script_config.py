"""Makes a script's configuration storable: one text, number or truth value per setting."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from accel_engine.errors import DataError
from accel_engine.recording.error_guard import value_or_none

Setting: TypeAlias = bool | int | float | str | None

MAX_SETTINGS = 1000
"""Settings beyond these are left out."""

MAX_TEXT = 500
"""Characters of the longest value."""

_MAX_DEPTH = 8


def flat_config(config: Any) -> dict[str, Setting]:
    """Flatten a configuration.

    Args:
        config: A mapping, whose values may be mappings, or an object with attributes, such as
            :class:`argparse.Namespace` or a dataclass; ``None`` for no configuration.

    Returns:
        Settings by name; the names of nested ones are joined with dots. What JSON has no type for is a text.

    Raises:
        DataError: It is neither.
    """
    if config is None:
        return {}
    if not isinstance(config, Mapping) and not hasattr(config, "__dict__"):
        raise DataError(f"{type(config).__name__} is not a mapping")
    values = config if isinstance(config, Mapping) else vars(config)
    settings = _settings("", values, 0)
    return dict(setting for setting, _ in zip(settings, range(MAX_SETTINGS), strict=False))


def _settings(prefix: str, values: Mapping[Any, Any], depth: int) -> Iterator[tuple[str, Setting]]:
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and depth < _MAX_DEPTH:
            yield from _settings(f"{name}.", value, depth + 1)
        else:
            yield name, _setting(value)


def _setting(value: Any) -> Setting:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    text = value_or_none(str, value)
    return text[:MAX_TEXT] if isinstance(text, str) else type(value).__name__
