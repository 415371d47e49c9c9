"""Links CUDA 13's libraries under the names that a TensorFlow for CUDA 12 opens.

    python benchmarks/gpu/links.py FOLDER

For a machine that has CUDA 13 only. The libraries are looked for in the packages of this Python, in PYTHONPATH and in
/usr/local/cuda. Put FOLDER into LD_LIBRARY_PATH; what does not fit then fails in TensorFlow, which the doctor shows.
"""

import argparse
import os
import sysconfig
from collections.abc import Sequence
from pathlib import Path

NAMES = (
    "libcudart.so.12",
    "libcublas.so.12",
    "libcublasLt.so.12",
    "libcufft.so.11",
    "libcurand.so.10",
    "libcusolver.so.11",
    "libcusparse.so.12",
    "libcudnn.so.9",
    "libnccl.so.2",
    "libcupti.so.12",
    "libnvJitLink.so.12",
    "libnvrtc.so.12",
)


def find(name: str, roots: Sequence[Path]) -> Path | None:
    """The library of this name, or else of another version; ``None`` if there is none."""
    stem = name.partition(".so")[0]
    found = [path for root in roots for path in sorted(root.glob(f"**/{stem}.so*"))]
    return next((path for path in found if path.name == name), found[0] if found else None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    paths = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    roots = [Path(sysconfig.get_paths()["purelib"]), *map(Path, paths), Path("/usr/local/cuda/lib64")]
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        link, best = folder / name, find(name, roots)
        link.unlink(missing_ok=True)
        if best:
            link.symlink_to(best)
        print(name, "->", best or "missing")


if __name__ == "__main__":
    main()
