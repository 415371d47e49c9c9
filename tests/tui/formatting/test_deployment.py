"""What commands and screens say of deployments."""

from dataclasses import replace
from pathlib import Path

from accel_engine.deploy_folder.deploy_to_folder import WrittenFolder
from accel_engine.deployment.sizing import Sizing
from accel_tui.formatting.deployment import folder_lines, folder_values
from engine.deploy_folder.servables import MEASURED, facts_of, service_of


def test_a_folder_tells_how_many_machines_a_rate_takes() -> None:
    facts = replace(facts_of(service_of()), measured=MEASURED)
    found = WrittenFolder(Path("/service"), "kubernetes", facts, ())
    assert not any("machines" in line for line in folder_lines(found))
    assert folder_values(found)["sizing"] is None

    sizing = Sizing(format="onnx", threads=2, rate=210.0, target_latency=0.02, target_rate=500, connections=32)
    found = replace(found, facts=replace(facts, sizing=sizing))

    assert "500 requests/s take 3 machines like this one, without headroom" in list(folder_lines(found))
    assert folder_values(found)["sizing"]["replicas"] == 3
