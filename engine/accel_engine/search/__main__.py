"""``python -m accel_engine.search DIRECTORY``: runs a search, from where the process before it was."""

import sys
from pathlib import Path

from accel_engine.devices import detect
from accel_engine.places import parse_place
from accel_engine.process.detached import work_alone
from accel_engine.search.engine_runs import EngineRuns, QueueStarter
from accel_engine.search.process import run_search
from accel_engine.search.runs_at_place import RunsAtPlace
from accel_engine.search.study_paths import LOCK
from accel_engine.search.study_reader import StudyReader


def main() -> int:
    """Run the search to its end; returns the exit status."""
    directory = Path(sys.argv[1])

    def run(_: object) -> int:
        ended = run_search(directory, _runs(directory))
        return int(ended["outcome"] == "failed")

    return work_alone(directory, LOCK, run)


def _runs(directory: Path) -> EngineRuns:
    with StudyReader(directory) as study:
        part, at_once = study.database.part, study.definition.at_once
    if name := parse_place(part.place):
        return RunsAtPlace(name, part.place_request, at_once)
    devices = detect().devices
    return EngineRuns(QueueStarter(directory.name, at_once, devices), devices)


if __name__ == "__main__":
    sys.exit(main())
