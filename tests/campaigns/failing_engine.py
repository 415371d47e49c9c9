"""An engine in which a file operation of Python or SQLite fails: ``failing_engine NUMBER FAULT COUNTS --run …``.

It is the real one but for that. How many operations there were is written to the file ``COUNTS``.
"""

import sys
from pathlib import Path

from accel_engine.engine_main.main import main
from failing_files import FailingFiles


def run(number: int, fault: str, counts: Path) -> int:
    """Run the engine; returns its exit status."""
    files = FailingFiles(number, fault)
    try:
        with files.active():
            return main()
    finally:
        counts.write_text(str(len(files.operations)))


if __name__ == "__main__":
    chosen, fault, counts, sys.argv[1:] = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), sys.argv[4:]
    sys.exit(run(chosen, fault, counts))
