"""Links of a URDF without mass, or with mass in a point: they move as the file says, and a note says so."""

from __future__ import annotations

import numpy as np
import pytest

from revolute_engine import Engine, load_model

INERTIA = '<inertia ixx="{0}" iyy="{0}" izz="{0}" ixy="0" ixz="0" iyz="0"/>'


def _link(name: str, mass: float, inertia: float) -> str:
    inertial = f'<origin xyz="0 0 -0.5"/><mass value="{mass}"/>{INERTIA.format(inertia)}'
    return f'<link name="{name}"><inertial>{inertial}</inertial></link>'


def _joint(parent: str, child: str, kind: str, axis: str) -> str:
    return (
        f'<joint name="{child}_joint" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<axis xyz="{axis}"/><limit lower="-1" upper="1" effort="100" velocity="1"/></joint>'
    )


def test_a_point_mass_swings_as_a_point() -> None:
    joint = _joint("base", "bob", "continuous", "0 1 0")
    model = load_model(f'<robot name="bob"><link name="base"/>{_link("bob", 2, 0)}{joint}</robot>')
    assert model.body_mass.tolist() == [0, 0, 2]
    assert "links whose mass is in a point, as the file says: bob" in model.notes
    rollout = Engine(threads=1).rollout(model, [0.3], [0.0], np.zeros((1, 1)))
    fall = -9.81 / 0.5 * np.sin(0.3)
    assert rollout.qvel[1, 0] / model.timestep == pytest.approx(fall, rel=1e-12)


def test_links_without_mass_are_named_up_to_three() -> None:
    chain = ["base", "along_x", "along_y", "along_z", "turned", "body"]
    links = "".join(f'<link name="{name}"/>' for name in chain[:-1]) + _link("body", 1, 0.1)
    kinds = [("prismatic", "1 0 0"), ("prismatic", "0 1 0"), ("prismatic", "0 0 1")]
    kinds += [("revolute", "0 0 1"), ("revolute", "0 1 0")]
    joints = "".join(
        _joint(parent, child, *kind) for parent, child, kind in zip(chain, chain[1:], kinds, strict=False)
    )
    model = load_model(f'<robot name="crane">{links}{joints}</robot>')
    assert (
        "links without mass that move, as the file says: along_x, along_y, along_z and 1 more" in model.notes
    )
