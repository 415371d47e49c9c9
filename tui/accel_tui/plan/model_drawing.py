"""Draws a model as a column of blocks, in a few lines."""

from collections import Counter

from textual.content import Content

from accel_engine.requests.describe_model import Description, ModelBlock
from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_tui.formatting.text import fit

_SHORT = (
    ("Normalization", "Norm"),
    ("Pooling", "Pool"),
    ("Average", "Avg"),
    ("Activation", "Act"),
    ("MultiHeadAttention", "Attention"),
)
"""What is shorter in a drawing than in the name of a class."""

_SHAPE, _COUNT, _PARAMETERS = 10, 4, 6


def draw_model(description: Description, width: int, room: int, title: str = "") -> list[Content]:
    """The blocks in a frame, the output shape and the number of weights of each; empty without blocks, or without room.

    Args:
        description: The model.
        width: Cells.
        room: The most lines; with fewer than 4, nothing is drawn.
        title: What the model takes, above the frame.
    """
    blocks = description.blocks
    if not blocks or room < 4:
        return []
    inner = max(width - _SHAPE - 2, 16)
    title = title if len(blocks) + 3 <= room else ""
    most = room - 2 - bool(title)
    left_out = len(blocks) - (most - 1) if len(blocks) > most else 0
    before = most // 2 if left_out else len(blocks)
    rules = description.is_chain and len(blocks) * 2 - 1 <= most
    lines = [Content.styled(f"  {title}", "$text-muted")] if title else []
    lines.append(_rule("╭", "╮", inner))
    for number, block in enumerate(blocks):
        if number and rules:
            lines.append(_rule("├", "┤", inner))
        if number == before:
            text = f"⋮ {numbers.counted(left_out, 'more block')}"
            lines.append(Content.assemble(("│ ", "$border"), (fit(text, inner - 4), "$text-muted"), (" │", "$border")))
        if not before <= number < before + left_out:
            lines.append(_line(block, inner, is_chain=description.is_chain))
    lines.append(_rule("╰", "╯", inner))
    return [line.truncate(width, ellipsis=True) for line in lines]


def _rule(left: str, right: str, width: int) -> Content:
    return Content.styled(f"{left}{'─' * (width - 2)}{right}", "$border")


def _line(block: ModelBlock, width: int, *, is_chain: bool) -> Content:
    times = f" ×{block.count}" if block.count > 1 else ""  # noqa: RUF001
    room = width - 4 - len(times) - (_PARAMETERS + 1 if width >= 30 else 0)
    weights = f" {_compact(block.parameters):>{_PARAMETERS}}" if width >= 30 else ""
    shape = numbers.shape(block.shape) if block.shape else ""
    style = "" if block.parameters else "$text-muted"
    return Content.assemble(
        ("│ ", "$border"),
        (fit(_block_text(block, is_chain=is_chain), room), style),
        (times, "$accent bold"),
        (weights, "$text-muted"),
        (" │", "$border"),
        (f" {shape}", "$text-muted"),
    )


def _block_text(block: ModelBlock, *, is_chain: bool = True) -> str:
    """The layers of a block: in their order, or how many of each class there are where it has branches."""
    names = [_short(name) for name in block.layers]
    if block.has_branches or not is_chain:
        counts = Counter(names)
        return ", ".join(f"{count} {name}" if count > 1 else name for name, count in counts.items())
    return " · ".join(names)


def _short(name: str) -> str:
    name = printable_line(name)
    for long, short in _SHORT:
        name = name.replace(long, short)
    return name


def _compact(count: int) -> str:
    return numbers.compact(count) if count else ""
