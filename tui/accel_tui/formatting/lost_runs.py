"""Why a run was lost."""

from accel_engine.run import RunInfo


def how_lost(info: RunInfo | None) -> str:
    """Which process of a lost run is gone, as a clause."""
    if info and info.launched:
        return "the script's supervisor was killed"
    return f"the {'script' if info and info.script else 'training process'} exited unexpectedly"
