"""What the engine does not simulate is refused by name; what it does in its own way is noted."""

import re

import mujoco
import numpy as np
import pytest

from revolute.contract.errors import ModelError
from revolute_engine import Engine, load_model

SOFT = (
    "contacts, limits and dry friction are solved by projected Gauss-Seidel on velocities, "
    "not by MuJoCo's soft constraints"
)
RANGE = "0.75 1.05 -1 200 0.5 1.6 1.5 1.3 1.2"
MUSCLE = 'lengthrange="0 1"'
_MUJOCO = 'use contact_model="mujoco"'


def _mjcf(joint: str = "", geom: str = "", body: str = "", after: str = "", before: str = "") -> str:
    return (
        f'<mujoco>{before}<worldbody><geom name="floor" type="plane" size="0 0 1"/>'
        f'<body name="b" pos="0 0 3" {body}><joint name="j" {joint}/><geom name="g" size="1" '
        f"{geom}/></body></worldbody>"
        f"{after}</mujoco>"
    )


def _actuator(text: str) -> str:
    return _mjcf(after=f"<actuator>{text}</actuator>")


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        *(
            (
                _mjcf(
                    after=f'<tendon><fixed name="t" {attribute}><joint joint="j" coef="1"/></fixed></tendon>'
                ),
                f"tendon 't': a tendon with a {what} is not supported; {advice}",
            )
            for attribute, what, advice in (
                ('limited="true" range="-1 1"', 'limit in contact_model="hard"', _MUJOCO),
                ('frictionloss="1"', 'friction loss in contact_model="hard"', _MUJOCO),
                ('stiffness="1 2"', "nonlinear spring", "set it to 0"),
                ('damping="1 2"', "nonlinear damping", "set it to 0"),
            )
        ),
        (
            _mjcf(after='<tendon><fixed name="t" armature="1"><joint joint="j" coef="1"/></fixed></tendon>'),
            f"tendon 't': armature of a tendon in contact_model=\"hard\" is not supported; {_MUJOCO}",
        ),
        (
            _mjcf(
                before='<option density="1.2" integrator="implicitfast"/>',
            ),
            'option: a medium with the integrator implicitfast in contact_model="hard" is not supported; '
            "use the integrator Euler",
        ),
        (
            _mjcf(before='<option><flag override="enable"/></option>'),
            "flag 'override': overriding contact parameters is not supported; set friction on the geoms",
        ),
        (_mjcf(before='<option timestep="0"/>'), "option 'timestep': expected seconds > 0, got 0"),
        (
            _mjcf('stiffness="1 2"'),
            "joint 'j': a nonlinear spring is not supported; give one stiffness",
        ),
        (
            _mjcf('damping="1 2"'),
            "joint 'j': nonlinear damping is not supported; give one damping coefficient",
        ),
        pytest.param(
            _mjcf('stiffness="1" springyield="1"'),
            "joint 'j': a plastic spring (springyield) is not supported; set it to 0",
            marks=pytest.mark.skipif(
                not hasattr(mujoco.MjModel, "jnt_springyield"), reason="MuJoCo 3 does not know springyield"
            ),
        ),
        (
            _mjcf('type="free" stiffness="1"'),
            "joint 'j': stiffness of a free joint is not supported; set it to 0",
        ),
        (_mjcf(geom='adhesion="1"'), "geom 'g': adhesion is not supported; set it to 0"),
        (
            _mjcf(geom='surfacevel="1 0 0 0 0 0"'),
            "geom 'g': a moving surface (surfacevel) is not supported; set it to 0",
        ),
        (
            _mjcf(after='<contact><pair name="p" geom1="floor" geom2="g" adhesion="1"/></contact>'),
            "pair 'p': adhesion is not supported; set it to 0",
        ),
        (
            _actuator('<motor name="a" joint="j" delay="0.1" nsample="99"/>'),
            "actuator 'a': an actuator delay is not supported; set it to 0",
        ),
        (
            _actuator('<motor name="a" joint="j" armature="1"/>'),
            "actuator 'a': armature of an actuator is not supported; give the joint armature",
        ),
        (
            _actuator('<motor name="a" joint="j" damping="1"/>'),
            "actuator 'a': damping of an actuator is not supported; give the joint damping",
        ),
        (
            _actuator('<adhesion name="a" body="b" ctrlrange="0 1"/>'),
            f"actuator 'a': adhesion in contact_model=\"hard\" is not supported; {_MUJOCO}",
        ),
        (
            _mjcf(
                before='<option actuatorgroupdisable="1"/>',
                after='<actuator><intvelocity name="a" group="1" joint="j" actrange="-1 1"/></actuator>',
            ),
            "actuator 'a': activation of an actuator that is disabled is not supported; remove the actuator",
        ),
        (
            _actuator('<pid name="a" joint="j"/>'),
            "actuator 'a': an actuator of several controls is not supported; use one actuator per control",
        ),
        (
            _mjcf(after='<equality><weld name="e" body1="b" torquescale="0"/></equality>'),
            "equality 'e': a weld that leaves rotation free (torquescale 0) is not supported; use connect",
        ),
        (
            _mjcf(after='<contact><pair name="p" geom1="g" geom2="floor" friction="1 2"/></contact>'),
            "pair 'p' of geom 'floor' and geom 'g': friction that differs by direction is not supported; "
            "give two equal numbers, not 1 and 2",
        ),
        (
            _mjcf(geom='friction="inf 0 0"'),
            "geom 'g': expected finite numbers, got [inf  0.  0.] in friction",
        ),
    ],
)
def test_what_is_not_simulated_is_refused_by_name(text: str, refusal: str) -> None:
    # friction by direction needs soft constraints
    refusing = ("hard",) if "differs by direction" in refusal or "hard" in refusal else ("hard", "mujoco")
    for contact_model in refusing:
        with pytest.raises(ModelError) as caught:
            load_model(text, name="a.xml", contact_model=contact_model)
        assert str(caught.value) == f"a.xml: {refusal}"


def test_an_unnamed_shape_is_named_by_its_body() -> None:
    text = _mjcf(geom='friction="inf 0 0"').replace('name="g"', "")
    with pytest.raises(ModelError, match="geom 1 of body 'b': expected finite numbers"):
        load_model(text)


@pytest.mark.parametrize(
    "text",
    [
        _mjcf(geom='type="cylinder" size="1 1" contype="0" conaffinity="0"').replace('size="1"', ""),
        *(_mjcf(geom=f'condim="{condim}"') for condim in (1, 3, 4, 6)),
        _mjcf(after='<equality><joint name="e" joint1="j" active="false"/></equality>'),
        _actuator('<damper name="a" joint="j" kv="1" ctrlrange="0 1"/>'),
        _mjcf(geom='adhesion="1" contype="0" conaffinity="0"'),
        _mjcf(geom='fluidshape="ellipsoid"', before='<option wind="1 2 3"/>'),
        _actuator('<intvelocity name="a" joint="j" kp="2" actrange="-1 1"/>'),
        _actuator(f'<muscle name="a" joint="j" {MUSCLE}/>'),
        _actuator(f'<general name="a" joint="j" gaintype="muscle" gainprm="{RANGE}" {MUSCLE}/>'),
        _actuator(
            '<general joint="j" gaintype="affine" gainprm="2 0 0" biastype="affine" biasprm="0 -2 -1"/>'
        ),
        _actuator(
            '<position joint="j" kp="2" dampratio="1"/><velocity joint="j" kv="2"/><motor jointinparent="j"/>'
        ),
    ],
)
def test_what_changes_nothing_is_not_refused(text: str) -> None:
    assert load_model(text).nv == 1


def test_without_contact_shapes_do_not_matter() -> None:
    text = _mjcf(geom='type="ellipsoid" size="1 1 2" condim="6"').replace('size="1"', "")
    model = load_model(text, contact=False)
    assert model.arrays["pair_geom1"].size == 0
    assert model.arrays["contact"] == 0


TENDON = '<tendon><fixed name="t" {}><joint joint="j" coef="2"/></fixed></tendon>'


def test_limits_and_friction_of_tendons_that_are_switched_off_are_not_refused() -> None:
    text = _mjcf(after=TENDON.format('limited="true" range="-1 1" frictionloss="1"'))
    assert load_model(text, limits=False, dry_friction=False, contact_model="hard").nv == 1
    with pytest.raises(ModelError, match="a tendon with a limit"):
        load_model(text, dry_friction=False, contact_model="hard")
    with pytest.raises(ModelError, match="a tendon with a friction loss"):
        load_model(text, limits=False, contact_model="hard")
    assert load_model(text, contact_model="mujoco").nv == 1


def test_a_mocap_body_that_nobody_moves_stays_where_the_file_has_it() -> None:
    """What is welded to it hangs there, and what falls on it rests there."""
    text = """<mujoco><option timestep="0.002"/><worldbody>
      <body name="hand" mocap="true" pos="0 0 2"/>
      <body name="table" mocap="true" pos="1 0 0.5"><geom type="box" size="0.3 0.3 0.1"/></body>
      <body name="held" pos="0 0 2"><freejoint/><geom size="0.05"/></body>
      <body name="ball" pos="1 0 0.75"><freejoint/><geom size="0.1"/></body>
    </worldbody><equality><weld body1="hand" body2="held"/></equality></mujoco>"""
    model = load_model(text)
    assert not model.notes
    rollout = Engine(threads=1).rollout(model, model.qpos0, model.qvel0, np.zeros((500, 0)))
    assert rollout.qpos[-1, 2] == pytest.approx(2, abs=1e-3)
    assert rollout.qpos[-1, 9] == pytest.approx(0.7, abs=1e-3)


def test_numerical_methods_are_noted_once() -> None:
    text = _mjcf(
        'solreflimit="0.01 1" margin="0.1"',
        'gap="0.1" solimp="0.8 0.9 0.01"',
        before='<option integrator="RK4" solver="CG" cone="elliptic" impratio="10" noslip_iterations="3">'
        '<flag warmstart="disable" multiccd="disable"/></option>',
        after='<sensor><jointpos joint="j"/><user dim="1"/></sensor>',
    )
    assert load_model(text, contact_model="hard").notes == [
        "integrator RK4: the engine steps by semi-implicit Euler (implicit joint damping)",
        f"{SOFT}; not used: solver, cone, noslip_iterations, impratio, jnt_solref, geom_solimp, "
        "jnt_margin, geom_gap, "
        "warmstart, multiccd",
        "sensors that are not computed (1), first 'sensor_1' of type user; leave it out",
    ]
    assert load_model(_mjcf(), contact_model="hard").notes == [SOFT]
    assert load_model(text).notes == [
        "constraints are solved to convergence from a cold start; not used: solver, noslip_iterations",
        "sensors that are not computed (1), first 'sensor_1' of type user; leave it out",
    ]
    assert load_model(_mjcf()).notes == []


@pytest.mark.parametrize(
    ("child", "is_noted"),
    [
        ("", True),
        ('<body><geom size="0.1"/></body>', True),
        ('<body><joint/><geom size="0.1"/></body>', False),
    ],
)
def test_implicitfast_without_gyroscopic_derivatives_is_noted_where_mujoco_has_them(
    child: str, is_noted: bool
) -> None:
    text = (
        '<mujoco><option integrator="implicitfast"/><worldbody><body><freejoint/><geom type="box" '
        f'size="0.1 0.2 0.3" contype="0" conaffinity="0"/>{child}</body></worldbody></mujoco>'
    )
    model = load_model(text, contact=False, contact_model="hard")
    spin = np.array([0.0, 0.0, 0.0, 3.0, 2.0, 1.0])
    note = "integrator IMPLICITFAST: gyroscopic derivatives of single free bodies are left out"
    assert (note in model.notes) == is_noted
    assert note not in load_model(text.replace("implicitfast", "Euler"), contact_model="hard").notes

    data = mujoco.MjData(mujoco.MjModel.from_xml_string(text))
    data.qvel[:6] = spin
    qvel = data.qvel.copy()
    mujoco.mj_step(data.model, data)
    ours, soft = (
        Engine(threads=1).rollout(each, model.qpos0, qvel, np.zeros((1, 0))).qvel[1]
        for each in (model, load_model(text, contact=False))
    )
    assert (np.abs(ours - data.qvel).max() > 1e-6) == is_noted
    assert np.abs(soft - data.qvel).max() < 1e-12 and note not in load_model(text).notes


@pytest.mark.parametrize(
    ("joint", "geom", "complaint"),
    [
        ('armature="-100"', "", "joint 'j': expected armature >= 0, got -100"),
        ('damping="-10"', "", "joint 'j': expected damping >= 0, got -10"),
        ('frictionloss="-1"', "", "joint 'j': expected frictionloss >= 0, got -1"),
        ('stiffness="-10"', "", "joint 'j': expected stiffness >= 0, got -10"),
        ("", 'friction="-2 0 0"', "geom 'g': expected friction >= 0, got -2"),
    ],
)
def test_what_a_parameter_refuses_a_file_may_not_say(joint: str, geom: str, complaint: str) -> None:
    with pytest.raises(ModelError, match=re.escape(complaint)):
        load_model(_mjcf(joint=joint, geom=geom))


def test_a_spring_that_rests_at_infinity_is_refused() -> None:
    with pytest.raises(ModelError, match="expected finite numbers, got nan or inf in qpos_spring"):
        load_model(_mjcf(joint='stiffness="1" springref="inf"'))
