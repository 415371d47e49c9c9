"""Compares GPUs with those for which a build of TensorFlow has code."""

import re
from collections.abc import Iterable


def newest_major(built: Iterable[str]) -> int | None:
    """The newest generation for which a build has code: 9 for ``sm_80`` and ``compute_90``; ``None`` if unknown."""
    digits = [re.sub(r"\D", "", each) for each in built]
    return max((int(each[:-1]) for each in digits if len(each) > 1), default=None)


def is_newer(capability: str, built: Iterable[str]) -> bool:
    """Whether a GPU is of a newer generation than a build has code for. CUDA code runs on its own generation only.

    TensorFlow's kernels may be compiled for it, which takes up to half an hour, but XLA aborts the process
    (TensorFlow's issues 89272, 111958).

    Args:
        capability: The GPU's compute capability, such as ``12.0``; empty if unknown.
        built: Those of the build, as its build info has them: ``sm_80``, ``compute_90``.
    """
    newest = newest_major(built)
    return bool(capability) and newest is not None and int(capability.partition(".")[0]) > newest
