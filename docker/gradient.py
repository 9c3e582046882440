"""Print a trajectory's gradient as bytes in hexadecimal, from a server or from the engine in this process.

check.sh runs it in the worker's image against the server's image and beside the repository's own engine.

    python gradient.py [ADDRESS]
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

import revolute


def main(address: str | None) -> None:
    """Roll the Laikago out, pull a loss back and print the gradient."""
    file = os.environ.get("REVOLUTE_TOKEN_FILE")
    token = Path(file).read_text(encoding="utf-8").strip() if address and file else None
    with revolute.connect(address, token=token) as simulator:
        model = simulator.load_model("laikago", timestep=2e-3)
        ctrl = np.tile([0.0, 0.1, -0.8], 4) + 0.01 * np.random.default_rng(7).normal(size=(4, 50, model.nu))
        trajectory = simulator.rollout(model, model.qpos0, model.qvel0, ctrl)
        gradient = trajectory.backward(np.ones(trajectory.qpos.shape), wrt=["qpos", "ctrl", "body_mass"])
        for name in ("qpos", "ctrl", "body_mass"):
            print(name, np.asarray(gradient[name]).tobytes().hex())


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
