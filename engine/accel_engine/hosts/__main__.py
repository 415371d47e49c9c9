"""The entry of the process that answers on a host: ``python -m accel_engine.hosts``."""

import sys

from accel_engine.hosts.remote import main

if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
