from accel_engine.recording.loop_recorder import Recorder as Recorder
from accel_engine.recording.recorder import RunRecorder as RunRecorder
from accel_engine.version import __version__ as __version__
