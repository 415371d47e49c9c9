"""The files with examples that a path names."""

from pathlib import Path

from accel_engine.data.folders.layout import IMAGE_SUFFIXES
from accel_engine.errors import UsageError
from accel_engine.user_paths import is_directory, is_file


def files_of(path: Path) -> list[Path]:
    """The file of a path, or the images of a folder sorted by name, or else its WAV files.

    Raises:
        UsageError: The folder has none, or cannot be read.
    """
    if not is_directory(path):
        return [path]
    try:
        found = sorted(file for file in path.iterdir() if file.suffix.lower() in IMAGE_SUFFIXES and is_file(file))
        found = found or sorted(file for file in path.iterdir() if file.suffix.lower() == ".wav" and is_file(file))
    except OSError as error:
        raise UsageError(f"cannot read the folder {path}: {error.strerror}") from error
    if not found:
        raise UsageError(f"the folder {path} contains no images ({', '.join(IMAGE_SUFFIXES)}) and no WAV files")
    return found
