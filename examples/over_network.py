import numpy as np

import revolute

sim = revolute.connect("grpc://127.0.0.1:50051")  # started by `revolute serve`
model = sim.load_model("laikago", timestep=2e-3)  # or "robot.urdf", or MJCF
pose = np.tile([0.0, 0.1, -0.8], 4)  # hip, upper and lower leg of four legs
qpos = np.concatenate([[0, 0, 0.458476, 1, 0, 0, 0], pose])
ctrl = pose + np.random.default_rng(0).normal(0, 0.01, (16, 500, 12))  # joint targets [batch, time, nu]

trajectory = sim.rollout(model, qpos, np.zeros(model.nv), ctrl)
qpos_bar = np.zeros(trajectory.qpos.shape)
qpos_bar[:, -1, 1] = 1.0  # the loss: where the base ends, sideways
gradient = trajectory.backward(qpos_bar, wrt=["qpos", "ctrl", "geom_friction"])
print("final y", trajectory.qpos[:, -1, 1].mean(), "d loss / d ctrl", gradient.ctrl.shape)
