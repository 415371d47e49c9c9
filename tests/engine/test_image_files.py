"""Images as people have them, written by Pillow: what is read of each, or why it is not."""

import io
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image, ImageOps

from accel_engine.errors import DataError, UnreadableError
from accel_engine.image_files import (
    check_image,
    encode_png,
    parse_header,
    read_header,
    read_labels,
    read_logged,
    read_pixels,
)

RANDOM = np.random.default_rng(0)
GREY = RANDOM.integers(0, 256, (6, 4)).astype(np.uint8)
COLOURS = np.kron(RANDOM.integers(0, 256, (3, 2, 3)).astype(np.uint8), np.ones((2, 2, 1), np.uint8))
DEEP = RANDOM.integers(0, 65_536, (6, 4)).astype(np.uint16)
OPACITY = np.where(np.arange(24).reshape(6, 4) % 2, 255, 0).astype(np.uint8)
ON_WHITE = np.where(OPACITY[:, :, None], COLOURS, 255)
"""The picture of colours where it is not transparent."""


def file(image: Image.Image, form: str, **options: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, form, **options)
    return stream.getvalue()


def turned(form: str, orientation: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return file(Image.fromarray(COLOURS), form, exif=exif, **({"lossless": True} if form == "WEBP" else {}))


def palette_image() -> Image.Image:
    """Places 0 to 3 of a palette whose colours are in no order, the last equal to the first."""
    image = Image.fromarray((GREY % 4).astype(np.uint8))
    image = Image.frombytes("P", image.size, image.tobytes())
    image.putpalette([255, 0, 0, 0, 0, 255, 9, 9, 9, 255, 0, 0])
    return image


PALETTE = np.array([[255, 0, 0], [0, 0, 255], [9, 9, 9], [255, 0, 0]], np.uint8)[GREY % 4]
CMYK = Image.fromarray(COLOURS).convert("CMYK")
FILM = {"save_all": True, "append_images": [Image.new("RGB", (4, 6), "blue")], "duration": 100}

ODD: dict[str, tuple[bytes, npt.NDArray[Any]]] = {
    "grey": (file(Image.fromarray(GREY), "PNG"), GREY),
    "colours": (file(Image.fromarray(COLOURS), "PNG"), COLOURS),
    "black and white": (file(Image.fromarray(GREY > 99), "PNG"), 255 * (GREY > 99).astype(np.uint8)),
    "16 bits": (file(Image.fromarray(DEEP), "PNG"), DEEP),
    "16 bits in TIFF": (file(Image.fromarray(DEEP), "TIFF"), DEEP),
    "16 bits in a compressed TIFF": (file(Image.fromarray(DEEP), "TIFF", compression="tiff_lzw"), DEEP),
    "16 bits in PGM": (b"P5 4 6 65535\n" + DEEP.astype(">u2").tobytes(), DEEP),
    "palette": (file(palette_image(), "PNG"), PALETTE),
    "palette in GIF": (file(palette_image(), "GIF"), PALETTE),
    "palette in BMP": (file(palette_image(), "BMP"), PALETTE),
    "transparent": (file(Image.fromarray(np.dstack([COLOURS, OPACITY])), "PNG"), ON_WHITE),
    "transparent WebP": (file(Image.fromarray(np.dstack([COLOURS, OPACITY])), "WEBP", lossless=True), ON_WHITE),
    "transparent grey": (
        file(Image.fromarray(np.dstack([GREY, OPACITY])), "PNG"),
        np.where(OPACITY, GREY, 255).astype(np.uint8),
    ),
    "transparent place": (
        file(palette_image(), "PNG", transparency=1),
        np.where((GREY % 4 == 1)[:, :, None], 255, PALETTE).astype(np.uint8),
    ),
    "transparent shade": (
        file(Image.fromarray(GREY), "PNG", transparency=int(GREY[0, 0])),
        np.where(GREY[0, 0] == GREY, 255, GREY).astype(np.uint8),
    ),
    "CMYK TIFF": (file(CMYK, "TIFF"), np.asarray(CMYK.convert("RGB"))),
    "WebP": (file(Image.fromarray(COLOURS), "WEBP", lossless=True), COLOURS),
    "PPM": (file(Image.fromarray(COLOURS), "PPM"), COLOURS),
    "film in GIF": (file(palette_image().convert("RGB"), "GIF", **FILM), PALETTE),
    "film in WebP": (file(Image.fromarray(COLOURS), "WEBP", lossless=True, **FILM), COLOURS),
    "film in PNG": (file(Image.fromarray(COLOURS), "PNG", **FILM), COLOURS),
    "pages in TIFF": (file(Image.fromarray(COLOURS), "TIFF", **FILM), COLOURS),
}


@pytest.mark.parametrize("name", ODD)
def test_images_are_read_as_they_are_shown(name: str, tmp_path: Path) -> None:
    content, expected = ODD[name]
    (tmp_path / "image").write_bytes(content)
    pixels, header = read_pixels(tmp_path / "image")
    np.testing.assert_array_equal(pixels, expected.reshape(6, 4, -1))
    assert pixels.dtype == expected.dtype
    assert header == read_header(tmp_path / "image") == check_image(tmp_path / "image") == parse_header(content)
    assert pixels.shape == header[:3]
    assert header.bits == 8 * expected.dtype.itemsize
    assert header.has_opacity is ("transparent" in name)
    assert header.has_frames is ("film" in name or "pages" in name)
    assert (header.orientation, header.is_cut) == (1, False)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "TIFF"])
def test_images_are_turned_as_other_programs_show_them(form: str, orientation: int, tmp_path: Path) -> None:
    content = turned(form, orientation)
    pixels, header = read_pixels(content)
    shown = ImageOps.exif_transpose(Image.open(io.BytesIO(content)))
    np.testing.assert_array_equal(pixels, np.asarray(shown))
    assert header.orientation == orientation
    assert header[:3] == pixels.shape == ((4, 6, 3) if orientation >= 5 else (6, 4, 3))
    small, _ = read_pixels(content, (2, 2, 1))
    assert small.shape == (2, 2, 1)


def test_channels_and_bits_are_converted() -> None:
    grey, _ = read_pixels(ODD["grey"][0], (6, 4, 3))
    np.testing.assert_array_equal(grey, np.repeat(GREY[:, :, None], 3, axis=2))
    deep, _ = read_pixels(ODD["grey"][0], (6, 4, 1), np.uint16)
    np.testing.assert_array_equal(deep[:, :, 0], GREY.astype(np.uint16) * 257)
    back, _ = read_pixels(encode_deep(deep[:, :, 0]), (6, 4, 1), np.uint8)
    np.testing.assert_array_equal(back[:, :, 0], GREY)
    luminance, header = read_pixels(ODD["colours"][0], (6, 4, 1))
    np.testing.assert_allclose(luminance[:, :, 0], COLOURS @ [0.299, 0.587, 0.114], atol=0.51)
    assert header.channels == 3


def encode_deep(shades: npt.NDArray[np.uint16]) -> bytes:
    return file(Image.fromarray(shades), "PNG")


def test_colours_of_16_bits_are_read_with_8_and_say_so() -> None:
    content = b"P6 4 6 65535\n" + (COLOURS.astype(">u2") * 257).tobytes()
    pixels, header = read_pixels(content)
    np.testing.assert_array_equal(pixels, COLOURS)
    assert header.is_cut


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_resizing_averages_what_it_reduces(dtype: Any) -> None:
    """As ``tf.image.resize`` with antialiasing does: a reduction by whole numbers of a ramp is the ramp's means."""
    largest = np.iinfo(dtype).max
    ramp = np.broadcast_to(np.linspace(0, largest, 40), (30, 40)).round().astype(dtype)
    small, _ = read_pixels(file(Image.fromarray(ramp), "PNG"), (10, 10, 1), dtype)
    expected = np.linspace(0, largest, 40).reshape(10, 4).mean(1)
    np.testing.assert_allclose(small[4, 1:-1, 0], expected[1:-1], atol=1)
    assert small.dtype == dtype


def test_photos_are_decoded_at_a_lower_size_where_the_result_is_the_same() -> None:
    smooth = np.asarray(Image.fromarray(COLOURS).resize((512, 640), Image.Resampling.BICUBIC))
    content = file(Image.fromarray(smooth), "JPEG", quality=95)
    small, _ = read_pixels(content, (80, 64, 3))
    decoded = Image.open(io.BytesIO(content)).resize((64, 80), Image.Resampling.BILINEAR)
    assert np.abs(small.astype(int) - np.asarray(decoded)).mean() < 1


def test_masks_are_places_shades_or_colours(tmp_path: Path) -> None:
    path = tmp_path / "mask"
    for content, expected in (
        (file(palette_image(), "PNG"), (GREY % 4).astype(np.int32) * 0x010101),
        (file(palette_image(), "GIF"), (GREY % 4).astype(np.int32) * 0x010101),
        (ODD["grey"][0], GREY.astype(np.int32) * 0x010101),
        (ODD["black and white"][0], np.where(GREY > 99, 0xFFFFFF, 0)),
        (ODD["transparent grey"][0], GREY.astype(np.int32) * 0x010101),
        (ODD["colours"][0], COLOURS.astype(np.int32) @ [1 << 16, 1 << 8, 1]),
    ):
        path.write_bytes(content)
        np.testing.assert_array_equal(read_labels(path, (6, 4))[0], expected)
        np.testing.assert_array_equal(read_labels(path, (12, 8))[0][::2, ::2], expected)
        np.testing.assert_array_equal(read_labels(path, (4, 6), 6)[0], np.rot90(expected, -1))
    path.write_bytes(ODD["16 bits"][0])
    with pytest.raises(DataError, match="it has 16 bits per pixel; save it with 8"):
        read_labels(path, (6, 4))


def test_what_is_no_picture_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "image.png"
    for content, reason in (
        (b"", "not a valid PNG"),
        (b"some text", "not a valid PNG"),
        (b"RIFF....WEBP", "not a valid PNG"),
        (ODD["colours"][0][:45], "cannot decode the image .*image.png: "),
    ):
        path.write_bytes(content)
        with pytest.raises(UnreadableError, match=reason):
            check_image(path)
    path.write_bytes(file(Image.fromarray(GREY.astype(np.float32)), "TIFF"))
    with pytest.raises(DataError, match="its pixels are numbers of 32 bits; save them as shades of 8 or 16 bits"):
        check_image(path)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_what_is_encoded_is_decoded(channels: int) -> None:
    pixels = RANDOM.integers(0, 256, (20, 31, channels), np.uint8)
    np.testing.assert_array_equal(read_logged(encode_png(pixels), 20 * 31 * 4), pixels)


def test_logged_images_are_bounded_and_their_checksums_are_checked() -> None:
    content = encode_png(np.zeros((600, 600, 3), np.uint8))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"^image with too many pixels$"):
            read_logged(content, 600 * 600)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    for damaged in (b"", content[:60], content[:50] + b"\1" + content[51:]):
        with pytest.raises(ValueError, match=r"^damaged image$"):
            read_logged(damaged, 1 << 24)
