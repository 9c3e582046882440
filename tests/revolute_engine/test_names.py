"""Elements without a name have unique names that a person can read."""

from revolute_engine import load_model

MODEL = """<mujoco><worldbody>
  <body><joint/><joint type="slide" axis="0 1 0"/><geom size="0.1"/>
    <body name="body_2"><joint name="body_1/0"/><geom size="0.1"/><geom size="0.1"/>
      <body><joint name="hip"/><geom size="0.1"/></body></body></body>
  <body pos="5 0 0"><freejoint/><geom size="0.1"/></body>
  </worldbody><actuator><motor joint="hip"/><motor joint="hip"/><motor name="hip_3" joint="hip"/>
  <motor joint="hip"/><motor joint="body_1/0"/></actuator></mujoco>"""


def test_names_are_unique_and_those_given_stay() -> None:
    model = load_model(MODEL)
    assert model.body_names == ["world", "body_1", "body_2", "body_3", "body_4"]
    assert model.joint_names == ["body_1/0_2", "body_1/1", "body_1/0", "hip", "body_4/0"]
    assert model.geom_names == ["body_1/0", "body_2/0", "body_2/1", "body_3/0", "body_4/0"]
    assert model.actuator_names == ["hip", "hip_2", "hip_3", "hip_4", "body_1/0"]
    assert model.dof_names[:4] == model.joint_names[:4]
    assert model.dof_names[4:] == [f"body_4/0.{axis}" for axis in ("x", "y", "z", "rx", "ry", "rz")]


def test_a_name_that_stands_for_none_may_be_taken() -> None:
    text = (
        '<mujoco><worldbody><body><joint/><geom size="0.1"/></body><body name="body_1" pos="3 0 0"><joint/>'
        '<geom size="0.1"/></body></worldbody></mujoco>'
    )
    model = load_model(text)
    assert model.body_names == ["world", "body_1_2", "body_1"]
    assert model.joint_names == ["body_1_2/0", "body_1/0"]


def test_actuators_without_a_name_are_called_by_what_they_drive() -> None:
    text = (
        '<mujoco><worldbody><body><joint name="j"/><geom size="0.1"/><site name="s"/></body>'
        '</worldbody><tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>'
        '<actuator><motor tendon="t"/><motor site="s"/><motor joint="j"/><motor tendon="t"/></actuator>'
        "</mujoco>"
    )
    assert load_model(text).actuator_names == ["t", "s", "j", "t_2"]
