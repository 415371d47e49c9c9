"""A stand-in for NVIDIA's driver: a library built from ``stand_in.c``, and the file that steers it."""

import shutil
import subprocess
from pathlib import Path

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
"""The C compiler, if there is one."""


def build(folder: Path) -> Path:
    """Build the library in a folder, under the name of NVIDIA's."""
    library = folder / "libnvidia-ml.so.1"
    source = Path(__file__).with_name("stand_in.c")
    subprocess.run([str(COMPILER), "-shared", "-fPIC", "-O1", "-Wall", "-o", str(library), str(source)], check=True)
    return library


class Driver:
    """GPUs that answer, refuse, stall and vanish.

    Args:
        library: As :func:`build` made it.
        script: Where the file is put that steers it.
        gpus: How many there are.
    """

    def __init__(self, library: Path, script: Path, gpus: int) -> None:
        self.library = library
        self._script = script
        self._lines = [f"gpus {gpus}"]
        self._write()

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which a process loads this library for NVIDIA's."""
        return {"LD_LIBRARY_PATH": str(self.library.parent), "STAND_IN_NVML": str(self._script)}

    def refuse(self, function: str, gpu: int | str, code: int) -> None:
        """Answer with an error of NVML; ``*`` stands for all functions, or all GPUs."""
        self._say(f"refuse {function} {gpu} {code}")

    def stall(self, function: str, gpu: int | str) -> None:
        """Do not answer, until :meth:`relent`."""
        self._say(f"stall {function} {gpu}")

    def measure(self, key: str, gpu: int | str, number: float) -> None:
        """Have a value measured, in NVML's units; ``stand_in.c`` has the keys."""
        before = f"value {key} {gpu} "
        self._lines = [line for line in self._lines if not line.startswith(before)]
        self._say(f"{before}{number}")

    def relent(self) -> None:
        """Answer everything again."""
        self._lines = [line for line in self._lines if not line.startswith(("refuse", "stall"))]
        self._write()

    def _say(self, line: str) -> None:
        self._lines.append(line)
        self._write()

    def _write(self) -> None:
        # In one move: the library must never see half a file.
        new = self._script.with_suffix(".new")
        new.write_text("\n".join(self._lines) + "\n")
        new.replace(self._script)
