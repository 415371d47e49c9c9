"""Lets engine processes run the programs of CPUs on GPUs, as they did before these had other ones."""

import importlib.abc
import importlib.machinery
import sys

MODULE = "accel_engine.training.core.assembly"


class Finder(importlib.abc.MetaPathFinder):
    """Finds the module of ``Assembly``, and changes the class once it is imported."""

    def find_spec(self, name, path=None, target=None):
        """See :class:`importlib.abc.MetaPathFinder`."""
        if name != MODULE:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            own = spec.loader.exec_module

            def exec_module(module):
                own(module)
                module.Assembly.on_gpu = False

            spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Finder())
