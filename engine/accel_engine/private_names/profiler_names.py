"""The private name of TensorFlow with which a profile of a script sees that the script starts a trace itself."""

import sys
from types import ModuleType

MODULE = "tensorflow.python.profiler.profiler_v2"


def profiler_module() -> ModuleType | None:
    """The module whose ``start`` TensorFlow's own classes call; ``None`` if there is none, or nobody has imported it.

    The public function is another reference, which only others call. Nothing is imported for this.
    """
    module = sys.modules.get(MODULE)
    return module if hasattr(module, "start") else None
