"""Whether the local workers of a plan train in a network namespace, where nobody else can reach their ports.

TensorFlow's servers listen on every interface, whatever address they have. They run what they are sent and do not ask
who sends it: whoever can connect can read and change the process's memory, and so run code as its user.
"""

from accel_engine import network_namespace
from accel_engine.data import source_of
from accel_engine.devices.preemption import find_provider
from accel_engine.models import UserModel
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.plan.task_choices import IMAGENET


def is_isolated(resolved: ResolvedPlan) -> bool:
    """Whether the engine of a plan starts its local workers in a network namespace."""
    return _opens_ports(resolved) and not why_reachable(resolved)


def warning(resolved: ResolvedPlan) -> str:
    """A warning on who can use the ports of a plan's local workers, and why they can be reached; or empty."""
    reason = why_reachable(resolved)
    return reason and (
        "while it trains, whoever can connect to this machine, or is logged in, can run code as you through the "
        f"ports of TensorFlow's workers: {reason}"
    )


def _opens_ports(resolved: ResolvedPlan) -> bool:
    """Whether the engine of a plan starts servers on this machine; servers of a cluster need to be reachable."""
    return resolved.strategy.processes and resolved.plan.local_workers > 0 and resolved.cluster is None


def why_reachable(resolved: ResolvedPlan) -> str:
    """Why others can reach the ports of a plan's local workers; empty if they cannot."""
    if not _opens_ports(resolved):
        return ""
    if resolved.plan.isolate_workers == "off":
        return "--isolate-workers is off"
    if resolved.plan.isolate_workers == "auto" and (needed_for := _needs_network(resolved)):
        return f"{needed_for} may need the network; if not, use --isolate-workers on"
    reason = network_namespace.why_not()
    is_wanted = resolved.plan.isolate_workers == "on"
    return f"--isolate-workers on is not possible: {reason}" if reason and is_wanted else reason


def _needs_network(resolved: ResolvedPlan) -> str:
    """The part of a plan that may need the network; empty if none does."""
    if resolved.data.url or source_of(resolved.data).is_downloaded:
        return f"reading {resolved.data.name}"
    if resolved.data.function:
        return f"the function {resolved.data.name}"
    if resolved.plan.initial_weights == IMAGENET:
        return "downloading ImageNet weights"
    if (isinstance(resolved.model, UserModel) and resolved.model.function) or resolved.plan.custom_objects:
        return "the code of your model"
    if find_provider(resolved.plan.preemption_notice):
        return "asking for a preemption notice"
    return ""
