"""Runs when Python starts the user's script, and the processes that this starts; leaves no trace that they could meet.

Python imports the module ``sitecustomize`` at its start (see :mod:`site`); the supervisor has put this directory first
in ``PYTHONPATH``. So Python itself runs the script: ``__main__``, tracebacks, signals and the exit are as always.
"""

import os
import sys


def _begin() -> None:
    try:
        from accel_engine.recording.every_fit.hook import hide_variables, install_hook
    except ModuleNotFoundError:  # another Python, which the script has started
        return
    if address := hide_variables(os.path.dirname(__file__)):
        install_hook(address)


def _import_replaced() -> None:
    """Import the ``sitecustomize`` that this module hides, if there is one."""
    own = sys.modules.pop(__name__, None)
    try:
        __import__(__name__)
    except ImportError as error:
        if error.name != __name__:
            raise
        if own is not None:  # the import system needs a module of the name
            sys.modules[__name__] = own


try:
    _begin()
except Exception as error:  # noqa: BLE001 (whatever it is, the script runs)
    sys.stderr.write(f"accel-tui: this script's training is not recorded: {type(error).__name__}: {error}\n")
_import_replaced()
