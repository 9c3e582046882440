"""Steps 64 robots at once, forks the session for an experiment, and continues the original."""

import numpy as np

import revolute

sim = revolute.connect()  # or revolute.connect("grpc://127.0.0.1:50051")
model = sim.load_model("laikago", timestep=2e-3)
pose = np.tile([0.0, 0.1, -0.8], 4)
with sim.session(model, batch=64) as session:
    session.reset(model.keyframes["home"])
    for _ in range(10):
        session.step(pose, steps=20)  # joint targets, held for 20 steps of 2 ms
    with session.fork() as trial:
        crouched = trial.step(np.tile([0.0, 0.6, -1.6], 4), steps=500)
    state = session.state()
print("heights", state.qpos[0, 2].round(3), "and after a trial", crouched.qpos[0, 2].round(3))
