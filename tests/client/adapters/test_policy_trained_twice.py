"""A policy trained by one call per update, and by one call per period with torch's own network: the same
gradients and parameters."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import revolute

torch = pytest.importorskip("torch")

import revolute.torch  # noqa: E402

LEG = """<mujoco><option timestep="0.002"/><worldbody><geom name="floor" type="plane" size="5 5 1"/>
  <body name="trunk" pos="0 0 0.52"><joint name="x" type="slide" axis="1 0 0"/>
    <joint name="z" type="slide" axis="0 0 1"/><joint name="pitch" axis="0 1 0"/>
    <geom type="box" size="0.1 0.05 0.05" mass="2"/><site name="imu"/>
    <body name="thigh"><joint name="hip" axis="0 1 0" damping="0.2"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.25" size="0.03" mass="0.4"/>
      <body name="shin" pos="0 0 -0.25"><joint name="knee" axis="0 1 0" damping="0.2"/>
        <geom name="foot" type="capsule" fromto="0 0 0 0 0 -0.25" size="0.03" mass="0.3"/>
        <site name="toe" pos="0 0 -0.25" size="0.06"/></body></body></body></worldbody>
  <actuator><motor name="hip" joint="hip" gear="8"/><motor name="knee" joint="knee" gear="8"/></actuator>
  <sensor><accelerometer name="acc" site="imu"/><gyro name="gyro" site="imu"/><touch name="touch" site="toe"/>
  </sensor></mujoco>"""

OBSERVE = [
    "qpos",
    "site_pos:toe",
    "body_linvel:trunk",
    "subtree_com:thigh",
    "sensor",
    "previous_ctrl",
    "goal",
]
MEASURED = [name for name in OBSERVE if ":" in name or name == "sensor"]
BATCH, PERIODS, HOLD, UPDATES = 4, 6, 3, 4
SCALE, SQUASH = 0.3, True

CLOSE = 1e-10
"""Largest relative difference: both ways take the same sums in another order."""


class Measure(torch.autograd.Function):
    """What the engine measures at states, with its derivatives, for torch."""

    @staticmethod
    def forward(context: Any, sim: Any, model: Any, qpos: Any, qvel: Any, ctrl: Any) -> Any:
        arrays = [array.detach().numpy() for array in (qpos, qvel)]
        found = sim.kinematics(model, *arrays, ctrl=ctrl.detach().numpy(), quantities=MEASURED)
        context.found = found
        return torch.tensor(np.concatenate([found[name] for name in MEASURED], axis=1))

    @staticmethod
    def backward(context: Any, bar: Any) -> Any:
        found, bars, first = context.found, {}, 0
        for name in MEASURED:
            bars[name] = bar.numpy()[:, first : first + found[name].shape[1]]
            first += found[name].shape[1]
        pulled = found.backward(bars, wrt=["qpos", "qvel", "ctrl"])
        return None, None, *(torch.tensor(pulled[name]) for name in ("qpos", "qvel", "ctrl"))


def loss_of(qpos: Any, qvel: Any) -> Any:
    """Stay up and go forwards."""
    return ((qpos[:, 1] - 0.02) ** 2 - 0.5 * qvel[:, 0] + 0.05 * qvel[:, 3] ** 2).sum()


def in_one_call(sim: Any, model: Any, net: Any, start: Any, noise: Any, phase: Any) -> Any:
    policy = revolute.torch.Policy(net, OBSERVE, scale=SCALE, squash=SQUASH, goal=phase)
    return loss_of(
        *revolute.torch.rollout(sim, model, *start, noise, hold=HOLD, policy=policy, states="final")
    )


def period_by_period(sim: Any, model: Any, net: Any, start: Any, noise: Any, phase: Any) -> Any:
    qpos, qvel = start
    previous = torch.zeros((BATCH, model.nu), dtype=torch.float64)
    for c in range(PERIODS):
        measured = Measure.apply(sim, model, qpos, qvel, previous)
        goal = phase[c].expand(BATCH, -1)
        seen = torch.cat([qpos, measured, previous, goal], dim=1)
        previous = noise[:, c] + SCALE * torch.tanh(net(seen))
        qpos, qvel = revolute.torch.rollout(
            sim, model, qpos, qvel, previous[:, None], hold=HOLD, states="final"
        )
    return loss_of(qpos, qvel)


def test_both_ways_train_the_same_policy(in_process: revolute.Simulator) -> None:
    model = in_process.load_model(LEG)
    torch.manual_seed(0)
    inputs = model.nq + 3 + 3 + 3 + 7 + model.nu + 2
    nets = [
        torch.nn.Sequential(
            torch.nn.Linear(inputs, 10), torch.nn.ELU(), torch.nn.Linear(10, model.nu)
        ).double()
    ]
    with torch.no_grad():
        nets[0][0].weight *= 0.2  # forces of contacts are large numbers
    nets.append(copy.deepcopy(nets[0]))
    first = copy.deepcopy(nets[0])
    ways = [in_one_call, period_by_period]
    optimizers = [torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9) for net in nets]
    random = np.random.default_rng(5)
    for _ in range(UPDATES):
        qpos = model.qpos0 + 0.02 * random.normal(size=(BATCH, model.nq))
        start = [torch.tensor(qpos), torch.tensor(0.1 * random.normal(size=(BATCH, model.nv)))]
        noise = torch.tensor(0.1 * random.normal(size=(BATCH, PERIODS, model.nu)))
        angle = torch.linspace(0, 3, PERIODS, dtype=torch.float64)
        phase = torch.stack([angle.sin(), angle.cos()], dim=1)
        losses = []
        for way, net, optimizer in zip(ways, nets, optimizers, strict=True):
            optimizer.zero_grad()
            losses.append(way(in_process, model, net, start, noise, phase))
            losses[-1].backward()
            optimizer.step()
        np.testing.assert_allclose(losses[0].item(), losses[1].item(), rtol=CLOSE)
        for one, other in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
            size = one.grad.abs().max().item()
            np.testing.assert_allclose(one.grad, other.grad, rtol=0, atol=CLOSE * size)
            np.testing.assert_allclose(one.detach(), other.detach(), rtol=CLOSE, atol=CLOSE)
            assert size > 0
    moved = max(
        (a - b).abs().max().item() for a, b in zip(nets[0].parameters(), first.parameters(), strict=True)
    )
    assert moved > 1e-3  # it has learned something
