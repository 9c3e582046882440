"""The work of test_client_only: a script for an environment with the light client alone, and for comparison
here."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

import revolute


def job(
    simulator: revolute.Simulator, path: str, options: dict[str, Any], lift: float
) -> dict[str, np.ndarray]:
    """Return a rollout, its gradients and a loss of a robot that starts at its default pose, lifted."""
    model = simulator.load_model(path, **options)
    random = np.random.default_rng(5)
    ctrl = 0.1 * random.normal(size=(2, 30, model.nu))
    qpos = np.array(model.qpos0)
    qpos[2] += lift
    qvel = 0.1 * random.normal(size=model.nv)
    wrt = ["qpos", "qvel", "ctrl", "body_mass"]
    trajectory = simulator.rollout(model, qpos, qvel, ctrl)
    gradient = trajectory.backward(np.ones(trajectory.qpos.shape), wrt=wrt)
    loss = revolute.Loss([revolute.Term("qpos", index=[2], target=0.3)])
    value, _ = simulator.value_and_gradient(model, qpos, qvel, ctrl, loss)
    return {"qpos": trajectory.qpos, "qvel": trajectory.qvel, "value": value, **gradient}


def main(address: str, path: str, options: str, lift: str, output: str) -> None:
    """Do the job over the network and write its arrays to an .npz file."""
    with revolute.connect(address) as simulator:
        np.savez(output, **job(simulator, path, json.loads(options), float(lift)))
    foreign = {"mujoco", "revolute_engine", "revolute_server", "fastapi"} & set(sys.modules)
    assert not foreign, foreign


if __name__ == "__main__":
    main(*sys.argv[1:])
