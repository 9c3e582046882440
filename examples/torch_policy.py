"""Trains a small PyTorch policy to balance a cartpole, with gradients through the simulation."""

from typing import Any

import numpy as np
import torch
from torch.autograd.function import once_differentiable

import revolute

sim = revolute.connect()  # or revolute.connect("grpc://127.0.0.1:50051")
model = sim.load_model("cartpole", timestep=0.02)


class Step(torch.autograd.Function):
    """One step of a batch of environments, from (qpos, qvel, ctrl) to the next (qpos, qvel)."""

    @staticmethod
    def forward(ctx: Any, qpos: Any, qvel: Any, ctrl: Any) -> Any:
        """Simulate, and keep the trajectory for the gradient."""
        ctx.trajectory = sim.rollout(model, qpos, qvel, ctrl[:, None])  # [batch, time, nu]
        return torch.tensor(ctx.trajectory.final_qpos), torch.tensor(ctx.trajectory.final_qvel)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, qpos_bar: Any, qvel_bar: Any) -> Any:
        """Pull the cotangents of the final state back."""
        gradient = ctx.trajectory.backward(qpos_bar[:, None], qvel_bar[:, None], times=[-1])
        return torch.tensor(gradient.qpos), torch.tensor(gradient.qvel), torch.tensor(gradient.ctrl[:, 0])


torch.manual_seed(0)
torch.set_num_threads(1)  # tensors as small as these gain nothing from more
torch.set_default_dtype(torch.float64)
policy = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(policy.parameters(), lr=0.02)
losses = []
for _ in range(30):
    qpos, qvel = 0.1 * torch.randn(32, model.nq), 0.1 * torch.randn(32, model.nv)
    loss = torch.zeros(())
    for _ in range(30):
        ctrl = 10 * policy(torch.cat([qpos, qvel], 1))
        qpos, qvel = Step.apply(qpos, qvel, ctrl)
        loss = loss + (qpos**2).sum(1).mean() + 1e-3 * (ctrl**2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("mean loss of the first five rounds", np.mean(losses[:5]), "of the last five", np.mean(losses[-5:]))
