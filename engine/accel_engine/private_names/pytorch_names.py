"""The private name of PyTorch by which a recorder sees that a tensor was changed after it was logged."""

from typing import Any


def tensor_version(tensor: Any) -> int | None:
    """How often a tensor was changed in place; ``None`` if it does not count, or without ``Tensor._version``.

    No public name tells it. Tensors of ``torch.inference_mode`` do not count.
    """
    try:
        return int(tensor._version)
    except (AttributeError, RuntimeError, TypeError):
        return None
