"""Robots with more rows in contact than there is room for from the start, and with more room than rows."""

import subprocess
import sys

import numpy as np

from revolute_engine import Engine, load_model

SPHERES = 100  # 300 rows in one island; there is room for 256 from the start


def _brush(spheres: int) -> str:
    geoms = "".join(f'<geom size="0.02" pos="{0.1 * (i % 10)} {0.1 * (i // 10)} 0"/>' for i in range(spheres))
    return f"""<mujoco><worldbody><geom type="plane" size="9 9 1"/>
      <body pos="0 0 0.0199"><freejoint/><inertial mass="1" pos="0.45 0.45 0" diaginertia="0.1 0.1 0.2"/>
      {geoms}</body></worldbody></mujoco>"""


def test_hundreds_of_rows_touch_at_once() -> None:
    model, engine = load_model(_brush(SPHERES)), Engine(threads=1)
    random = np.random.default_rng(0)
    qvel = 0.1 * random.normal(size=(9, model.nv))
    rollout = engine.rollout(model, model.qpos0, qvel, np.zeros((9, 5, 0)))
    assert np.abs(rollout.final_qvel[:, 2]).max() < 0.05  # held by the ground
    qpos_bar, qvel_bar = random.normal(size=rollout.qpos.shape), random.normal(size=rollout.qvel.shape)
    gradient = engine.backward(model, rollout, qpos_bar * 0, qvel_bar, wrt=["qvel"])
    tangent = random.normal(size=qvel.shape)
    pushed = engine.jvp(model, rollout, qvel_tan=tangent)
    expected = (pushed.qvel * qvel_bar).sum(axis=(1, 2))
    assert np.allclose((gradient["qvel"] * tangent).sum(axis=1), expected, rtol=1e-9, atol=1e-12)
    alone = engine.rollout(model, model.qpos0, qvel[4], np.zeros((5, 0)))
    assert np.array_equal(alone.qpos, rollout.qpos[4])


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
import numpy as np
from revolute_engine import Engine, load_model
model = load_model(sys.stdin.read())
rollout = Engine(threads=2).rollout(model, model.qpos0, model.qvel0, np.zeros((16, 2, 0)))
Engine(threads=2).backward(model, rollout, np.ones_like(rollout.qpos))
"""


def test_room_for_thousands_of_pairs_takes_little_address_space() -> None:
    bodies = "".join(
        f'<body pos="{i} 0 1"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>' for i in range(60)
    )
    text = f"<mujoco><worldbody>{bodies}</worldbody></mujoco>"  # 1770 pairs
    subprocess.run([sys.executable, "-c", LIMITED], input=text, text=True, check=True)
