"""Which modules get faults, and which tests must notice them."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Area:
    """Modules and the tests that mirror them.

    Attributes:
        modules: Their paths, or the paths of their packages.
        tests: Files of tests, or their directories.
        imports: What every test imports and no fault can reach: imported once, before a process is forked for each.
        in_graphs: Whether code runs in TensorFlow's graphs, so that its lines cannot be followed.
    """

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    imports: tuple[str, ...] = ("numpy",)
    in_graphs: bool = False

    def module_paths(self, root: Path) -> list[str]:
        """The modules as paths in the repository."""
        return [path for each in self.modules for path in _python_files(root, each)]

    def test_paths(self, root: Path) -> list[str]:
        """The files of tests as paths in the repository."""
        found = [path for each in self.tests for path in _python_files(root, each)]
        return [path for path in found if Path(path).name.startswith("test_")]


_TENSORFLOW = ("numpy", "tensorflow", "keras", "pyarrow", "PIL")
_ENGINE, _TESTS = "engine/accel_engine", "tests/engine"
_TRAINING = f"{_ENGINE}/training"

_OF_LOOP = ("autotuner", "gradient_norm", "own_models", "recipe_resuming", "resuming", "tpu", "trainer")
"""What tests of the training loop as a whole are about."""

AREAS = {
    "store": Area((f"{_ENGINE}/run",), (f"{_TESTS}/run",)),
    "export": Area((f"{_ENGINE}/export",), (f"{_TESTS}/export", "tests/tui/cli/test_export.py")),
    "recording": Area(
        (f"{_ENGINE}/recording",),
        (
            f"{_TESTS}/recording",
            f"{_TESTS}/scripts/test_recorder_server.py",
            f"{_TESTS}/scripts/test_stopping_a_part.py",
        ),
        _TENSORFLOW,
        in_graphs=True,
    ),
    "continuing": Area(
        (f"{_TRAINING}/checkpoints", f"{_TRAINING}/commands", f"{_TRAINING}/progress"),
        (
            f"{_TESTS}/training/checkpoints",
            f"{_TESTS}/training/commands",
            f"{_TESTS}/training/progress",
            f"{_TESTS}/training/test_resuming.py",
            f"{_TESTS}/training/test_recipe_resuming.py",
        ),
        _TENSORFLOW,
        in_graphs=True,
    ),
    "training": Area(
        (
            f"{_TRAINING}/core",
            f"{_TRAINING}/evaluation",
            f"{_TRAINING}/epochs.py",
            f"{_TRAINING}/trainer.py",
            f"{_ENGINE}/trained",
        ),
        (
            f"{_TESTS}/training/core",
            f"{_TESTS}/training/evaluation",
            f"{_TESTS}/trained",
            f"{_TESTS}/training/checkpoints/test_damaged_checkpoints.py",
            f"{_TESTS}/training/test_layer_kernels.py",
            f"{_TESTS}/training/reporting/test_mfu.py",
            *(f"{_TESTS}/training/test_{name}.py" for name in _OF_LOOP),
        ),
        _TENSORFLOW,
        in_graphs=True,
    ),
}


def _python_files(root: Path, path: str) -> list[str]:
    if path.endswith(".py"):
        return [path]
    return sorted(str(each.relative_to(root)) for each in (root / path).rglob("*.py"))
