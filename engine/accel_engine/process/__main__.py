"""The entry of an engine process: ``python -m accel_engine.process``."""

import sys

from accel_engine.engine_main.main import main

if __name__ == "__main__":
    sys.exit(main())
