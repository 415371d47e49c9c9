"""What the warm engine does, in words."""

from accel_engine.launch import EngineState, WarmEngine


def engine_status(engine: WarmEngine) -> str:
    """What a warm engine does, for the user."""
    match engine.state:
        case EngineState.IMPORTING:
            return "engine: importing TensorFlow…"
        case EngineState.READY:
            return f"engine: ready (TensorFlow {engine.versions.get('tensorflow', '?')})"
        case EngineState.HANDED_OVER:
            return "engine: training"
        case EngineState.FAILED:
            return engine.problem
