"""Identifies the mass of a pendulum from a recorded swing, with the gradient by a model parameter."""

import numpy as np
from scipy.optimize import minimize

import revolute

sim = revolute.connect()
model = sim.load_model("pendulum1", timestep=5e-3)
start, rest, ctrl = [1.0], [0.0], np.full((400, 1), 0.2)
truth = sim.rollout(model, start, rest, ctrl, params={"body_mass": [0, 1.7, 0.01]})
loss = revolute.Term("qpos", when="running", target=truth.qpos)


def loss_of(mass: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the squared distance from the recorded swing for a mass, and its derivative by the mass."""
    params = {"body_mass": [0, mass[0], 0.01]}
    value, gradient = sim.value_and_gradient(model, start, rest, ctrl, loss, params=params, wrt=["body_mass"])
    return float(value), gradient.body_mass[1:2]


found = minimize(loss_of, x0=[1.0], jac=True, bounds=[(0.1, 10)], method="L-BFGS-B")
print(f"mass {found.x[0]:.6f} kg, loss {found.fun:.1e}, {found.nfev} simulations")
