"""Case T02: a box pushed off centre turns, and turns alike at every heading."""

import numpy as np
import pytest

from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected, with_option

NUMBERS = expected("T02")


def _yaw(heading: int, offset: float, **options: object) -> float:
    """Return by how many degrees the box has turned after 2 s."""
    text = case_file("T02", f"push_h{heading:02d}_o{round(1000 * offset):02d}.xml").read_text()
    model = load_model(with_option(text, impratio=NUMBERS["mujoco"]["impratio"]), **options)
    ctrl = np.linspace(0, 0.2, 2000)[:, None]
    rollout = Engine(threads=1).rollout(model, model.qpos0, model.qvel0, ctrl)
    w, x, y, z = rollout.qpos[[0, -1], -4:].T
    yaw = np.degrees(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))
    return yaw[1] - yaw[0]


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("heading", range(3))
@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_the_box_turns_as_in_mujoco(cone: str, heading: int, number: int) -> None:
    options = {"contact_model": "mujoco", "cone": cone}
    yaw = _yaw(NUMBERS["headings_deg"][heading], NUMBERS["offsets"][number], **options)
    assert yaw == pytest.approx(
        NUMBERS["mujoco"][cone][heading][number], abs=0.3
    )  # of 34; the solver's tolerance moves it by 0.2


@pytest.mark.parametrize("number", range(3))
def test_the_hard_model_turns_the_box_by_coulombs_law(number: int) -> None:
    yaws = [
        _yaw(heading, NUMBERS["offsets"][number], contact_model="hard") for heading in NUMBERS["headings_deg"]
    ]
    assert max(yaws) - min(yaws) < 1e-3
    assert yaws[0] == pytest.approx(NUMBERS["coulomb"]["yaw_deg"][number], abs=0.5)
