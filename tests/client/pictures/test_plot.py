"""Plots draw the numbers they are given."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

import revolute
import revolute.plot


def test_losses() -> None:
    (axes,) = revolute.plot.losses([3.0, 1.0, 0.5]).axes
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), [3.0, 1.0, 0.5])
    assert axes.get_yscale() == "log"
    (axes,) = revolute.plot.losses([[3.0, 1.0], [-1.0, 0.5]]).axes
    assert len(axes.lines) == 2
    assert axes.get_yscale() == "linear"


def test_gradient_norms(in_process: revolute.Simulator) -> None:
    model = in_process.load_model("cartpole")
    ctrl = np.zeros((2, 30, 1))
    trajectory = in_process.rollout(model, model.qpos0, model.qvel0, ctrl)
    gradient = trajectory.backward(np.ones_like(trajectory.qpos))
    figure = revolute.plot.gradient_norms(gradient, timestep=model.timestep)
    (axes,) = figure.axes
    assert len(axes.lines) == 2
    np.testing.assert_allclose(axes.lines[1].get_ydata(), np.abs(gradient.ctrl[1, :, 0]))
    np.testing.assert_allclose(axes.lines[1].get_xdata(), np.arange(30) * model.timestep)
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    assert np.asarray(Image.open(picture)).std() > 1  # not empty


def test_mistakes() -> None:
    with pytest.raises(revolute.ArgumentError, match="gradient: expected a gradient by ctrl"):
        revolute.plot.gradient_norms({})
    with pytest.raises(revolute.ArgumentError, match="values: expected shape"):
        revolute.plot.losses(1.0)
