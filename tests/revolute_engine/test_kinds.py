"""One table says what becomes of each kind of element, and holds all that MuJoCo has."""

import mujoco
import pytest

from revolute.contract.errors import ModelError
from revolute_engine import load_model
from revolute_engine._kinds import KINDS, NOTED, SIMULATED, check_kinds, kind_of, members
from revolute_engine._support import check_support

TETRAHEDRON = (
    '<asset><mesh name="m" vertex="0 0 0  1 0 0  0 1 0  0 0 1" face="0 2 1  0 1 3  0 3 2  1 2 3"/></asset>'
)
MODEL = f"""<mujoco>{TETRAHEDRON}<worldbody><body name="b"><joint name="j"/><geom name="g" size="0.1"/>
  <geom name="odd" type="mesh" mesh="m"/></body></worldbody>
  <actuator><motor name="a" joint="j"/></actuator>
  <equality><joint name="e" joint1="j"/></equality>
  <sensor><jointpos name="s" joint="j"/></sensor>
  <tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon></mujoco>"""
TYPES = {
    "mjtGeom": ("geom_type", 1, "geom 'odd'"),
    "mjtJoint": ("jnt_type", 0, "joint 'j'"),
    "mjtTrn": ("actuator_trntype", 0, "actuator 'a'"),
    "mjtDyn": ("actuator_dyntype", 0, "actuator 'a'"),
    "mjtGain": ("actuator_gaintype", 0, "actuator 'a'"),
    "mjtBias": ("actuator_biastype", 0, "actuator 'a'"),
    "mjtEq": ("eq_type", 0, "equality 'e'"),
    "mjtSensor": ("sensor_type", 0, "sensor 's'"),
    "mjtWrap": ("wrap_type", 0, "tendon wrap 0"),
}
"""Where a model keeps the types of each enumeration, an element, and how messages call it."""


@pytest.mark.parametrize("enumeration", list(KINDS))
def test_the_table_is_total(enumeration: str) -> None:
    assert set(members(enumeration).values()) <= set(KINDS[enumeration])
    for kind in KINDS[enumeration].values():
        assert bool(kind.what) == bool(kind.advice)
        assert kind.what or kind is SIMULATED or kind is NOTED


def test_every_enumeration_of_elements_is_in_the_table() -> None:
    assert set(TYPES) == set(KINDS)


@pytest.mark.parametrize("enumeration", list(KINDS))
def test_every_kind_that_is_not_simulated_or_noted_is_refused_by_name(enumeration: str) -> None:
    field, index, element = TYPES[enumeration]
    refused = [number for number in members(enumeration) if kind_of(enumeration, number).what]
    for number in [*refused, 99]:
        model = mujoco.MjModel.from_xml_string(MODEL)
        getattr(model, field)[index] = number
        with pytest.raises(ModelError, match=f"m.xml: {element}: .* is not supported; "):
            check_support(model, "m.xml", limits=True, dry_friction=True, contact_model="hard")


def test_a_kind_that_the_table_does_not_hold_is_refused() -> None:
    model = mujoco.MjModel.from_xml_string(MODEL)
    with pytest.raises(ModelError, match="geom 'odd': geom type 42 is not supported; use another type"):
        check_kinds(model, "m.xml", "geom", "mjtGeom", [int(mujoco.mjtGeom.mjGEOM_BOX), 42])


@pytest.mark.parametrize("touching", ["", 'contype="0" conaffinity="0"'])
def test_signed_distance_fields_are_refused(touching: str) -> None:
    text = (
        f'<mujoco>{TETRAHEDRON}<worldbody><body><freejoint/><geom size="0.1"/>'
        f'<geom name="odd" type="sdf" mesh="m" {touching}/></body></worldbody></mujoco>'
    )
    with pytest.raises(ModelError) as caught:
        load_model(text, name="m.xml")
    assert str(caught.value) == (
        "m.xml: geom 'odd': a signed distance field (type sdf) is not supported; use a plane, "
        "hfield, sphere, capsule, ellipsoid, cylinder, box or mesh"
    )
