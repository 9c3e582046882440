"""The engine behind UM-Bridge: one model per robot and length, since sizes belong to the model.

python -m benchmarks.service.peer_adapters.umbridge_server PORT
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import umbridge

from benchmarks.service.peer_adapters import engine

Vectors = list[list[float]]


class Rollout(umbridge.Model):
    """Controls [T nu] to configurations [(T + 1) nq], both flat; config names the model and T."""

    def __init__(self) -> None:
        super().__init__("rollout")

    def get_input_sizes(self, config: dict[str, Any]) -> list[int]:
        return [config["steps"] * engine.model(config["model"]).nu]

    def get_output_sizes(self, config: dict[str, Any]) -> list[int]:
        return [(config["steps"] + 1) * engine.model(config["model"]).nq]

    def supports_evaluate(self) -> bool:
        return True

    def supports_gradient(self) -> bool:
        return True

    def __call__(self, parameters: Vectors, config: dict[str, Any]) -> Vectors:
        return [engine.rollout(config["model"], _controls(parameters, config)).ravel().tolist()]

    def gradient(
        self, out_wrt: int, in_wrt: int, parameters: Vectors, sens: list[float], config: dict[str, Any]
    ) -> list[float]:
        chosen = engine.model(config["model"])
        trajectory = engine.simulator().rollout(
            chosen, chosen.qpos0, chosen.qvel0, _controls(parameters, config)
        )
        bar = np.reshape(sens, trajectory.qpos.shape)
        return trajectory.backward(bar, wrt=["ctrl"]).ctrl.ravel().tolist()


def _controls(parameters: Vectors, config: dict[str, Any]) -> np.ndarray:
    return np.reshape(parameters[0], (config["steps"], -1))


if __name__ == "__main__":
    umbridge.serve_models([Rollout()], int(sys.argv[1]), max_workers=2)
