"""`check_gradient` itself: it passes right gradients, finds wrong ones by name, and explains what differences
cannot tell.
"""

import json
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from revolute.contract.controllers import MLP, Control, Feedback
from revolute.contract.errors import ArgumentError, DivergedError
from revolute.contract.gradient_report import GradientReport
from revolute_engine import (
    Cancelled,
    CancelToken,
    Engine,
    Gradient,
    Jvp,
    Model,
    Rollout,
    check_gradient,
    load_model,
)
from revolute_engine.gradient_check import held_bytes
from revolute_engine.parameters import PARAMETERS
from tests.robots import THREE_TREES

KNEE = """<mujoco><option timestep="0.002" gravity="0 0 0"/><worldbody>
  <body name="shin"><joint name="knee" axis="0 1 0" range="0 60"/>
  <inertial pos="0 0 -0.3" mass="1" diaginertia="0.01 0.01 0.01"/></body>
</worldbody><actuator><motor name="motor" joint="knee"/></actuator></mujoco>"""

INVERTED = """<mujoco><option timestep="0.005"/><worldbody>
  <body><joint name="lower" axis="0 1 0"/><inertial pos="0 0 0.25" mass="1" diaginertia="0.02 0.02 0.001"/>
    <body pos="0 0 0.5"><joint name="upper" axis="0 1 0"/>
    <inertial pos="0 0 0.25" mass="1" diaginertia="0.02 0.02 0.001"/></body></body>
</worldbody><actuator><motor joint="lower"/></actuator></mujoco>"""


HELD = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="0 0 1"/>
  <body><joint name="along" type="slide" axis="1 0 0"/><inertial pos="0 0 0" mass="4" diaginertia="1 1 1"/>
    <body><joint name="lean" axis="0 1 0"/><geom type="box" pos="0 0 0.5" size="0.025 0.025 0.5" mass="10"/>
    </body></body>
</worldbody><actuator><motor joint="along"/><motor joint="lean"/></actuator></mujoco>"""


class ScaledEngine(Engine):
    """An engine whose gradients are wrong: those of some inputs are scaled, backward only or forward too."""

    def __init__(self, factors: dict[str, float], forward: float = 1.0, of_control: float = 1.0) -> None:
        super().__init__(threads=1)
        self._factors = factors
        self._forward, self._of_control = forward, of_control

    def backward(self, *arguments: Any, **options: Any) -> Gradient:
        gradient = super().backward(*arguments, **options)
        scaled = {name: array * self._factors.get(name, 1.0) for name, array in gradient.arrays.items()}
        return Gradient(scaled, gradient.status, gradient.diverged_step, gradient.report)

    def jvp(self, model: Model, rollout: Rollout, **options: Any) -> Jvp:
        jvp = super().jvp(model, rollout, **options)
        # a missing part of what controls do
        factor = self._forward if options.get("ctrl_tan") is not None else 1.0
        factor *= self._of_control if options.get("control_tan") is not None else 1.0
        return Jvp(factor * jvp.qpos, factor * jvp.qvel, jvp.ctrl)


class BentEngine(Engine):
    """An engine whose steps bend near a velocity, which its derivatives do not know.

    Attributes:
        rounding: how much the last digit of the position moves the end of a step, as stiff forces make it.
    """

    def __init__(self, at: float, rounding: float) -> None:
        super().__init__(threads=1)
        self._at, self.rounding = at, rounding

    def rollout(self, *arguments: Any, **options: Any) -> Rollout:
        found = super().rollout(*arguments, **options)
        qpos, start, qvel = found.qpos[..., :1, :], found.qvel[..., :1, :], found.qvel.copy()
        bent = 3e-8 * np.tanh((start - self._at) / 1e-5) + self.rounding * np.sin(1e17 * qpos)
        qvel[..., 1:, :] += bent
        return replace(found, all_states=(found.qpos, qvel))


@pytest.fixture(scope="module")
def laikago() -> Model:
    return load_model("laikago")


@pytest.mark.parametrize("name", ["cartpole", "ant", "laikago", "pendulum3"])
def test_right_gradients_pass(name: str) -> None:
    model = load_model(name, contact_model="hard")
    report = check_gradient(Engine(threads=1), model, steps=40)
    print(report.to_text())
    assert report.passed
    assert report.steps == 40 and report.model == name
    contacts = name in ("ant", "laikago")
    # no springs; softness is of the other contact model
    without = {
        "qpos_spring",
        "geom_solref",
        "geom_solimp",
    }
    without |= set() if contacts else {"geom_friction", "restitution"}
    without |= set() if name in ("cartpole", "ant") else {"jnt_range"}
    names = {"qpos", "qvel", "ctrl", *PARAMETERS} - without
    assert {check.name for check in report.inputs} == names
    for check in report.inputs:
        assert check.dot_error < 1e-10
        assert check.verdict in ("right", "right step by step", "zero")
        assert check.verdict == "zero" or check.error < 1e-3
    assert report["qvel"].error < 1e-6


@pytest.mark.parametrize("name", ["cartpole", "ant", "laikago"])
def test_right_gradients_of_soft_contact_pass(name: str) -> None:
    model = load_model(name, contact_model="mujoco")
    report = check_gradient(Engine(threads=1), model, steps=40)
    print(report.to_text())
    assert report.passed
    verdicts = {check.name: check.verdict for check in report.inputs}
    assert "restitution" not in verdicts and ("geom_solimp" in verdicts) == (name != "cartpole")
    # ant.xml has solref at the bound of refsafe
    assert set(verdicts.values()) <= {"right", "right step by step", "zero", "at a switching point"}


def test_every_joint_and_actuator_type_passes() -> None:
    report = check_gradient(Engine(threads=1), load_model(THREE_TREES), steps=30)
    assert report.passed
    assert all(check.verdict == "right" for check in report.inputs), report.to_text()


def test_a_wrong_gradient_fails_by_name(laikago: Model) -> None:
    report = check_gradient(ScaledEngine({"ctrl": 1.001}), laikago, steps=20, wrt=["qpos", "ctrl"])
    assert not report.passed
    assert report["qpos"].verdict == "right"
    assert report["ctrl"].verdict == "wrong"
    assert "backward and forward derivatives differ" in report["ctrl"].reason
    assert report.worst.startswith("ctrl[")
    assert report["ctrl"].worst is not None
    assert report["ctrl"].worst.gradient == pytest.approx(1.001 * report["ctrl"].worst.difference, rel=1e-5)
    assert "failed; worst: ctrl[" in report.to_text()


@pytest.mark.parametrize(("rounding", "verdict"), [(0.0, "wrong"), (1e-8, "sensitive")])
def test_a_bend_as_small_as_what_rounding_does_is_none(rounding: float, verdict: str) -> None:
    model = load_model("pendulum1")
    report = check_gradient(
        BentEngine(0.3, rounding), model, np.array([0.5]), np.array([0.3]), steps=1, wrt=["qvel"]
    )
    assert report["qvel"].verdict == verdict, report.to_text()


def test_the_worst_entry_of_a_right_gradient_is_right_too() -> None:
    """The ant lands on its feet: of its motion only differences by less than 1e-7 see the branch taken."""
    report = check_gradient(Engine(threads=1), load_model("ant"), steps=100, wrt=["qpos", "qvel", "gravity"])
    for check in report.inputs:
        assert check.verdict == "right" and check.worst is not None
        assert check.worst.error < 1e-3, check


def test_a_single_wrong_entry_is_named(laikago: Model) -> None:
    class OneWrong(Engine):
        def backward(self, *arguments: Any, **options: Any) -> Gradient:
            gradient = super().backward(*arguments, **options)
            ctrl = np.array(gradient.ctrl)
            ctrl[..., 3, laikago.actuator_names.index("RL_upper")] *= 1.1
            return Gradient({"ctrl": ctrl}, gradient.status, gradient.diverged_step, gradient.report)

    report = check_gradient(OneWrong(threads=1), laikago, steps=8, wrt="ctrl")
    assert report["ctrl"].verdict == "wrong"
    assert report.worst == "ctrl[3, RL_upper]"


def test_derivatives_that_agree_with_each_other_but_not_with_the_motion_fail(laikago: Model) -> None:
    engine = ScaledEngine({"ctrl": 1.001}, forward=1.001)
    report = check_gradient(engine, laikago, steps=20, wrt=["ctrl", "qvel"])
    assert report["qvel"].verdict == "right"
    assert report["ctrl"].verdict == "wrong"
    assert report["ctrl"].dot_error < 1e-10
    assert "single steps" in report["ctrl"].reason
    assert not report.passed


@pytest.mark.parametrize("contact_model", ["hard", "mujoco"])
def test_a_start_exactly_on_a_limit_is_a_switching_point(contact_model: str) -> None:
    model = load_model(KNEE, contact_model=contact_model)
    report = check_gradient(Engine(threads=1), model, [0.0], [0.0], np.zeros((10, 1)))
    assert report.passed
    for name in ("qpos", "qvel", "ctrl"):
        assert report[name].verdict == "at a switching point", report.to_text()
        assert report[name].dot_error < 1e-12
        # a soft limit acts by the position alone, which velocity and control change one step later
        assert report[name].switching_steps[0] == (contact_model == "mujoco" and name != "qpos")
        assert report[name].error > 0.1
    assert report["body_mass"].verdict == "zero"


def test_off_the_limit_the_same_gradient_is_right() -> None:
    report = check_gradient(Engine(threads=1), load_model(KNEE), [0.3], [0.1], np.full((10, 1), 0.2))
    verdicts = {check.name: check.verdict for check in report.inputs}
    assert verdicts.pop("jnt_range") == "zero"
    assert set(verdicts.values()) == {"right"}, report.to_text()


def test_an_unstable_trajectory_is_sensitive_and_says_how_much() -> None:
    model = load_model(INVERTED)
    # it falls and swings on chaotically
    report = check_gradient(
        Engine(threads=1),
        model,
        [0.1, -0.2],
        [0.0, 0.0],
        np.zeros((6000, 1)),
        wrt=["qpos", "qvel", "gravity"],
    )
    assert report.passed
    assert report.growth > 1e6
    for check in report.inputs:
        assert check.verdict == "sensitive", report.to_text()
        assert f"grow by {report.growth:.1e}" in check.reason
        assert check.dot_error < 1e-8


def test_a_wrong_gradient_is_found_on_an_unstable_trajectory_too() -> None:
    model = load_model(INVERTED)
    engine = ScaledEngine({"ctrl": 1.001}, forward=1.001)
    start = [0.1, -0.2], [0.0, 0.0], np.zeros((6000, 1))
    assert check_gradient(engine, model, *start, wrt="ctrl")["ctrl"].verdict == "wrong"
    assert check_gradient(Engine(threads=1), model, *start, wrt="ctrl")["ctrl"].verdict == "sensitive"


def test_a_robot_that_contacts_hold_fast_has_no_influence() -> None:
    """What rounding leaves of derivatives that are zero is not called wrong, backward or forward."""
    for contact_model, verdicts in (("hard", {"zero", "right step by step"}), ("mujoco", {"right"})):
        model = load_model(HELD, contact_model=contact_model)
        report = check_gradient(Engine(threads=1), model, steps=20, wrt=["qvel", "ctrl", "body_mass"])
        assert {check.verdict for check in report.inputs} <= verdicts, report.to_text()


def test_a_wrong_backward_derivative_is_found_on_an_unstable_trajectory_too() -> None:
    engine = ScaledEngine({"qvel": 1.001})
    start = [0.1, -0.2], [0.0, 0.0], np.zeros((6000, 1))
    found = check_gradient(engine, load_model(INVERTED), *start, wrt=["qvel"])["qvel"]
    assert found.verdict == "wrong" and "backward and forward" in found.reason


def test_a_derivative_that_is_wrong_on_both_sides_of_a_switch_fails() -> None:
    """That a step's sides differ does not excuse a derivative that is neither."""
    engine = ScaledEngine({"ctrl": 1.01}, forward=1.01)
    start = [0.0], [0.0], np.zeros((10, 1))
    assert check_gradient(engine, load_model(KNEE), *start, wrt="ctrl")["ctrl"].verdict == "wrong"


def test_an_input_is_checked_alike_whatever_else_is(laikago: Model) -> None:
    engine = Engine(threads=1)
    alone, beside = (
        check_gradient(engine, laikago, steps=5, wrt=wrt) for wrt in (["qvel"], ["qpos", "qvel"])
    )
    assert alone["qvel"].gradients == beside["qvel"].gradients


def test_the_same_seed_gives_the_same_report_and_another_one_another(laikago: Model) -> None:
    engine = Engine(threads=1)
    reports = [check_gradient(engine, laikago, steps=5, wrt="qvel", seed=seed) for seed in (3, 3, 4)]
    assert reports[0] == reports[1]
    assert reports[0]["qvel"].gradients != reports[2]["qvel"].gradients


def test_the_report_survives_json() -> None:
    report = check_gradient(Engine(threads=1), load_model(KNEE), [0.0], [0.0], np.zeros((5, 1)))
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert data["passed"] is True and data["worst"] == report.worst
    assert GradientReport.from_dict(data) == report
    with pytest.raises(KeyError):
        report["wind"]


def test_zeros_that_must_not_be_negative_are_checked_beside_zero() -> None:
    model = load_model("pendulum2")
    assert not model.arrays["dof_armature"].any()
    report = check_gradient(Engine(threads=1), model, steps=20, wrt=["dof_armature", "dof_damping"])
    assert [check.verdict for check in report.inputs] == ["right", "right"]
    # given parameters are checked as they are
    given = check_gradient(
        Engine(threads=1), model, steps=20, wrt="dof_armature", params={"dof_armature": np.zeros(2)}
    )
    assert given["dof_armature"].gradients == (0.0, 0.0, 0.0)


def test_a_robot_in_the_ground_is_lifted_out_of_it() -> None:
    text = """<mujoco><worldbody><geom type="plane" size="0 0 1"/><body><freejoint/>
      <geom type="box" size="0.2 0.2 0.1"/></body></worldbody></mujoco>"""
    report = check_gradient(Engine(threads=1), load_model(text), steps=50, wrt=["qpos", "qvel", "gravity"])
    assert report.passed and report["qvel"].verdict == "right", report.to_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps: expected an integer from 1 to 1000000, got 0"),
        ({"directions": 1.5}, "directions: expected an integer from 1 to 100, got 1.5"),
        ({"seed": -1}, "seed: expected an integer >= 0, got -1"),
        ({"tolerance": 2}, "tolerance: expected a number between 0 and 1, got 2"),
        (
            {"ctrl": np.zeros((2, 5, 1))},
            "ctrl: expected shape [time, nu=1], got [2, 5, 1]; check one trajectory at a time",
        ),
        ({"qpos": [0.0, 0.0]}, "qpos: expected shape [nq=1], got [2]; model 'model' has nq=1 and nv=1"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        check_gradient(Engine(threads=1), load_model(KNEE), **options)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("name", "options"), [("ctrl", {"ctrl": np.zeros((0, 1))}), ("geom_friction", {"steps": 3})]
)
def test_an_input_without_entries_has_no_influence(name: str, options: dict[str, Any]) -> None:
    report = check_gradient(Engine(threads=1), load_model(KNEE), wrt=[name, "qvel"], directions=2, **options)
    empty, whole = report.inputs
    assert (empty.verdict, empty.reason, empty.gradients) == ("zero", "it has no entries", (0.0, 0.0))
    assert report.passed and whole.verdict == "right"


def test_unknown_inputs_are_named() -> None:
    with pytest.raises(ArgumentError, match="wrt: expected names among qpos, qvel, ctrl, geom_friction"):
        check_gradient(Engine(threads=1), load_model(KNEE), wrt=["wind"])


def test_a_trajectory_that_diverges_cannot_be_checked(laikago: Model) -> None:
    qvel = np.zeros(laikago.nv)
    qvel[7] = 1e200
    with pytest.raises(DivergedError, match="diverged first at step 0"):
        check_gradient(Engine(threads=1), laikago, qvel=qvel, steps=5)


def test_a_check_can_be_cancelled(laikago: Model) -> None:
    token = CancelToken()
    token.cancel()
    with pytest.raises(Cancelled):
        check_gradient(Engine(threads=1), laikago, cancel=token)


@pytest.mark.parametrize(("steps", "wrong"), [(100, False), (1500, True)])
def test_a_check_holds_no_more_than_it_says(laikago: Model, steps: int, wrong: bool) -> None:
    engine = ScaledEngine({"ctrl": 1.01 if wrong else 1.0})
    tracemalloc.start()
    try:
        report = check_gradient(engine, laikago, steps=steps, wrt=["ctrl"])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert report.passed is not wrong
    assert peak < held_bytes(laikago, steps, 3)


def test_memory_grows_with_the_trajectory_and_not_by_thousands_of_them(laikago: Model) -> None:
    states = 8 * 10_000 * (laikago.nq + laikago.nv + laikago.nu)
    assert 33 * states < held_bytes(laikago, 10_000, 3) < 300 * states


def test_progress_is_told_before_each_input() -> None:
    told: list[tuple[str, int, int]] = []
    check_gradient(
        Engine(),
        load_model("cartpole"),
        steps=3,
        wrt=["qvel", "ctrl"],
        progress=lambda name, place, count: told.append((name, place, count)),
    )
    assert told == [("qvel", 0, 2), ("ctrl", 1, 2)]


def controlled(model: Model, *, policy: bool) -> Control:
    """Return a controller of the ant that is smooth, and forces."""
    random = np.random.default_rng(3)
    forces = 0.1 * random.normal(size=(1, model.nv))
    if not policy:
        gain = 0.3 * random.normal(size=(model.nu, 2 * model.nv))
        return Control(2, Feedback(gain, model.qpos0, model.qvel0), qfrc_applied=forces)
    observe = ["qpos", "qvel", "subtree_com:torso", "previous_ctrl", "goal"]
    inputs = model.nq + 2 + model.nv + 3 + model.nu + 1
    weights = [random.normal(size=(6, inputs)) / inputs, np.zeros(6), random.normal(size=(model.nu, 6))]
    network = MLP([*weights, np.zeros(model.nu)], observe, goal=[0.3])
    return Control(2, policy=network, qfrc_applied=forces)


@pytest.mark.parametrize("policy", [False, True])
def test_controllers_are_checked(policy: bool) -> None:
    model = load_model("ant")
    control = controlled(model, policy=policy)
    report = check_gradient(Engine(threads=1), model, steps=10, control=control)
    print(report.to_text())
    assert report.passed and report.steps == 20
    verdicts = {check.name: check.verdict for check in report.inputs}
    assert {*control.arrays} < {*verdicts}
    smooth = load_model("ant", contact=False, limits=False)
    names = ["qpos", "ctrl", "body_mass", *control.arrays]
    report = check_gradient(Engine(threads=1), smooth, steps=10, control=control, wrt=names)
    assert {check.verdict for check in report.inputs} == {"right"}


@pytest.mark.parametrize("name", ["feedback.gain", "policy.weights", "qfrc_applied"])
@pytest.mark.parametrize("contact", [False, True])
def test_a_wrong_gradient_of_a_controller_is_found(name: str, contact: bool) -> None:
    model = load_model("ant", contact=contact)
    control = controlled(model, policy=name.startswith("policy"))
    engine = ScaledEngine({name: 1.001})
    report = check_gradient(engine, model, steps=8, control=control, wrt=["qpos", name])
    verdicts = {check.name: check.verdict for check in report.inputs}
    assert verdicts[name] == "wrong" and verdicts["qpos"] != "wrong", report.to_text()


DRAGGED = """<mujoco><option timestep="0.004"/><worldbody>
  <body name="mocap" mocap="true" pos="0 0 0.5"/>
  <body name="arm" pos="0 0 0.5"><freejoint/><geom type="box" size="0.1 0.05 0.03" mass="0.7"/>
    <body name="hand" pos="0.1 0 0"><joint name="wrist" axis="0 1 0" damping="0.1"/>
      <geom type="box" pos="0.1 0 0" size="0.1 0.02 0.02" mass="0.3"/></body></body></worldbody>
  <equality><weld body1="mocap" body2="arm" solref="0.03 1"/></equality>
  <actuator><motor joint="wrist"/></actuator></mujoco>"""


def dragged(model: Model) -> Control:
    """Return forces and moving mocap bodies, one of them the same at all times."""
    random = np.random.default_rng(4)
    path = np.cumsum(0.004 * random.normal(size=(6, 1, 3)), axis=0)
    return Control(
        2,
        xfrc_applied=0.2 * random.normal(size=(model.nbody, 6)),
        mocap_pos=model.mocap_pos + path,
        mocap_quat=1.3 * model.mocap_quat + 0.02 * random.normal(size=(6, 1, 4)),
    )


def test_inputs_of_steps_are_checked() -> None:
    model = load_model(DRAGGED)
    control = dragged(model)
    report = check_gradient(Engine(threads=1), model, steps=6, control=control)
    print(report.to_text())
    verdicts = {check.name: check.verdict for check in report.inputs}
    assert {verdicts[name] for name in ("xfrc_applied", "mocap_pos", "mocap_quat", "qpos", "ctrl")} == {
        "right"
    }


@pytest.mark.parametrize("name", ["xfrc_applied", "mocap_pos", "mocap_quat"])
@pytest.mark.parametrize("factors", [(1.001, 1.0), (1.0, 1.001)])
def test_a_wrong_gradient_of_an_input_is_found(name: str, factors: tuple[float, float]) -> None:
    """Backward alone, and forward, where single steps decide."""
    model = load_model(DRAGGED)
    backward, forward = factors
    engine = ScaledEngine({name: backward}, of_control=forward)
    report = check_gradient(engine, model, steps=6, control=dragged(model), wrt=["ctrl", name])
    verdicts = {check.name: check.verdict for check in report.inputs}
    assert verdicts[name] == "wrong" and verdicts["ctrl"] != "wrong", report.to_text()
