"""Models that an MJCF attaches: the same as MuJoCo's own reading of the files, and bounded like any text."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from revolute.contract.errors import ModelError
from revolute_engine import load_model

MAIN = """<mujoco model="team"><compiler meshdir="shapes"/>
  <asset><model name="leg" file="parts/leg.xml"/><mesh name="block" file="block.obj"/></asset>
  <worldbody><geom type="plane" size="0 0 1"/>
    <body name="trunk" pos="0 0 2"><freejoint/><geom type="mesh" mesh="block"/>
      <attach model="leg" body="thigh" prefix="left_"/>
      <frame pos="0 1 0"><attach model="leg" body="thigh" prefix="right_"/></frame></body>
  </worldbody></mujoco>"""
LEG = """<mujoco model="leg"><compiler meshdir="shapes" angle="degree"/><include file="motors.xml"/>
  <default><geom density="300"/></default>
  <asset><model name="foot" file="feet/foot.xml"/><mesh name="bone" file="block.obj"/></asset>
  <worldbody><body name="thigh" pos="0 0.3 -0.2"><joint name="hip" range="-30 60" limited="true"/>
    <geom type="mesh" mesh="bone"/><attach model="foot" body="foot" prefix="f_"/></body>
  </worldbody></mujoco>"""
FOOT = """<mujoco model="foot"><compiler angle="radian"/><asset><mesh file="block.obj"/></asset>
  <worldbody><body name="foot" pos="0 0 -0.4">
  <joint name="ankle" axis="0 1 0" range="-0.5 0.5" limited="true"/><geom size="0.05"/>
  <geom type="mesh" mesh="block"/></body></worldbody></mujoco>"""
MOTORS = '<mujocoinclude><actuator><motor name="pull" joint="hip" gear="7"/></actuator></mujocoinclude>'


def _block(size: float) -> str:
    corners = [(0, 0, 0), (size, 0, 0), (0, size, 0), (0, 0, size)]
    lines = [f"v {x} {y} {z}" for x, y, z in corners] + ["f 1 3 2", "f 1 2 4", "f 1 4 3", "f 2 3 4"]
    return "\n".join(lines)


FILES = {
    "parts/leg.xml": LEG,
    "parts/motors.xml": MOTORS,
    "parts/feet/foot.xml": FOOT,
    "shapes/block.obj": _block(0.3),
    "parts/shapes/block.obj": _block(0.2),
    "parts/feet/block.obj": _block(0.1),
}


@pytest.fixture
def team(tmp_path: Path) -> Path:
    """Return the path of a model that attaches two legs, which attach feet."""
    for name, text in {**FILES, "team.xml": MAIN}.items():
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return tmp_path / "team.xml"


def test_attached_models_are_those_that_mujoco_reads(team: Path) -> None:
    ours, theirs = load_model(team).mujoco_model, mujoco.MjModel.from_xml_path(str(team))
    assert ours.njnt == 5 and ours.nu == 2 and ours.nmesh == theirs.nmesh == 5
    for kind, count in (("body", ours.nbody), ("joint", ours.njnt), ("actuator", ours.nu)):
        names = [getattr(ours, kind)(index).name for index in range(count)]
        assert names == [getattr(theirs, kind)(index).name for index in range(count)]
    for field in (
        "body_pos",
        "body_quat",
        "body_mass",
        "body_inertia",
        "jnt_range",
        "geom_pos",
        "actuator_gear",
    ):
        assert np.array_equal(getattr(ours, field), getattr(theirs, field)), field


def test_the_files_may_be_given_as_bytes(team: Path) -> None:
    given = load_model(
        MAIN, assets={name: text.encode() for name, text in FILES.items()}, allow_files=False, name="team.xml"
    )
    assert given.id == load_model(team).id
    assert given.joint_names[1:] == ["left_hip", "left_f_ankle", "right_hip", "right_f_ankle"]
    # what is in an attached file makes another model
    other = {name: text.replace('gear="7"', 'gear="8"').encode() for name, text in FILES.items()}
    other["parts/feet/foot.xml"] = FOOT.replace("0.05", "0.06").encode()
    assert load_model(MAIN, assets=other, allow_files=False, name="team.xml").id != given.id


def _refusal(files: dict[str, str], main: str = MAIN) -> str:
    assets = {name: text.encode() for name, text in {**FILES, **files}.items()}
    with pytest.raises(ModelError) as caught:
        load_model(main, assets=assets, allow_files=False, name="team.xml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {
                "parts/feet/foot.xml": FOOT.replace(
                    "<worldbody>", '<asset><model file="../leg.xml"/></asset><worldbody>'
                )
            },
            "team.xml: model 'parts/leg.xml': model 'feet/foot.xml': model '../leg.xml': expected a model "
            "that does not attach itself, got one that does",
        ),
        (
            {"parts/leg.xml": "<robot name='r'/>"},
            "team.xml: model 'parts/leg.xml': expected <mujoco> as first element, got <robot>",
        ),
        (
            {
                "parts/feet/foot.xml": FOOT.replace(
                    "<geom", '<geom type="mesh" mesh="m"/><flexcomp name="x"/><geom'
                )
            },
            "team.xml: model 'parts/leg.xml': model 'feet/foot.xml': flexcomp 'x': not supported; only rigid "
            "bodies are simulated; remove it",
        ),
        (
            {"parts/leg.xml": LEG.replace("block.obj", "/etc/passwd.obj")},
            "team.xml: model 'parts/leg.xml': mesh '/etc/passwd.obj': expected its bytes in assets, got "
            "none; the file was not sent",
        ),
    ],
)
def test_faults_in_attached_files_name_the_file(files: dict[str, str], message: str) -> None:
    assert _refusal(files) == message


def test_a_file_that_is_not_there_is_named() -> None:
    main = MAIN.replace("parts/leg.xml", "/etc/hostname")
    assert _refusal({}, main) == (
        "team.xml: model '/etc/hostname': expected its bytes in assets, got none; the file was not sent"
    )


def test_models_that_multiply_are_refused() -> None:
    attach = "".join(f'<attach model="next" body="b" prefix="p{i}_"/>' for i in range(10))
    files = {
        f"{n}.xml": f'<mujoco><asset><model name="next" file="{n + 1}.xml"/></asset>'
        f'<worldbody><body name="b">{attach}</body></worldbody></mujoco>'
        for n in range(8)
    }
    files["8.xml"] = '<mujoco><worldbody><body name="b"><geom size="1"/></body></worldbody></mujoco>'
    main = files["0.xml"].replace("1.xml", "0.xml")
    assert "expected at most 100000 elements" in _refusal(files, main)


def test_long_chains_of_models_are_refused() -> None:
    files = {
        f"{n}.xml": f'<mujoco><asset><model name="next" file="{n + 1}.xml"/></asset></mujoco>'
        for n in range(99)
    }
    main = '<mujoco><asset><model name="next" file="0.xml"/></asset></mujoco>'
    assert "expected at most 32 models that attach each other" in _refusal(files, main)
