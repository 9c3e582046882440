"""What every server computes: the same engine, the same models, the same questions."""

from __future__ import annotations

import functools

import numpy as np

import revolute

THREADS = 1
ACTUATORS = 1000
"""Motors of the cart: many numbers per step, so that large arrays cost little physics."""

CART = f"""<mujoco model="cart"><option timestep="0.001" gravity="0 0 0"/><worldbody><body name="cart">
<joint name="x" type="slide" axis="1 0 0"/><inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
</body></worldbody><actuator>{'<motor joint="x"/>' * ACTUATORS}</actuator></mujoco>"""

SOURCES = {"cartpole": "cartpole", "laikago": "laikago", "cart": CART}
"""Models by name."""

LOSS = revolute.Loss([revolute.Term("qpos", form="linear")])
"""The sum of the last configuration."""


@functools.cache
def simulator() -> revolute.Simulator:
    """Return the engine in this process."""
    return revolute.connect(threads=THREADS)


@functools.cache
def model(name: str) -> revolute.ModelHandle:
    """Return a model by its name."""
    return simulator().load_model(SOURCES[name])


def rollout(name: str, ctrl: np.ndarray) -> np.ndarray:
    """Return the configurations [T + 1, nq] under controls [T, nu]."""
    chosen = model(name)
    return simulator().rollout(chosen, chosen.qpos0, chosen.qvel0, ctrl).qpos


def gradient(name: str, ctrl: np.ndarray) -> np.ndarray:
    """Return the gradient [T, nu] of LOSS by the controls."""
    chosen = model(name)
    found = simulator().value_and_gradient(chosen, chosen.qpos0, chosen.qvel0, ctrl, LOSS, wrt=["ctrl"])
    return found[1].ctrl
