"""Case T04: a fast top on a ball joint precesses and keeps its energy, by the integrators that can."""

import numpy as np
import pytest

from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected, with_option

NUMBERS = expected("T04")
TOP = case_file("T04", "top.xml").read_text()
INERTIA = np.array([NUMBERS["I1"] + NUMBERS["m"] * NUMBERS["l"] ** 2] * 2 + [NUMBERS["I3"]])
GRAVITY = 9.81


def _spin(integrator: str, timestep: float) -> dict[str, np.ndarray | float]:
    """Return precession (rad/s), range of the tilt (degrees) and relative change of the energy over 1 s."""
    text = with_option(TOP, integrator=integrator, timestep=timestep)
    model = load_model(text, contact_model="mujoco")
    steps = round(1 / timestep)
    rollout = Engine(threads=1).rollout(model, NUMBERS["q0"], NUMBERS["w0"], np.zeros((steps, 0)))
    w, x, y, z = rollout.qpos.T
    axis = np.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)])
    azimuth = np.unwrap(np.arctan2(axis[1], axis[0]))
    tilt = np.degrees(np.arccos(axis[2]))
    energy = 0.5 * (rollout.qvel**2 @ INERTIA) + NUMBERS["m"] * GRAVITY * NUMBERS["l"] * axis[2]
    return {
        "precession": azimuth[-1] - azimuth[0],
        "tilt_deg": np.array([tilt.min(), tilt.max()]),
        "energy_change": energy[-1] / energy[0] - 1,
    }


@pytest.mark.parametrize("timestep", [1e-3, 1e-4])
@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicit", "implicitfast"])
def test_the_top_moves_as_in_mujoco(integrator: str, timestep: float) -> None:
    ours, theirs = _spin(integrator, timestep), NUMBERS["mujoco"][f"{integrator} {timestep:g}"]
    assert ours["precession"] == pytest.approx(theirs["precession"], rel=1e-5)
    assert ours["tilt_deg"] == pytest.approx(theirs["tilt_deg"], abs=1e-3)
    assert ours["energy_change"] == pytest.approx(theirs["energy_change"], rel=1e-3, abs=1e-10)


@pytest.mark.parametrize(
    ("timestep", "precession", "tilt", "energy"), [(1e-3, 0.01, 0.1, 1e-3), (1e-4, 1e-3, 0.05, 1e-4)]
)
def test_rk4_keeps_energy_and_precession(
    timestep: float, precession: float, tilt: float, energy: float
) -> None:
    ours = _spin("RK4", timestep)
    assert ours["precession"] == pytest.approx(NUMBERS["precession"], rel=precession)
    assert ours["tilt_deg"] == pytest.approx([NUMBERS["tilt_deg"]] * 2, abs=tilt)
    assert abs(ours["energy_change"]) < energy
