"""Names that tell the models of one request apart."""

from collections.abc import Sequence
from pathlib import Path


def distinct_names(paths: Sequence[Path]) -> list[str]:
    """The last part of each path, with as many parts before it as tell it from the other paths.

    The same path has the same name with a number: ``m.onnx``, ``m.onnx (2)``.
    """
    names = [_name(path, paths) for path in paths]
    earlier = [names[:index].count(name) for index, name in enumerate(names)]
    return [f"{name} ({count + 1})" if count else name for name, count in zip(names, earlier, strict=True)]


def _name(path: Path, paths: Sequence[Path]) -> str:
    others = [other.parts for other in paths if other != path]
    for count in range(1, len(path.parts)):
        end = path.parts[-count:]
        if all(other[-count:] != end for other in others):
            return "/".join(end)
    return str(path)
