"""A fake NVIDIA driver: a library built from ``stand_in.c``, and the script file that controls it."""

import shutil
import subprocess
from pathlib import Path

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
"""Path of the C compiler; ``None`` if there is none."""


def build(folder: Path) -> Path:
    """Build the library in a folder, with the name of NVIDIA's library."""
    library = folder / "libnvidia-ml.so.1"
    source = Path(__file__).with_name("stand_in.c")
    subprocess.run([str(COMPILER), "-shared", "-fPIC", "-O1", "-Wall", "-o", str(library), str(source)], check=True)
    return library


class Driver:
    """Fake GPUs whose responses can be changed.

    Args:
        library: Result of :func:`build`.
        script: Path of the script file.
        gpus: Number of GPUs.
    """

    def __init__(self, library: Path, script: Path, gpus: int) -> None:
        self.library = library
        self._script = script
        self._lines = [f"gpus {gpus}"]
        self._write()

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables with which a process loads this library instead of NVIDIA's."""
        return {"LD_LIBRARY_PATH": str(self.library.parent), "STAND_IN_NVML": str(self._script)}

    def refuse(self, function: str, gpu: int | str, code: int) -> None:
        """Return an NVML error; ``*`` means all functions, or all GPUs."""
        self._add(f"refuse {function} {gpu} {code}")

    def stall(self, function: str, gpu: int | str) -> None:
        """Block until :meth:`relent`."""
        self._add(f"stall {function} {gpu}")

    def measure(self, key: str, gpu: int | str, number: float) -> None:
        """Set a value in NVML's units; see ``stand_in.c`` for the keys."""
        before = f"value {key} {gpu} "
        self._lines = [line for line in self._lines if not line.startswith(before)]
        self._add(f"{before}{number}")

    def relent(self) -> None:
        """Undo all refusals and stalls."""
        self._lines = [line for line in self._lines if not line.startswith(("refuse", "stall"))]
        self._write()

    def _add(self, line: str) -> None:
        self._lines.append(line)
        self._write()

    def _write(self) -> None:
        # Atomically: the library must never read half a file.
        new = self._script.with_suffix(".new")
        new.write_text("\n".join(self._lines) + "\n")
        new.replace(self._script)
