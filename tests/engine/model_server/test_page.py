"""The page of a server, in a real browser: a picture that is dropped, a row that is typed."""

import asyncio
import base64
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from accel_engine.data.data_options import ColumnFormat
from accel_engine.image_files import encode_png
from accel_engine.model_server.service import (
    Meaning,
    ServedModelFile,
    Service,
    Tensor,
    UploadForm,
    write_examples,
    write_service,
)
from end_to_end.browser import CHROMIUM, Browser

from .conftest import Server, Start, probabilities

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")

PIXELS = np.array([[[1], [2]], [[3], [0]]], np.uint8)


async def text_of(page: Browser, selector: str) -> str:
    return str(await page.evaluate(f"document.querySelector('{selector}').innerText"))


async def until_text(page: Browser, selector: str, wanted: str) -> str:
    async with asyncio.timeout(120):
        while wanted not in (found := await text_of(page, selector)):
            await asyncio.sleep(0.02)
    return found


async def keep_picture(page: Browser, name: str) -> None:
    """Save what the page shows, where somebody wants to look at it: in the folder ``PAGE_PICTURES``."""
    if folder := os.environ.get("PAGE_PICTURES"):
        Path(folder, name).write_bytes(base64.b64decode((await page.do("Page.captureScreenshot"))["data"]))


async def look_at_pictures(server: Server, place: Path) -> None:
    file = place / "new.png"
    file.write_bytes(encode_png(PIXELS))
    async with Browser(place / "profile") as page:
        await page.do("Page.navigate", url=server.url)
        await until_text(page, "#about", "abcd-small")
        assert await text_of(page, "h1") == "small"
        content = base64.b64encode(file.read_bytes()).decode()
        dropped = f"""
            const bytes = Uint8Array.from(atob("{content}"), each => each.charCodeAt(0));
            const data = new DataTransfer();
            data.items.add(new File([bytes], "new.png", {{type: "image/png"}}));
            document.getElementById("drop").dispatchEvent(new DragEvent("drop", {{dataTransfer: data, bubbles: true}}));
        """
        await page.do("Runtime.evaluate", expression=dropped)
        found = await until_text(page, "#answer", "%")
        chances = probabilities(PIXELS[np.newaxis])[0]
        best = "abc"[chances.argmax()]
        assert f"new.png: {best}" in found
        assert f"{100 * chances.max():.1f}%" in found
        assert await page.evaluate("document.getElementById('preview').naturalWidth") == 2
        shown = "[...document.querySelectorAll('form > *')].filter(each => each.checkVisibility()).map(each => each.id)"
        assert await page.evaluate(f"{shown}.join()") == "drop"
        await keep_picture(page, "picture.png")
        dropped = dropped.replace(content, base64.b64encode(b"no picture").decode())
        await page.do("Runtime.evaluate", expression=f"{{{dropped}}}")
        await until_text(page, "#problem", "send an image")
        assert not await page.evaluate("document.getElementById('problem').hidden")
        urls = [url for url in page.asked if not url.startswith(("blob:", "data:"))]
        assert all(url.startswith(server.url) for url in urls)


def write_table(folder: Path) -> Path:
    """A model that adds two columns, either of which may be missing."""
    folder.mkdir()
    number = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [
            *(helper.make_node("IsNaN", [name], [f"{name}_missing"]) for name in ("age", "size__m")),
            *(
                helper.make_node("Where", [f"{name}_missing", "zero", name], [f"{name}_known"])
                for name in ("age", "size__m")
            ),
            helper.make_node("Add", ["age_known", "size__m_known"], ["values"]),
        ],
        "g",
        [helper.make_tensor_value_info(name, number, ["n", 1]) for name in ("age", "size__m")],
        [helper.make_tensor_value_info("values", number, ["n", 1])],
        [numpy_helper.from_array(np.float32([0]), "zero")],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), folder / "model.onnx"
    )
    column = np.arange(4, dtype=np.float32).reshape(4, 1)
    write_examples(folder, {"age": column, "size__m": column}, {"values": 2 * column})
    service = Service(
        name="people",
        run="abcd-people",
        task="regression",
        kind="table",
        model=ServedModelFile("onnx", "none", "model.onnx", 1e-5),
        inputs=(Tensor("age", (1,), "float32"), Tensor("size__m", (1,), "float32")),
        outputs=(Tensor("values", (1,), "float32"),),
        files=UploadForm("table", columns=(ColumnFormat("age", "number"), ColumnFormat("size (m)", "number"))),
        meanings=(Meaning("values", "", "regression", (), ("sum",)),),
    )
    write_service(folder, service)
    return folder


async def type_a_row(server: Server, place: Path) -> None:
    async with Browser(place / "profile") as page:
        await page.do("Page.navigate", url=server.url)
        await until_text(page, "#about", "abcd-people")
        names: Any = await page.evaluate("[...document.querySelectorAll('#row input')].map(each => each.name).join()")
        assert names == "age,size (m)"
        assert await page.evaluate("document.getElementById('text').checkVisibility()") is False
        await page.evaluate("document.querySelector('#row input').value = '41'")
        await page.evaluate("document.getElementById('send').click()")
        assert "41" in (await until_text(page, "#answer", "sum"))  # the other one is missing
        await keep_picture(page, "row.png")


def test_a_picture_that_is_dropped(images: Server, tmp_path: Path) -> None:
    asyncio.run(look_at_pictures(images, tmp_path))


@pytest.mark.campaign
def test_a_row_that_is_typed(start: Start, tmp_path: Path) -> None:
    asyncio.run(type_a_row(start(write_table(tmp_path / "table")), tmp_path))
