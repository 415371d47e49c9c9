"""The columns and rows of several plots side by side."""

GAP = 2
"""Cells between two plots."""

_WIDE = 2.6  # cells of width per line of height of a well-shaped plot


def grid_for(plots: int, width: int, height: int, min_size: tuple[int, int]) -> tuple[int, int]:
    """Columns and rows of a grid with as many plots of a least width and height as fit, in the best shape."""
    min_width, min_height = min_size
    most_across, most_down = max(1, (width + GAP) // (min_width + GAP)), max(1, height // min_height)
    best, quality = (1, 1), (0, 0.0)
    for across in range(1, min(most_across, plots) + 1):
        down = min(-(-plots // across), most_down)
        shape = min((width - GAP * (across - 1)) / across / _WIDE, height / down)
        if (found := (min(across * down, plots), shape)) > quality:
            best, quality = (across, down), found
    return best
