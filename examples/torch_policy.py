"""Trains a small PyTorch policy to balance a cartpole, with gradients through the simulation."""

import numpy as np
import torch

import revolute
import revolute.torch

sim = revolute.connect()  # or revolute.connect("grpc://127.0.0.1:50051")
model = sim.load_model("cartpole", timestep=0.02)

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
        # one step of all environments; ctrl is [batch, time, nu]
        qpos, qvel = revolute.torch.rollout(sim, model, qpos, qvel, ctrl[:, None], states="final")
        loss = loss + (qpos**2).sum(1).mean() + 1e-3 * (ctrl**2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("mean loss of the first five rounds", np.mean(losses[:5]), "of the last five", np.mean(losses[-5:]))
