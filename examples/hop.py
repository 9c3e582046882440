import numpy as np

import revolute

sim = revolute.connect()  # the engine in this process
model = sim.load_model("laikago", timestep=2e-3)  # a built-in robot; or "robot.urdf", or an MJCF file
pose = np.tile([0.0, 0.1, -0.8], 4)  # joint angles: hip, upper leg and lower leg of four legs
qpos = np.concatenate([[0, 0, 0.458, 1, 0, 0, 0], pose])  # base position, base quaternion, joints
ctrl = np.tile(pose, (200, 1))  # joint targets for 200 steps, [time, nu]

for _ in range(40):
    trajectory = sim.rollout(model, qpos, np.zeros(model.nv), ctrl)
    end = trajectory.qpos[-1]
    qpos_bar = np.zeros(trajectory.qpos.shape)  # d loss / d qpos for loss = height - 0.3 |tilt|^2 at the end
    qpos_bar[-1, 2], qpos_bar[-1, 4:7] = 1.0, -0.6 * end[4:7]
    gradient = trajectory.backward(qpos_bar, wrt=["ctrl"])  # gradient.ctrl is d loss / d ctrl
    ctrl += 0.02 * np.sign(gradient.ctrl)
print(f"the base is at {end[2]:.2f} m after 0.4 s; it started at 0.46 m")
