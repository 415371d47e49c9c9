"""``python -m accel_tui`` is ``accel-tui``."""

import sys

from accel_tui.cli import main

if __name__ == "__main__":
    sys.exit(main())
