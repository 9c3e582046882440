"""Tensors of a URDF that MuJoCo's compiler refuses are simulated as they stand."""

import re

import numpy as np
import pytest

from revolute.contract.errors import ModelError
from revolute_engine import Engine, Model, check_gradient, load_model

AXES = {"x": "1 0 0", "y": "0 1 0", "z": "0 0 1"}


def _link(tensor: dict[str, float], axis: str = "z", rpy: str = "0 0 0", fixed: str = "") -> str:
    given = " ".join(f'{name}="{tensor.get(name, 0)}"' for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
    return (
        f'<robot name="r"><link name="base"/><link name="body"><inertial><origin xyz="0.1 0 0" rpy="{rpy}"/>'
        f'<mass value="2"/><inertia {given}/></inertial></link><joint name="j" type="continuous"><parent '
        f'link="base"/><child link="body"/><axis xyz="{AXES[axis]}"/></joint>{fixed}</robot>'
    )


def _inertia_about_the_joint(model: Model) -> float:
    """Return torque over acceleration, from one step from rest without gravity."""
    rollout = Engine(threads=1).rollout(model, [0.0], [0.0], [[1.0]], params={"gravity": np.zeros(3)})
    return model.timestep / float(rollout.qvel[1, 0])


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_moments_that_no_body_has_are_simulated_as_given(axis: str) -> None:
    tensor = {"ixx": 0.1, "iyy": 0.2, "izz": 0.9}
    odd = "moments of inertia that no body has (A + B < C) are simulated as given: links 'body'"
    with pytest.warns(UserWarning, match=re.escape(odd)):
        model = load_model(_link(tensor, axis))
    steiner = 0.0 if axis == "x" else 2 * 0.1**2
    assert _inertia_about_the_joint(model) == pytest.approx(tensor[f"i{axis}{axis}"] + steiner, rel=1e-12)
    assert odd in model.notes


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_turned_tensors_with_products_too(axis: str) -> None:
    tensor = {"ixx": 0.1, "iyy": 0.2, "izz": 0.9, "ixy": 0.02, "ixz": -0.05, "iyz": 0.03}
    angle = 0.7  # of the inertia's frame about z
    model = load_model(_link(tensor, axis, rpy=f"0 0 {angle}"))
    matrix = np.array(
        [
            [tensor["ixx"], tensor["ixy"], tensor["ixz"]],
            [tensor["ixy"], tensor["iyy"], tensor["iyz"]],
            [tensor["ixz"], tensor["iyz"], tensor["izz"]],
        ]
    )
    c, s = np.cos(angle), np.sin(angle)
    turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    about = dict(zip("xyz", np.diag(turn @ matrix @ turn.T), strict=True))[axis]
    steiner = 0.0 if axis == "x" else 2 * 0.1**2
    assert _inertia_about_the_joint(model) == pytest.approx(about + steiner, rel=1e-12)


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_impossible_tensors_about_the_origin_of_a_link_are_simulated_as_given(axis: str) -> None:
    # the compiler takes the mass matrix of such links from their shape: axes turned, centre at the origin
    tensor = {"ixx": 0.1, "iyy": 0.2, "izz": 0.9, "ixz": 0.05}
    with pytest.warns(UserWarning, match="links 'body'"):
        model = load_model(_link(tensor, axis).replace('xyz="0.1 0 0"', 'xyz="0 0 0"'))
    assert _inertia_about_the_joint(model) == pytest.approx(tensor[f"i{axis}{axis}"], rel=1e-12)


def test_zeros_that_rounding_made_negative_are_zeros() -> None:
    rod = {"ixx": -1e-22, "iyy": 0.2, "izz": 0.2}
    model = load_model(_link(rod))
    assert model.arrays["body_inertia"].min() == 0
    assert _inertia_about_the_joint(model) == pytest.approx(0.2 + 2 * 0.1**2, rel=1e-12)
    assert not any("no body has" in note for note in model.notes)


def test_truly_negative_moments_are_refused() -> None:
    with pytest.raises(ModelError, match=r"link 'body': expected positive moments of inertia, got .* -0\.1"):
        load_model(_link({"ixx": -0.1, "iyy": 0.2, "izz": 0.2}))


def test_a_fixed_link_only_adds_to_the_one_that_carries_it() -> None:
    antenna = (
        '<link name="antenna"><inertial><mass value="0.001"/><inertia ixx="0.02" ixy="0.06" ixz="0" '
        'iyy="0.03" iyz="0" izz="0.04"/></inertial></link><joint name="f" type="fixed"><parent link="body"/>'
        '<child link="antenna"/></joint>'
    )
    model = load_model(_link({"ixx": 0.5, "iyy": 0.5, "izz": 0.5}, fixed=antenna))
    assert _inertia_about_the_joint(model) == pytest.approx(0.5 + 2 * 0.1**2 + 0.04, rel=1e-12)
    assert any("links 'antenna'" in note for note in model.notes)
    report = check_gradient(Engine(threads=1), model, steps=5, wrt=["body_inertia", "body_mass"])
    assert [check.verdict for check in report.inputs] == ["right", "right"]


def test_merged_links_and_mjcf_are_judged_by_mujoco() -> None:
    tensor = {"ixx": 0.1, "iyy": 0.2, "izz": 0.9}
    with pytest.raises(ModelError, match="inertia must satisfy A \\+ B >= C"):
        load_model(_link(tensor), fuse_fixed=True)
    with pytest.raises(ModelError, match="inertia must satisfy A \\+ B >= C"):
        load_model(
            '<mujoco><worldbody><body><joint/><inertial pos="0 0 0" mass="1" diaginertia="0.1 0.2 0.9"/>'
            "</body></worldbody></mujoco>"
        )
