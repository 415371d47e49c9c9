"""Reads and writes images with Pillow, as viewers show them."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import SEEK_END, BytesIO
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import ExifTags, Image
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.ImageFile import ImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.PpmImagePlugin import PpmImageFile
from PIL.TiffImagePlugin import TiffImageFile
from PIL.WebPImagePlugin import WebPImageFile

from accel_engine.errors import DataError, UnreadableError
from accel_engine.files import regular

MAX_PIXELS = (1 << 29) // 3
"""Pixels of an image at most. A file of some kilobytes may claim any size."""

ImageVerb = Literal["turned", "cut", "converted", "resized"]
"""The change of an image."""

FORMATS = "PNG, JPEG, GIF, BMP, WebP, TIFF or PNM"

_OPENERS: tuple[tuple[bytes, Callable[[IO[bytes]], ImageFile]], ...] = (
    (b"\x89PNG\r\n\x1a\n", PngImageFile),
    (b"\xff\xd8\xff", JpegImageFile),
    (b"GIF8", GifImageFile),
    (b"BM", BmpImageFile),
    (b"RIFF", WebPImageFile),
    *((start, TiffImageFile) for start in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")),
    *((b"P%d" % number, PpmImageFile) for number in range(1, 7)),
)
"""What opens a file, by its first bytes: a name often has the suffix of another format."""

_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""The turns that show an image upright, by its EXIF orientation."""

_ORIENTATION_SOURCES = {"exif", "Raw profile type exif", "xmp", "XML:com.adobe.xmp"}

_ENDS = {"PNG": b"IEND\xaeB`\x82", "JPEG": b"\xff\xd9", "GIF": b";"}
_TAIL, _FILLING = 64, b"\0\r\n"
"""How files end, the bytes at the end that are looked at, and those that other programs append."""

_SEARCHED = 1 << 25
"""Bytes of a JPEG file in which its end is searched: phones append depth maps and films to it."""

_LENGTHS = {"BMP": (2, 0), "WEBP": (4, 8)}
"""Where a file says how long it is, and how many bytes this does not count."""

_PLACES = np.array([1 << 16, 1 << 8, 1], np.int32)
_GREY = 0x010101
"""What the red, green and blue of a colour are multiplied by, and what an equal value of all is."""

Source: TypeAlias = Path | bytes
"""The file of an image, or what is in it."""

# Pillow warns of large images, whose size is checked here, and of metadata that nothing here needs.
warnings.filterwarnings("ignore", module=r"PIL\.")


class ImageHeader(NamedTuple):
    """The header of an image file, known before its pixels are decoded."""

    height: int
    """Rows of pixels, after the EXIF orientation is applied."""
    width: int
    """Columns of pixels, after the EXIF orientation is applied."""
    channels: int
    """1 for grey, 3 for colours."""
    bits: int = 8
    """Bits of a decoded channel: 8, or 16 for grey images."""
    mode: str = ""
    """Pillow's mode, such as ``CMYK``."""
    orientation: int = 1
    """Its EXIF orientation, 1 to 8; 1 is upright."""
    has_opacity: bool = False
    """Whether it may be transparent."""
    is_cut: bool = False
    """Whether its channels are stored with 16 bits, but decoded with 8."""
    has_frames: bool = False
    """Whether other frames follow the first."""


def read_header(path: Path) -> ImageHeader:
    """Read an image's header.

    Raises:
        UnreadableError: The file cannot be read, is cut, or has another format.
        DataError: The image is too large, or has numbers that are not shades.
    """
    with _opened(path) as (image, _):
        return _header(image)


def parse_header(content: bytes) -> ImageHeader | None:
    """The header of an image in memory; ``None`` if the bytes are not an image."""
    try:
        with _opened(content) as (image, _):
            return _header(image)
    except DataError:
        return None


def check_image(path: Path) -> ImageHeader:
    """Read an image's header, and look whether its end is there; decode it if not.

    Raises:
        UnreadableError: The file cannot be read, or is damaged.
        DataError: The image is too large, or has numbers that are not shades.
    """
    with _opened(path) as (image, file):
        header = _header(image)
        if not _has_end(image, file):
            image.load()
        return header


def read_pixels(
    source: Source, shape: tuple[int, int, int] | None = None, dtype: npt.DTypeLike | None = None
) -> tuple[npt.NDArray[Any], ImageHeader]:
    """Decode an image as viewers show it: turned, in its colours, on white where it is transparent, its first frame.

    Args:
        source: The image.
        shape: Height, width, and 1 or 3 channels to which it is resized and converted; as it is by default. Resizing
            takes the average of triangles as wide as the reduction, as ``tf.image.resize`` does with antialiasing.
        dtype: uint8, or uint16 with values up to 65535; by default what keeps its bits.

    Returns:
        Pixels ``[height, width, channels]``, and the image's header.

    Raises:
        UnreadableError: The file cannot be read, or is damaged.
        DataError: The image is too large, or has numbers that are not shades.
    """
    with _opened(source) as (image, _):
        header = _header(image)
        height, width, channels = shape or header[:3]
        if shape and isinstance(image, JpegImageFile):  # decodes to half, a quarter or an eighth of the size
            sides = (2 * height, 2 * width) if header.orientation >= 5 else (2 * width, 2 * height)
            image.draft(None, sides)
        image.load()
        upright = _turned(image, header.orientation, header.orientation)
        found = np.dtype(dtype or (np.uint16 if header.bits == 16 else np.uint8))
        return _converted(upright, header, (height, width, channels), found), header


_DTYPES = {(0.0, 255.0): np.uint8, (0.0, 65_535.0): np.uint16}
"""The pixels that have such a range."""


def read_example(
    source: Source, shape: tuple[int, ...], low: float, high: float, *, integers: bool
) -> tuple[npt.NDArray[Any], tuple[str, ...]]:
    """Decode an image as an example of a model's data.

    Args:
        source: The image.
        shape: Height, width, and 1, 3 or 4 channels, of which the fourth is opacity.
        low: The value of black.
        high: The value of white.
        integers: Whether values are whole numbers.

    Returns:
        The example, and what reading changed.

    Raises:
        UnreadableError: The file cannot be read, or is damaged.
        DataError: The image is too large, or has numbers that are not shades.
    """
    height, width, channels = shape
    dtype = _DTYPES.get((low, high))
    pixels, header = read_pixels(source, (height, width, min(channels, 3)), dtype)
    found = changes_of(header, (height, width, pixels.shape[2]), pixels.dtype.name)
    size = f"from {header.height}x{header.width} "
    notes = [f"{verb} {size if verb == 'resized' else ''}{detail}" for verb, detail in found]
    largest = np.iinfo(pixels.dtype).max
    if channels == 4:
        pixels = np.concatenate([pixels, np.full((height, width, 1), largest, pixels.dtype)], axis=2)
    if dtype is not None:
        return pixels if integers else pixels.astype(np.float32), tuple(notes)
    notes.append(f"pixels scaled to [{low:g}, {high:g}], as in the run's data")
    x = low + pixels.astype(np.float32) / largest * (high - low)
    return np.rint(x) if integers else x, tuple(notes)


def changes_of(header: ImageHeader, shape: tuple[int, int, int], dtype: str) -> list[tuple[ImageVerb, str]]:
    """The changes by reading an image, each with a detail."""
    height, width, channels = shape
    found: list[tuple[bool, ImageVerb, str]] = [
        (header.orientation != 1, "turned", "by EXIF orientation"),
        (header.has_frames, "cut", "to the first frame"),
        (header.mode in ("CMYK", "LAB"), "converted", f"from {header.mode} to RGB"),
        (header.has_opacity, "converted", "to white where they are transparent"),
        (header.is_cut or (header.bits == 16 and dtype == "uint8"), "converted", "from 16 to 8 bits a channel"),
        (header.bits == 8 and dtype == "uint16", "converted", "from 8 to 16 bits a channel"),
        (header.channels > channels, "converted", "to grayscale"),
        ((header.height, header.width) != (height, width), "resized", f"to {height}x{width}"),
    ]
    return [(verb, detail) for applies, verb, detail in found if applies]


def read_labels(
    path: Path, size: tuple[int, int], orientation: int | None = None
) -> tuple[npt.NDArray[np.int32], bytes]:
    """Decode the stored values of a mask: shades, or places in a palette, as equal red, green and blue, or colours.

    Args:
        path: The file.
        size: Height and width, to which it is resized by the nearest pixel.
        orientation: The EXIF orientation by which it is turned; its own by default.

    Returns:
        ``0xRRGGBB``, ``[height, width]``, and the red, green and blue of the palette's places, or nothing.

    Raises:
        UnreadableError: The file cannot be read, or is damaged.
        DataError: The mask is too large, or has more than 8 bits.
    """
    with _opened(path) as (image, _):
        header = _header(image)
        if header.bits == 16 or header.is_cut:
            raise DataError("it has 16 bits per pixel; save it with 8, which is enough for 256 classes")
        image.load()
        turned = _turned(image, header.orientation, header.orientation if orientation is None else orientation)
        turned = turned.resize(size[::-1], Image.Resampling.NEAREST)
        palette = bytes(image.getpalette() or ()) if image.mode in ("P", "PA") else b""
        if turned.mode in ("L", "LA", "1", "P", "PA"):
            shades = turned if turned.mode in ("L", "P") else turned.getchannel(0).convert("L")
            return np.asarray(shades, np.int32) * np.int32(_GREY), palette
        colours: npt.NDArray[np.int32] = np.asarray(turned.convert("RGB"), np.int32) @ _PLACES
        return colours, palette


def read_logged(content: bytes, max_bytes: int) -> npt.NDArray[np.uint8]:
    """Decode an image that a program logged, with its opacity.

    Args:
        content: The file.
        max_bytes: Most bytes of its pixels.

    Returns:
        ``[height, width, channels]`` with 1 channel (grey), 3 (colours) or 4 (with opacity).

    Raises:
        ValueError: The image is damaged or too large. The message is a noun phrase, the same for all images of a kind.
    """
    try:
        with _opened(content) as (image, _):
            header = _header(image)
            image.verify()  # the checksums of a PNG file
        channels = 4 if header.has_opacity else header.channels
        if header.height * header.width * channels <= max_bytes:
            if channels < 4:
                return read_pixels(content, header[:3], np.uint8)[0]
            with _opened(content) as (image, _):
                return np.asarray(image.convert("RGBA"))
    except DataError as error:
        raise ValueError("damaged image") from error
    raise ValueError("image with too many pixels")


def encode_png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """A PNG file of grey, coloured or transparent pixels, ``[height, width, 1, 3 or 4]``."""
    stream = BytesIO()
    Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels).save(stream, "PNG")
    return stream.getvalue()


@contextmanager
def _opened(source: Source) -> Iterator[tuple[ImageFile, IO[bytes]]]:
    """Open an image and check its size; whatever Pillow raises within the block is an error about the image."""
    image = None
    try:
        with BytesIO(source) if isinstance(source, bytes) else regular(source).open("rb") as file:
            start = file.read(16)
            file.seek(0)
            opener = next((each for first, each in _OPENERS if start.startswith(first)), None)
            image = opener(file) if opener else None
            if image is not None:
                _check(image, file)
                yield image, file
    except Image.DecompressionBombError as error:
        raise DataError(f"cannot read {_name(source)}: {error}") from error
    except DataError as error:
        raise type(error)(f"cannot read {_name(source)}: {error}") from error
    except OSError as error:
        if image is not None or error.errno is not None:
            verb = "decode" if image else "read"
            raise UnreadableError(f"cannot {verb} {_name(source)}: {error.strerror or error}") from error
    except Exception as error:
        if image is not None:
            raise UnreadableError(f"cannot decode {_name(source)}: {error}") from error
    if image is None:
        raise UnreadableError(f"cannot read {_name(source)}: not a valid {FORMATS} file")


def _name(source: Source) -> str:
    return "the image" if isinstance(source, bytes) else f"the image {source}"


def _check(image: ImageFile, file: IO[bytes]) -> None:
    width, height = image.size
    if width * height > MAX_PIXELS:
        said = f"{width:,} x {height:,} pixels are too many, at most {MAX_PIXELS:,} are read; make it smaller"
        raise DataError(said) if _has_end(image, file) else UnreadableError(said)  # damaged, it may claim any size
    if image.mode in ("I", "F") and image.format != "PPM":
        raise DataError("its pixels are numbers of 32 bits; save them as shades of 8 or 16 bits")


def _header(image: ImageFile) -> ImageHeader:
    orientation = _orientation(image)
    width, height = image.size
    if isinstance(image, TiffImageFile):  # some versions of Pillow swap the size
        width, height = (int(image.tag_v2[tag]) for tag in (ExifTags.Base.ImageWidth, ExifTags.Base.ImageLength))
    if orientation >= 5:
        width, height = height, width
    is_deep = image.mode.startswith("I")
    is_grey = is_deep or image.mode in ("1", "L", "LA", "La")
    return ImageHeader(
        height,
        width,
        1 if is_grey else 3,
        16 if is_deep else 8,
        image.mode,
        orientation,
        image.has_transparency_data and not is_deep,
        not is_deep and any(_is_deep(image, tile[3]) for tile in image.tile),
        bool(getattr(image, "is_animated", False)),
    )


def _is_deep(image: ImageFile, coding: Any) -> bool:
    """Whether pixels are stored with 16 bits, by how Pillow decodes them."""
    if image.format == "PPM" and isinstance(coding, tuple):
        return int(coding[1]) > 255
    return ";16" in str(coding)


def _orientation(image: ImageFile) -> int:
    if not isinstance(image, TiffImageFile) and _ORIENTATION_SOURCES.isdisjoint(image.info):
        return 1
    try:
        found = Image.Image.getexif(image).get(ExifTags.Base.Orientation, 1)
    except (SyntaxError, ValueError, LookupError, TypeError, OSError):  # damaged metadata of a whole image
        return 1
    return found if found in _TURNS else 1


def _has_end(image: ImageFile, file: IO[bytes]) -> bool:
    """Whether a file is as long as it says, or ends with the mark of its format; false if it does not tell."""
    form = image.format or ""
    after_header = file.tell()
    size = file.seek(0, SEEK_END)
    try:
        if form in _LENGTHS:
            place, uncounted = _LENGTHS[form]
            file.seek(place)
            return size >= int.from_bytes(file.read(4), "little") + uncounted
        file.seek(max(size - _TAIL, 0))
        if form in _ENDS and file.read().rstrip(_FILLING).endswith(_ENDS[form]):
            return True
        file.seek(after_header)  # there the scans of a JPEG file begin, in which no mark of an end is
        return form == "JPEG" and _ENDS[form] in file.read(_SEARCHED)
    finally:
        file.seek(after_header)


def _turned(image: Image.Image, own: int, orientation: int) -> Image.Image:
    """A decoded image, which may have its own EXIF orientation, shown as another says."""
    if image.format == "TIFF" and own != 1:  # Pillow has turned it
        return image
    return image.transpose(_TURNS[orientation]) if orientation in _TURNS else image


def _converted(
    image: Image.Image, header: ImageHeader, shape: tuple[int, int, int], dtype: np.dtype[Any]
) -> npt.NDArray[Any]:
    height, width, channels = shape
    if header.bits == 16:
        shades = _resized_shades(np.asarray(image), height, width)
        pixels = shades if dtype == np.uint16 else ((shades.astype(np.uint32) + 128) // 257).astype(dtype)
        return np.repeat(pixels[:, :, np.newaxis], channels, axis=2)
    mode = "L" if channels == 1 else "RGB"
    if header.has_opacity:
        white = Image.new("RGBA", image.size, "white")
        white.alpha_composite(image.convert("RGBA"))
        image = white
    image = image if image.mode == mode else image.convert(mode)
    if image.size != (width, height):
        image = image.resize((width, height), Image.Resampling.BILINEAR)
    pixels = np.asarray(image).reshape(height, width, channels)
    return pixels if dtype == np.uint8 else pixels.astype(dtype) * np.uint16(257)


def _resized_shades(shades: npt.NDArray[Any], height: int, width: int) -> npt.NDArray[np.uint16]:
    """Resize shades of 16 bits, ``[height, width]``."""
    if shades.shape == (height, width):
        return shades.astype(np.uint16)
    resized = Image.fromarray(shades.astype(np.float32)).resize((width, height), Image.Resampling.BILINEAR)
    return np.rint(np.asarray(resized)).astype(np.uint16)
