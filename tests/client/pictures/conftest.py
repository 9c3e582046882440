"""A falling ball, a port for a viewer, and a reason to skip where nothing can be drawn."""

from __future__ import annotations

import socket

import numpy as np
import pytest

import revolute
from revolute.render import motion_of, pictures

BALL = """
<mujoco>
  <option timestep="0.02"/>
  <worldbody>
    <camera name="above" pos="0 0 8" xyaxes="1 0 0 0 1 0"/>
    <body name="ball" pos="0 0 2"><freejoint/><geom type="sphere" size="0.2" rgba="1 0 0 1"/></body>
  </worldbody>
</mujoco>
"""
STEPS = 20


@pytest.fixture(scope="session")
def ball(in_process: revolute.Simulator) -> revolute.Trajectory:
    """Return a batch of two red balls: the first falls, the second flies upwards."""
    model = in_process.load_model(BALL)
    qvel = np.zeros((2, model.nv))
    qvel[1, 2] = 3.0
    return in_process.rollout(model, model.qpos0, qvel, np.zeros((2, STEPS, 0)))


@pytest.fixture(scope="session")
def opengl(ball: revolute.Trajectory) -> None:
    """Skip where there is no OpenGL."""
    try:
        list(pictures(motion_of(ball), [0], size=(16, 16)))
    except revolute.UnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture
def port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
