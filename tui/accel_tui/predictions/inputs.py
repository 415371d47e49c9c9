"""The files with examples that a path names."""

from pathlib import Path

from accel_engine.data.folders.layout import AUDIO_SUFFIXES, IMAGE_SUFFIXES
from accel_engine.errors import UsageError
from accel_engine.user_paths import is_directory, is_file


def files_of(path: Path) -> list[Path]:
    """The file of a path, or the images of a folder sorted by name, or else its sounds.

    Raises:
        UsageError: The folder has none, or cannot be read.
    """
    if not is_directory(path):
        return [path]
    try:
        files = sorted(filter(is_file, path.iterdir()))
    except OSError as error:
        raise UsageError(f"cannot read the folder {path}: {error.strerror}") from error
    images, sounds = (
        [file for file in files if file.suffix.lower() in each] for each in (IMAGE_SUFFIXES, AUDIO_SUFFIXES)
    )
    if not images and not sounds:
        raise UsageError(f"the folder {path} contains no images ({', '.join(IMAGE_SUFFIXES)}) and no sounds")
    return images or sounds
