"""The server sets memory aside by the checkpoint policy: slots fit where every state does not."""

from __future__ import annotations

import numpy as np

from revolute.contract.errors import LimitError
from testbed.cart import CART
from testbed.server_process import running_server
from testbed.wire import GrpcWire

STEPS = 100_000
"""Controls of 0.8 MB, states of 1.6 MB."""


def test_slots_fit_where_every_state_does_not() -> None:
    with running_server("--memory", "2300KiB", "--max-request", "1MiB") as small:
        wire = GrpcWire(small.grpc_target)
        cart = wire.call("RegisterModel", {"text": CART})["model_id"]
        inputs = {"model_id": cart, "qpos": [0.0], "qvel": [0.0], "ctrl": np.ones((STEPS, 1))}
        loss = {"terms": [{"quantity": "qpos", "when": "running", "form": "linear"}]}
        error, code = wire.error("Rollout", inputs)
        assert type(error) is LimitError and code == "RESOURCE_EXHAUSTED" and "--memory" in str(error)
        for _ in range(3):  # nothing is left behind
            found = wire.call("Rollout", {**inputs, "checkpoints": "slots=16"})
            handle = {"trajectory_id": found["trajectory_id"]}
            assert "qpos" not in found and found["report"]["states_stored"] == 16
            error, _ = wire.error("GetTrajectory", handle)
            assert type(error) is LimitError and "--memory" in str(error)
            bars = {"qpos_bar": np.ones((1, 1)), "times": [-1], "wrt": ["qvel"]}
            assert wire.call("Backward", {**handle, **bars})["arrays"]["qvel"].shape == (1,)
            wire.call("DeleteTrajectory", handle)
        request = {"inputs": {**inputs, "checkpoints": "slots=16"}, "loss": loss, "wrt": ["qpos"]}
        assert wire.call("ValueAndGradient", request)["gradient"]["arrays"]["qpos"].shape == (1,)
        wire.close()
