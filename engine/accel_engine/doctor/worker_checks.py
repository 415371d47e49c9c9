"""Checks what local workers need."""

from accel_engine import network_namespace
from accel_engine.doctor.check import Finding, passed, warned
from accel_engine.doctor.machine import Machine


def check_ports(machine: Machine) -> Finding:  # noqa: ARG001
    """Check whether local workers can train where nobody else can reach the ports of TensorFlow's servers."""
    if not (problem := network_namespace.why_not()):
        return passed("local workers can have a network of their own")
    return warned(
        "other users and machines can reach the ports of local workers",
        f"{problem}, and TensorFlow's servers run what anyone sends them",
        "allow unprivileged user namespaces, or use --local-workers only behind a firewall, without other users",
    )
