"""Warnings of a model's own start."""

import pytest

from revolute_engine import load_model

LEG = """<mujoco><compiler autolimits="true"/><worldbody><body name="thigh"><joint name="hip" range="-90 90"/>
  <geom size="0.1"/><body name="shank"><joint name="knee" range="-150 -50" {spring}/><geom size="0.1"/></body>
  </body></worldbody></mujoco>"""


def test_joints_beyond_their_limits_are_named() -> None:
    wanted = (
        r"the zero pose is beyond the limits of 1 joint: joint 'knee' at 0, range \[-2.61799, -0.872665\]; "
        "start from another qpos"
    )
    with pytest.warns(UserWarning, match=wanted):
        load_model(LEG.format(spring=""))
    assert load_model(LEG.format(spring=""), limits=False).warnings == []


def test_a_file_with_a_start_of_its_own_has_a_note_only() -> None:
    text = LEG.format(spring="").replace("</mujoco>", '<keyframe><key qpos="0 -1"/></keyframe></mujoco>')
    model = load_model(text)
    assert model.warnings == []
    assert any("the zero pose is beyond the limits of 1 joint" in note for note in model.notes)


def test_no_more_than_three_joints_are_named() -> None:
    bodies = "".join(
        f'<body pos="0 {i} 0"><joint name="j{i}" type="slide" axis="1 0 0" range="1 2"/>'
        '<geom size="0.1"/></body>'
        for i in range(5)
    )
    text = f"<mujoco><worldbody>{bodies}</worldbody></mujoco>"
    with pytest.warns(
        UserWarning, match="limits of 5 joints: joint 'j0' .*; joint 'j2' .*; and 2 more; start"
    ):
        load_model(text)


def test_a_first_step_that_is_not_finite_names_the_body() -> None:
    wanted = "body 'shank', joint 'knee': the first step from the zero pose at rest is not finite"
    with pytest.warns(UserWarning, match=wanted):
        load_model(LEG.format(spring='stiffness="1e308" springref="90"'), limits=False)
    assert load_model(LEG.format(spring='stiffness="1" springref="90"'), limits=False).warnings == []
