"""Derivatives of contacts between hulls, and hulls and cylinders, that overlap deeply."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from revolute_engine import Engine, load_model

ENGINE = Engine(threads=1)

BEYOND = [1946, 2259, 3672, 3781, 7800]
"""Pairs whose least overlap is along the normal of a small face, and whose lowest vertex lies beyond its
sides."""


def _hull(random: np.random.Generator) -> np.ndarray:
    """Return points of a rock between needle and plate."""
    count = int(np.exp(random.uniform(np.log(6), np.log(150))))
    points = random.normal(size=(count, 3))
    if random.random() < 0.7:
        points /= np.linalg.norm(points, axis=1, keepdims=True)
    return points * np.exp(random.uniform(np.log(0.004), np.log(0.1), size=3))


def _words(values: np.ndarray) -> str:
    return " ".join(f"{value:.4f}" for value in values.ravel())


BEYOND_A_CYLINDER = 654
"""The same with a cylinder's lowest point."""


def _overlapping_pair(seed: int, cylinder: bool) -> str:
    random = np.random.default_rng(seed)
    offset = np.exp(random.uniform(np.log(1e-3), np.log(0.05)))
    hulls = [_hull(random), _hull(random)]
    quat = random.normal(size=4)
    size = np.exp(random.uniform(np.log(0.004), np.log(0.1), size=2)) if cylinder else ()
    second = f'type="cylinder" size="{_words(np.array(size))}"' if cylinder else 'type="mesh" mesh="b"'
    meshes = "".join(
        f'<mesh name="{name}" vertex="{_words(hull)}"/>' for name, hull in zip("ab", hulls, strict=True)
    )
    return (
        f'<mujoco><option timestep="0.002" gravity="0 0 0"/><asset>{meshes}</asset><worldbody>'
        f'<geom type="mesh" mesh="a"/><body pos="{_words(random.normal(size=3) * offset)}" '
        f'quat="{_words(quat)}"><freejoint/><geom {second}/></body></worldbody></mujoco>'
    )


@pytest.mark.parametrize("contact_model", ["mujoco", "hard"])
@pytest.mark.parametrize(
    ("seed", "cylinder"),
    [*((seed, False) for seed in [*BEYOND, *range(9)]), (BEYOND_A_CYLINDER, True)],
)
def test_derivatives_against_differences(seed: int, cylinder: bool, contact_model: str) -> None:
    model = load_model(_overlapping_pair(seed, cylinder), contact_model=contact_model, warn=False)
    qpos, qvel = np.array(model.qpos0), np.zeros(6)

    def end(direction: np.ndarray) -> np.ndarray:
        moved = qpos.copy()
        mujoco.mj_integratePos(model.mujoco_model, moved, direction, 1)
        return ENGINE.rollout(model, moved, qvel, np.zeros((1, 0))).qvel[1]

    # other vertices take over as near as 1e-7
    step = 1e-8
    found = np.stack([(end(step * d) - end(-step * d)) / (2 * step) for d in np.eye(6)], axis=1)
    assert np.abs(found).max() > 1  # they do touch
    by_qpos = ENGINE.jacobian(model, qpos, qvel, np.zeros(0)).A.reshape(12, 12)[6:, :6]
    assert np.abs(by_qpos - found).max() < 1e-6 * np.abs(found).max()
