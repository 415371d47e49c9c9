"""Describes the state of the warm engine."""

from accel_engine.process.warm_engine import EngineState, WarmEngine


def engine_status(engine: WarmEngine) -> str:
    """The state of a warm engine, as the top bar shows it."""
    match engine.state:
        case EngineState.IMPORTING:
            return "engine: importing TensorFlow…"
        case EngineState.READY:
            return f"engine: ready (TensorFlow {engine.versions.get('tensorflow', '?')})"
        case EngineState.HANDED_OVER:
            return "engine: training"
        case EngineState.FAILED:
            return engine.problem
