"""Peak FLOP/s of accelerators by name and arithmetic, as stated by their vendors.

All figures are for dense matrix products, not the doubled ones for sparse products, with float32 accumulation, as in
TensorFlow; many consumer GPUs do that at half the advertised rate. GPUs of which no such figure was found have none:
the smaller GeForce RTX 40, GB10, GB300, other editions of RTX PRO, and GPUs of laptops, which depend on their power.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

TERA = 1e12

FLOAT32, TF32, FLOAT16, BFLOAT16 = "float32", "tf32", "float16", "bfloat16"


@dataclass(frozen=True, slots=True)
class Peak:
    """A device's peak performance."""

    flops_per_second: float | None
    """FLOP/s; ``None`` if unknown."""
    source: str = ""
    """Source of the figure."""
    reason: str = ""
    """Why it is unknown."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A device's figures, in TFLOP/s."""

    name: str
    """The words of its name that identify it."""
    source: str
    """Source of the figures."""
    float32: float | None
    """Without tensor cores."""
    tf32: float | None
    """float32 at reduced precision on tensor cores; ``None`` if not supported."""
    half: float | None
    """float16 on tensor cores; ``None`` if not supported."""
    bfloat16: float | None
    """bfloat16 on tensor cores; ``None`` if not supported."""
    runtime_device_count: int = 1
    """Number of runtime devices per chip."""


def _gpu(name: str, float32: float, tf32: float, half: float, source: str) -> _Row:
    """A GPU of the Ampere or a later generation; float16 and bfloat16 are equally fast."""
    return _Row(name, f"NVIDIA {source}", float32, tf32, half, half)


def _older_gpu(name: str, float32: float, half: float | None, source: str) -> _Row:
    return _Row(name, f"NVIDIA {source}", float32, None, half, None)


def _tpu(name: str, bfloat16: float, runtime_device_count: int = 1) -> _Row:
    """A TPU chip. By default, its runtime multiplies float32 as bfloat16."""
    source = f"Cloud TPU documentation, page {name.upper()}"
    return _Row(name, source, bfloat16, None, None, bfloat16, runtime_device_count)


_ROWS = (
    _older_gpu("p100 pcie", 9.3, None, "Tesla P100 datasheet"),
    _older_gpu("p100", 10.6, None, "Tesla P100 datasheet"),
    _older_gpu("v100 pcie", 14.0, 112.0, "V100 datasheet"),
    _older_gpu("v100s pcie", 16.4, 130.0, "V100 datasheet"),
    _older_gpu("v100", 15.7, 125.0, "V100 datasheet"),
    _older_gpu("t4", 8.1, 65.0, "T4 datasheet"),
    _older_gpu("rtx 2080 ti", 13.4, 53.8, "Turing architecture whitepaper"),
    _gpu("a2", 4.5, 9.0, 18.0, "A2 datasheet"),
    _gpu("a10", 31.2, 62.5, 125.0, "A10 datasheet"),
    _gpu("a10g", 31.5, 35.0, 70.0, "A10G datasheet"),
    _gpu("a30", 10.3, 82.0, 165.0, "A30 datasheet"),
    _gpu("a40", 37.4, 74.8, 149.7, "A40 datasheet"),
    _gpu("a100", 19.5, 156.0, 312.0, "A100 datasheet"),
    _gpu("a800", 19.5, 156.0, 312.0, "A800 datasheet"),
    _gpu("rtx a4000", 19.2, 38.3, 76.7, "RTX A4000 datasheet"),
    _gpu("rtx a5000", 27.8, 55.6, 111.1, "RTX A5000 datasheet"),
    _gpu("rtx a6000", 38.7, 77.4, 154.8, "GA102 architecture whitepaper"),
    _gpu("rtx 3070", 20.3, 20.3, 40.6, "GA102 architecture whitepaper"),
    _gpu("rtx 3080", 29.8, 29.8, 59.5, "GA102 architecture whitepaper"),
    _gpu("rtx 3090", 35.6, 35.6, 71.0, "GA102 architecture whitepaper"),
    _gpu("rtx 3090 ti", 40.0, 40.0, 80.0, "Ada architecture whitepaper"),
    _gpu("l4", 30.3, 60.0, 121.0, "L4 datasheet"),
    _gpu("l40", 90.5, 90.5, 181.0, "L40 datasheet"),
    _gpu("l40s", 91.6, 183.0, 362.0, "L40S datasheet"),
    _gpu("rtx 6000 ada", 91.1, 182.1, 364.2, "RTX 6000 Ada datasheet"),
    _gpu("rtx 4070 ti", 40.1, 40.1, 80.2, "Ada architecture whitepaper"),
    _gpu("rtx 4080", 48.7, 48.7, 97.5, "Ada architecture whitepaper"),
    _gpu("rtx 4090", 82.6, 82.6, 165.2, "Ada architecture whitepaper"),
    _gpu("h100", 66.9, 494.7, 989.4, "H100 architecture whitepaper"),
    _gpu("h100 pcie", 51.2, 378.0, 756.0, "H100 architecture whitepaper"),
    _gpu("h100 nvl", 60.0, 417.5, 835.5, "H100 NVL datasheet"),
    _gpu("h800", 66.9, 494.7, 989.4, "H800 datasheet"),
    _gpu("h20", 44.0, 74.0, 148.0, "H20 datasheet"),
    _gpu("h200", 66.9, 494.7, 989.4, "H200 datasheet"),
    _gpu("h200 nvl", 60.0, 417.5, 835.5, "H200 NVL datasheet"),
    _gpu("gh200", 66.9, 494.7, 989.4, "GH200 datasheet"),
    _gpu("b200", 75.0, 1125.0, 2250.0, "HGX B200 datasheet"),
    _gpu("b300", 75.0, 1125.0, 2250.0, "HGX B300 datasheet"),
    _gpu("gb200", 80.0, 1250.0, 2500.0, "GB200 NVL72 datasheet"),
    _gpu("rtx 5070", 30.9, 30.9, 61.7, "RTX Blackwell architecture whitepaper"),
    _gpu("rtx 5070 ti", 43.9, 43.9, 87.9, "RTX Blackwell architecture whitepaper"),
    _gpu("rtx 5080", 56.3, 56.3, 112.6, "RTX Blackwell architecture whitepaper"),
    _gpu("rtx 5090", 104.8, 104.8, 209.5, "RTX Blackwell architecture whitepaper"),
    _gpu("rtx pro 6000 blackwell workstation edition", 125.0, 251.9, 503.8, "RTX PRO Blackwell whitepaper"),
    _tpu("tpu v2", 46.0, runtime_device_count=2),
    _tpu("tpu v3", 123.0, runtime_device_count=2),
    _tpu("tpu v4", 275.0),
    _tpu("tpu v5e", 197.0),
    _tpu("tpu v5p", 459.0),
    _tpu("tpu v6e", 918.0),
    _tpu("tpu 7x", 2307.0, runtime_device_count=2),
)

_BY_WORDS = {frozenset(row.name.split()): row for row in _ROWS}

_DECORATION = re.compile(r"nvidia|tesla|geforce|quadro|generation|sxm\d*|pcie|hbm\d*e?|\d+gb?")
"""Words that do not identify a device, unless a row has them: vendor, family, socket, memory."""


def peak(name: str, arithmetic: str) -> Peak:
    """Look up a device's peak performance.

    Args:
        name: Vendor's name: ``NVIDIA A100-SXM4-40GB``, ``Tesla T4``, ``TPU v4``.
        arithmetic: Type of the factors: ``float32``, ``tf32``, ``float16`` or ``bfloat16``. For a device
            without TF32, ``tf32`` means float32.

    Returns:
        The peak of one runtime device; a TPU chip may have two.
    """
    words = re.findall(r"[a-z0-9.]+", name.lower())
    if "mig" in words:
        return Peak(None, reason=f"NVIDIA states no peak for the MIG instance {name}")
    row = _look_up(words)
    if row is None:
        return Peak(None, reason=f"the peak of {name or 'this device'} is unknown")
    figures: Mapping[str, float | None] = {
        FLOAT32: row.float32,
        TF32: row.tf32 or row.float32,
        FLOAT16: row.half,
        BFLOAT16: row.bfloat16,
    }
    figure = figures.get(arithmetic)
    if figure is None:
        return Peak(None, reason=f"the {arithmetic} peak of {name} is unknown")
    return Peak(figure * TERA / row.runtime_device_count, row.source)


def utilization(achieved: float, limit: float | None) -> float | None:
    """The share of a peak that is achieved, 0 to 1; ``None`` without a peak, or if more than it is achieved.

    Args:
        achieved: FLOP/s.
        limit: The peak in FLOP/s.
    """
    return achieved / limit if limit and achieved <= limit else None


def _look_up(words: list[str]) -> _Row | None:
    """The row that matches the most words, if no other word identifies a device: a ``Laptop GPU`` is another one."""
    for name in sorted(_BY_WORDS, key=len, reverse=True):
        if name <= set(words) and all(map(_DECORATION.fullmatch, set(words) - name)):
            return _BY_WORDS[name]
    return None
