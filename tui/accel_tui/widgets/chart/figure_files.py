"""Writes figures as SVG, alone or for a page, and as PNG."""

import io
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import get_args

from textual.theme import Theme

from accel_engine.errors import UsageError, file_errors
from accel_engine.files import replacing
from accel_tui.appearance.theme import DARK, LIGHT, measure_colours
from accel_tui.widgets.chart.chart_view import MeasureColour, ThemeColour
from accel_tui.widgets.chart.figure import TEXT, Area, ChartFigure, FigureLine, Ink, Label, Level, Shape

SUFFIXES = (".svg", ".png")
"""The formats of files."""

FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"

_PIXELS, _FINER = 2, 2
"""Pixels per point of a PNG, and how much finer it is drawn, as Pillow's lines have steps."""

_SCALE = _PIXELS * _FINER


def inks(theme: Theme) -> Mapping[Ink, str]:
    """The colours of a theme, as ``#rrggbb``."""
    if theme.ansi:  # the terminal's own colours, which a file does not know
        return inks(DARK)
    variables = {**measure_colours(theme), **{name: each for name, each in theme.variables.items() if each[:1] == "#"}}
    of_theme = {name: getattr(theme, name) or theme.primary for name in get_args(ThemeColour)}
    of_measures = {name: variables[name] for name in (*get_args(MeasureColour), *get_args(Level))}
    return {
        **of_theme,
        **of_measures,
        "text": theme.foreground or "#000000",
        "background": theme.background or "#ffffff",
        "text-muted": variables.get("text-muted", "#808080"),
        "grid": variables.get("border", "#808080"),
        "accent": theme.accent or theme.primary,
    }


def figure_style() -> str:
    """Style rules of figures: light, and dark where the reader prefers that."""
    light, dark = (" ".join(_rules(inks(theme))) for theme in (LIGHT, DARK))
    return f"{light} @media (prefers-color-scheme: dark) {{ {dark} }}"


def _rules(colours: Mapping[Ink, str]) -> Iterator[str]:
    for name, colour in colours.items():
        yield f".l-{name}{{stroke:{colour}}} .f-{name}{{fill:{colour}}}"


def svg_of(figure: ChartFigure, *, is_alone: bool = False) -> str:
    """A figure as SVG.

    Args:
        figure: The figure.
        is_alone: Whether it is a file; else the page that contains it has the rules of :func:`figure_style`.
    """
    size = f'viewBox="0 0 {figure.width:g} {figure.height:g}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(figure.title)}"']
    if is_alone:
        parts.append(f' width="{figure.width:g}" height="{figure.height:g}"><style>{figure_style()}</style>')
        parts.append('<rect width="100%" height="100%" class="f-background"/>')
    else:
        parts.append(">")
    parts.append(f'<g font-family="{FONT}" font-size="{TEXT:g}" fill="none" stroke-linejoin="round">')
    parts += map(_svg_shape, figure.shapes)
    return "".join([*parts, "</g></svg>"])


def _svg_shape(shape: Shape) -> str:
    match shape:
        case FigureLine(points, ink, width, is_dashed):
            dashes = ' stroke-dasharray="4 4"' if is_dashed else ""
            return f'<polyline class="l-{ink}" stroke-width="{width:g}"{dashes} points="{_pairs(points)}"/>'
        case Area(points, ink, opacity):
            fill = f' fill-opacity="{opacity:g}"' if opacity < 1 else ""
            return f'<polygon class="f-{ink}"{fill} points="{_pairs(points)}"/>'
        case Label((x, y), text, ink, anchor, is_bold):
            weight = ' font-weight="bold"' if is_bold else ""
            return f'<text class="f-{ink}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{weight}>{escape(text)}</text>'


def _pairs(points: object) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)  # type: ignore[attr-defined]


def png_of(figure: ChartFigure, theme: Theme) -> bytes:
    """A figure as PNG, in the colours of a theme."""
    from PIL import Image, ImageDraw, ImageFont  # seldom needed

    colours = inks(theme)
    size = round(figure.width * _SCALE), round(figure.height * _SCALE)
    picture = Image.new("RGB", size, colours["background"])
    for shape in figure.shapes:
        match shape:
            case FigureLine(points, ink, width, is_dashed):
                draw = ImageDraw.Draw(picture)
                scaled = [(x * _SCALE, y * _SCALE) for x, y in points]
                for part in _dashes(scaled) if is_dashed else [scaled]:
                    draw.line(part, fill=colours[ink], width=max(1, round(width * _SCALE)), joint="curve")
            case Area(points, ink, opacity):
                corners = [(x * _SCALE, y * _SCALE) for x, y in points]
                if opacity == 1:
                    ImageDraw.Draw(picture).polygon(corners, fill=colours[ink])
                    continue
                mask = Image.new("L", size, 0)
                ImageDraw.Draw(mask).polygon(corners, fill=round(255 * opacity))
                picture.paste(colours[ink], (0, 0), mask)
            case Label((x, y), text, ink, anchor, _):
                font = ImageFont.load_default(TEXT * _SCALE)
                at = {"start": "ls", "middle": "ms", "end": "rs"}[anchor]
                ImageDraw.Draw(picture).text((x * _SCALE, y * _SCALE), text, fill=colours[ink], font=font, anchor=at)
    smaller = round(figure.width * _PIXELS), round(figure.height * _PIXELS)
    with io.BytesIO() as file:
        picture.resize(smaller, Image.Resampling.LANCZOS).save(file, "PNG", optimize=True)
        return file.getvalue()


def _dashes(points: list[tuple[float, float]]) -> Iterator[list[tuple[float, float]]]:
    """The dashes of a line, which is straight."""
    (x0, y0), (x1, y1) = points[0], points[-1]
    count = max(1, round(((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5 / (8 * _SCALE)))
    for each in range(count):
        begin, end = each / count, (each + 0.5) / count
        yield [(x0 + (x1 - x0) * at, y0 + (y1 - y0) * at) for at in (begin, end)]


def write_new(figure: ChartFigure, folder: Path, name: str, theme: Theme) -> list[Path]:
    """Write a figure in all formats, under a name that no file has yet; returns the files.

    Raises:
        RunError: A file cannot be written.
    """
    number = 1
    while any((folder / f"{_numbered(name, number)}{suffix}").exists() for suffix in SUFFIXES):
        number += 1
    paths = [folder / f"{_numbered(name, number)}{suffix}" for suffix in SUFFIXES]
    for path in paths:
        write_figure(figure, path, theme)
    return paths


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name}-{number}"


def write_figure(figure: ChartFigure, path: Path, theme: Theme) -> None:
    """Write a figure in the format of the file's suffix.

    Raises:
        UsageError: The path has another suffix.
        RunError: The file cannot be written.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(f"{path.name} is neither {' nor '.join(SUFFIXES)}")
    content = svg_of(figure, is_alone=True).encode() if suffix == ".svg" else png_of(figure, theme)
    with file_errors(f"cannot write {path}"), replacing(path) as temporary:
        temporary.write_bytes(content)
