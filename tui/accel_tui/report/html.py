"""HTML of texts, tables and pictures; all text is escaped here."""

import base64
from collections.abc import Iterable, Sequence
from html import escape

from accel_engine.text import printable


class Html(str):
    """Markup; every other text is escaped before it becomes a part of one."""

    __slots__ = ()


def text(value: object) -> Html:
    """A text, escaped and without control characters; markup as it is."""
    return value if isinstance(value, Html) else Html(escape(printable(str(value))))


def element(name: str, *content: object, **attributes: object) -> Html:
    """An element; ``class_`` is its class. Attributes that are empty are left out."""
    given = "".join(f' {key.rstrip("_")}="{escape(str(value))}"' for key, value in attributes.items() if value != "")
    return Html(f"<{name}{given}>{joined(content)}</{name}>")


def joined(content: Iterable[object]) -> Html:
    """Texts and elements, one after another."""
    return Html("".join(map(text, content)))


def section(title: str, *content: object) -> Html:
    """A part of the page; empty without content."""
    return element("section", element("h2", title), *content) if any(content) else Html("")


def pairs(rows: Iterable[tuple[object, object]]) -> Html:
    """Labels and values below each other; a row without a label continues the one above. Empty without rows."""
    cells = [element("tr", element("th", label), element("td", value)) for label, value in rows]
    return element("table", *cells, class_="pairs") if cells else Html("")


def table_element(titles: Sequence[object], rows: Iterable[Sequence[object]]) -> Html:
    """A table with a row of titles; empty without rows. All columns but the first have numbers, at the right."""

    def line(cell: str, row: Sequence[object]) -> Html:
        first, *others = row
        return element("tr", element(cell, first), *(element(cell, each, class_="number") for each in others))

    body = [line("td", row) for row in rows]
    if not body:
        return Html("")
    return element("div", element("table", line("th", titles), *body), class_="scrolls")


def image_element(png: bytes, title: str, *, width: int) -> Html:
    """A picture within the page, ``width`` pixels wide."""
    data = base64.b64encode(png).decode()
    return Html(f'<img src="data:image/png;base64,{data}" width="{width}" alt="{escape(printable(title))}">')


def page(title: str, style: str, *content: object) -> str:
    """A page that needs nothing else: no script, no font, no network."""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{text(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; '
        "style-src 'unsafe-inline'\">"
        f"<style>{style}</style></head>\n<body><main>{joined(content)}</main></body></html>\n"
    )
