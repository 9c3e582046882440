"""Random models of mixed parts, as MJCF."""

from __future__ import annotations

import numpy as np


def random_model(seed: int, ties: bool = True) -> str:
    """Return MJCF of one to three trees with random joints, shapes, springs, limits, actuators and ties."""
    random = np.random.default_rng(seed)
    joints: list[str] = []
    trees = [_body(random, joints, True, int(random.integers(1, 5))) for _ in range(random.integers(1, 4))]
    motors = [
        f'<general joint="{name}" gear="{random.uniform(0.5, 2):.3f}" biastype="affine" '
        f'gainprm="{random.uniform(0.5, 2):.3f}" '
        f'biasprm="0 {-random.uniform(0, 3):.3f} {-random.uniform(0, 0.3):.3f}"/>'
        for name in joints
        if random.random() < 0.6
    ]
    equality = ""
    if len(joints) > 1 and random.random() < 0.4 and ties:
        one, other = random.choice(joints, 2, replace=False)
        equality = f'<joint joint1="{one}" joint2="{other}" polycoef="0 0.7"/>'
    return f"""<mujoco><option timestep="0.002"/><worldbody>
        <geom type="plane" size="0 0 1" pos="0 0 -1.5"/>{"".join(trees)}</worldbody>
        <actuator>{"".join(motors)}</actuator><equality>{equality}</equality></mujoco>"""


def _body(random: np.random.Generator, joints: list[str], root: bool, depth: int) -> str:
    """Return a body with its joints and shape, and those below it."""
    place = random.normal(size=3) * (0.5 if root else 0.15)
    inner = _joints(random, joints, root) + _geom(random)
    for _ in range(random.integers(0, 3) if depth else 0):
        inner += _body(random, joints, False, depth - 1)
    return f'<body pos="{_text(place)}" quat="{_text(random.normal(size=4))}">{inner}</body>'


def _joints(random: np.random.Generator, joints: list[str], root: bool) -> str:
    if root and random.random() < 0.4:
        return "<freejoint/>"
    if random.random() < 0.2:
        pos = _text(0.1 * random.normal(size=3))
        return f'<joint type="ball" damping="{random.uniform(0, 0.1):.3f}" pos="{pos}"/>'
    text = ""
    for _ in range(random.integers(1, 4)):
        joints.append(f"j{len(joints)}")
        low, high = random.uniform(5, 60, size=2)
        bound = f'range="{-low:.1f} {high:.1f}"' if random.random() < 0.5 else ""
        kind = "slide" if random.random() < 0.3 else "hinge"
        if kind == "slide" and bound:
            bound = 'range="-0.2 0.3"'
        text += (
            f'<joint name="{joints[-1]}" type="{kind}" axis="{_text(random.normal(size=3))}" '
            f'pos="{_text(0.1 * random.normal(size=3))}" damping="{random.uniform(0, 0.2):.3f}" {bound} '
            f'armature="{random.uniform(0, 0.05):.3f}" stiffness="{random.uniform(0, 2):.3f}" '
            f'frictionloss="{random.choice([0, 0.02])}"/>'
        )
    return text


def _geom(random: np.random.Generator) -> str:
    kind = str(random.choice(["sphere", "capsule", "box", "cylinder", "ellipsoid"]))
    size = _text(random.uniform(0.03, 0.12, size=3))
    return f'<geom type="{kind}" size="{size}" pos="{_text(0.1 * random.normal(size=3))}" density="800"/>'


def _text(values: np.ndarray) -> str:
    return " ".join(f"{value:.4f}" for value in values)
