"""Caches this machine's measurements for later runs, in JSON files in the program's directory."""

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec

from accel_engine import clock
from accel_engine.errors import RunError
from accel_engine.files import replacing
from accel_engine.json_values import convert_or_none, parse_object, to_plain
from accel_engine.run.directory.run_paths import home, make_private

MAX_AGE_SECONDS = 7 * 24 * 3600
"""How long a rate of training counts: other programs and settings of the machine change what is fast."""

Rate: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=sys.float_info.max)]
"""A rate that was measured."""

T = TypeVar("T")


def load(name: str, key: str, kind: type[T]) -> T | None:
    """Load a saved value.

    Args:
        name: Name of the file.
        key: Everything that the value depends on.
        kind: Its type.

    Returns:
        The value, or ``None`` where there is none, or a damaged one.
    """
    return convert_or_none(_read(name).get(key), kind)


def save(name: str, key: str, value: Any) -> None:
    """Save a value for later runs; write errors are ignored, as the value can be measured again."""
    save_all(name, {key: value})


def save_all(name: str, values: Mapping[str, Any], keep: Callable[[Any], bool] = lambda _: True) -> None:
    """Save values by key, as :func:`save` does.

    Args:
        name: Name of the file.
        values: The values.
        keep: Whether a value that the file has is still needed.
    """
    with suppress(OSError, RunError):
        make_private(home())
        with replacing(home() / name) as temporary:
            kept = {key: value for key, value in _read(name).items() if keep(value)}
            temporary.write_text(json.dumps(to_plain({**kept, **values}), indent=1))


def is_recent(measured_at: float) -> bool:
    """Whether a rate, measured at a time in seconds since the Unix epoch, still counts."""
    return 0 <= clock.now() - measured_at < MAX_AGE_SECONDS


def _read(name: str) -> dict[str, Any]:
    try:
        return parse_object((home() / name).read_text())
    except (OSError, ValueError):
        return {}
