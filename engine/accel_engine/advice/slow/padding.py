"""Dimensions that a TPU pads."""

from collections.abc import Iterator

from accel_engine.advice.finding import Confidence, Cure, Evidence, Finding, Gain, Trouble
from accel_engine.advice.recorded import Recorded
from accel_engine.words.numbers import percent, times

LANES, SUBLANES = 128, 8
"""A TPU pads the last dimension of an array to a multiple of 128, and the one before it to a multiple of 8. Source:
the Cloud TPU performance guide."""

WASTE = 0.25
"""Share of the FLOPs of padded products from which padding matters."""


def tpu_padding(recorded: Recorded) -> Iterator[Finding]:
    """Layers and batches have dimensions that a TPU pads by much."""
    built, table = recorded.built, recorded.diagnostics.layers
    if "tpu" not in recorded.device_kinds or built is None:
        return
    batch = built.per_replica_batch or 0
    share = _padded_share(batch, SUBLANES) if batch else 0.0
    useful = padded = 0.0
    worst: list[tuple[float, str, int]] = []
    for layer in table.layers if table else ():
        width = (layer.shape or (None,))[-1]
        if not layer.flops or not width:
            continue
        factor = _rounded(width, LANES) / width
        useful, padded = useful + layer.flops, padded + layer.flops * factor
        worst.append((layer.flops * (factor - 1), layer.name, width))
    waste = 1 - (1 - share) * (useful / padded if padded else 1.0)
    if waste < WASTE:
        return
    evidence = [
        Evidence(f"{name} has {width:,} features: padded to {_rounded(width, LANES):,}")
        for _, name, width in sorted(worst, reverse=True)[:3]
        if width % LANES
    ]
    if share:
        evidence.insert(0, Evidence(f"{batch:,} examples on each core: padded to {_rounded(batch, SUBLANES):,}"))
    better = _rounded(batch, SUBLANES) * built.replicas
    changes = {"batch_size": better} if share and recorded.plan is not None else {}
    yield Finding(
        id="tpu-padding",
        trouble=Trouble.SLOW,
        title=f"About {percent(waste)} of the TPU's work is padding",
        evidence=tuple(evidence),
        confidence=Confidence.LIKELY,
        cost=f"{percent(waste)} of the FLOPs",
        cures=(
            Cure(
                "make features multiples of 128 and the batch of each core a multiple of 8, best of 128"
                + (f": --batch-size {better}" if changes else ""),
                changes,
                gain=Gain(f"up to {times(1 / (1 - waste))} the steps per second", "the padded FLOPs", 1 / (1 - waste)),
            ),
        ),
        weight=waste * 0.7,
    )


def _rounded(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def _padded_share(value: int, multiple: int) -> float:
    return 1 - value / _rounded(value, multiple)
