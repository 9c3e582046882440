"""One request of each kind that has a body, for the OpenAPI description.

They are of the built-in cart pole, and all can be sent, with ids that the reader's server has given.
"""

from __future__ import annotations

from typing import Any

MODEL_ID = "0" * 64
"""Stands for an id that RegisterModel has returned."""

_ROLLOUT: dict[str, Any] = {
    "model_id": MODEL_ID,
    "qpos": [0.0, 0.1],
    "qvel": [0.0, 0.0],
    "ctrl": [[1.0], [0.5], [0.0]],
}

EXAMPLES: dict[str, dict[str, Any]] = {
    "ModelSource": {"builtin": "cartpole", "options": {"timestep": 0.005}},
    "CreateSession": {"model_id": MODEL_ID, "batch": 2, "lease": 600.0},
    "ForkSession": {"request_id": "7d0c5c2e-6f0e-4a3e-9a63-5f4d1f6f2b11"},
    "KeepAlive": {},
    "ResetInputs": {"qpos": [0.0, 0.2]},
    "SetStateInputs": {"qvel": [[0.1, 0.0], [0.2, 0.0]], "step_count": 0},
    "StepInputs": {"ctrl": [[1.0], [-1.0]], "steps": 4},
    "SessionJacobianInputs": {"ctrl": [0.5]},
    "RolloutInputs": {
        **_ROLLOUT,
        "params": {"gravity": [0.0, 0.0, -1.62], "restitution": 0.5},
        "checkpoints": "slots=2",
    },
    "StreamRolloutInputs": {"inputs": _ROLLOUT, "segment_steps": 2},
    "Cotangents": {"qpos_bar": [[1.0, 0.0]], "times": [-1], "wrt": ["ctrl", "qvel"]},
    "Tangents": {"ctrl_tan": [[1.0], [0.0], [0.0]]},
    "JacobianInputs": {"model_id": MODEL_ID, "qpos": [0.0, 0.1], "qvel": [0.0, 0.0], "ctrl": [1.0]},
    "CheckGradientInputs": {"model_id": MODEL_ID, "steps": 10, "wrt": ["ctrl"]},
    "ValueAndGradientInputs": {
        "inputs": _ROLLOUT,
        "loss": {
            "terms": [
                {"quantity": "qpos", "target": [0.5], "index": [0]},
                {"quantity": "ctrl", "weight": 0.01, "when": "running"},
            ]
        },
        "wrt": ["ctrl"],
    },
}
"""By name of the request's schema."""
