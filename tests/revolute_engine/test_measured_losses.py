"""Loss terms of the task space and of sensors: values by hand, gradients against differences, bits."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

from revolute.contract.controllers import Control, Feedback
from revolute.contract.errors import ArgumentError
from revolute.contract.loss import Loss, Term
from revolute_engine import Engine, load_model
from revolute_engine.merged_calls import RolloutCall, ValueAndGradientCall, value_and_gradient_together

from .measured_scenes import scene

ENGINE = Engine(threads=1)
MODEL = load_model(scene(), contact_model="mujoco")
STEPS = 6
RANDOM = np.random.default_rng(2)
TERMS = {
    "site": Term("site_pos", site="tip", target=[0.4, 0, 0.3]),
    "axis": Term("body_pos", body="c", index=[2], when="running", weight=2.0, target=0.4),
    "chosen times": Term("geom_pos", geom="ga", times=[1, -2], target=RANDOM.normal(size=(2, 3))),
    "orientation": Term("site_quat", site="sw", when="running", target=[1, 0.3, 0, 0.2], weight=0.7),
    "distance": Term("site_distance", site=["tip", "sc"], times=[3], target=0.5),
    "relative": Term("body_pos", body="c", relative_to="site:sa", when="running"),
    "velocity": Term("site_linvel", site=["sw", "sc"], when="running", target=0.1),
    "centre of mass": Term("subtree_com", body="a", form="linear"),
    "sensor": Term("sensor", sensor="imu", when="running"),
    "force": Term("sensor", sensor="toe", when="running", weight=1e-4),
    "joint": Term("qpos", joint="h", target=0.3),
    "actuator": Term("ctrl", actuator="pt", times=[0, 2]),
}


def start(batch: int = 1) -> dict[str, np.ndarray]:
    qpos = np.repeat(MODEL.qpos0[None], batch, axis=0)
    qpos[:, 2] = 0.34
    qvel = 0.3 * RANDOM.normal(size=(batch, MODEL.nv))
    return {"qpos": qpos, "qvel": qvel, "ctrl": RANDOM.normal(size=(batch, STEPS, MODEL.nu))}


def value(inputs: dict[str, Any], loss: Loss, **more: Any) -> np.ndarray:
    return np.asarray(ENGINE.value_and_gradient(MODEL, **inputs, loss=loss, **more)[0])


@pytest.mark.parametrize("name", TERMS)
def test_gradients_are_the_derivative(name: str) -> None:
    loss, inputs = Loss([TERMS[name]]), start()
    wrt = ["qvel", "ctrl", "body_mass", "body_ipos"]
    params = {each: MODEL.arrays[each] for each in ("body_mass", "body_ipos")}
    found = ENGINE.value_and_gradient(MODEL, **inputs, loss=loss, wrt=wrt, params=params)[1]
    for each in wrt:
        at = inputs[each] if each in inputs else params[each]
        direction = RANDOM.normal(size=at.shape) * (at != 0)

        def along(distance: float, each: str = each, at: Any = at, direction: Any = direction) -> float:
            moved = at + distance * direction
            if each in inputs:
                return float(value({**inputs, each: moved}, loss, params=params)[0])
            return float(value(inputs, loss, params={**params, each: moved})[0])

        step = 1e-4
        difference = (8 * (along(step) - along(-step)) - (along(2 * step) - along(-2 * step))) / (12 * step)
        assert difference == pytest.approx(float((found[each] * direction).sum()), rel=1e-6, abs=1e-8), each


def test_held_controls_applied_forces_and_feedback_are_differentiated() -> None:
    inputs = start()
    inputs["ctrl"] = inputs["ctrl"][:, : STEPS // 2]
    feedback = Feedback(0.1 * RANDOM.normal(size=(MODEL.nu, 2 * MODEL.nv)), MODEL.qpos0, MODEL.qvel0)
    forces = 0.1 * RANDOM.normal(size=MODEL.nv)
    loss = Loss([TERMS["site"], TERMS["sensor"], Term("sensor", sensor="toe", times=[1, 5, -1], weight=1e-4)])

    def at(ctrl: np.ndarray, forces: np.ndarray) -> Any:
        control = Control(hold=2, feedback=feedback, qfrc_applied=forces)
        found = ENGINE.value_and_gradient(
            MODEL, **{**inputs, "ctrl": ctrl}, loss=loss, control=control, wrt=["ctrl", "qfrc_applied"]
        )
        return float(found[0][0]), found[1]

    gradient = at(inputs["ctrl"], forces)[1]
    for name, given in (("ctrl", inputs["ctrl"]), ("qfrc_applied", forces)):
        direction = RANDOM.normal(size=given.shape)
        values = [
            at(
                *(
                    each + scale * 1e-4 * direction if each is given else each
                    for each in (inputs["ctrl"], forces)
                )
            )[0]
            for scale in (1, -1, 2, -2)
        ]
        difference = (8 * (values[0] - values[1]) - (values[2] - values[3])) / 12e-4
        assert difference == pytest.approx(float((gradient[name] * direction).sum()), rel=1e-6, abs=1e-8)


def test_values_are_those_of_the_measured_numbers() -> None:
    inputs = start(2)
    rollout = ENGINE.rollout(MODEL, **inputs)
    names = ["site_pos:tip", "site_quat:sw", "site_pos:sc", "sensor:imu", "subtree_com:a"]
    found = ENGINE.measure(MODEL, names, ENGINE.states_of(MODEL, rollout))
    np.testing.assert_allclose(
        value(inputs, Loss([TERMS["site"]])),
        ((found["site_pos:tip"][:, -1] - [0.4, 0, 0.3]) ** 2).sum(-1),
        rtol=1e-12,
    )
    target = np.array([1, 0.3, 0, 0.2])
    dot = np.abs(found["site_quat:sw"] @ (target / np.linalg.norm(target)))
    np.testing.assert_allclose(
        value(inputs, Loss([TERMS["orientation"]])), 0.7 * ((2 * np.arccos(dot)) ** 2).sum(-1), rtol=1e-10
    )
    apart = np.linalg.norm(found["site_pos:tip"] - found["site_pos:sc"], axis=-1)
    np.testing.assert_allclose(value(inputs, Loss([TERMS["distance"]])), (apart[:, 3] - 0.5) ** 2, rtol=1e-12)
    np.testing.assert_allclose(
        value(inputs, Loss([TERMS["sensor"]])), (found["sensor:imu"] ** 2).sum((1, 2)), rtol=1e-12
    )
    np.testing.assert_allclose(
        value(inputs, Loss([TERMS["joint"]])),
        (rollout.qpos[:, -1, MODEL.mujoco_model.joint("h").qposadr[0]] - 0.3) ** 2,
    )


def test_checkpoints_batches_and_merged_calls_give_the_same_bits() -> None:
    loss, inputs = Loss(list(TERMS.values())), start(3)
    wrt = ["qpos", "qvel", "ctrl", "body_mass"]
    expected, gradient = ENGINE.value_and_gradient(MODEL, **inputs, loss=loss, wrt=wrt[:3])
    for checkpoints in ("interval=2", "slots=2"):
        again, other = ENGINE.value_and_gradient(
            MODEL, **inputs, loss=loss, wrt=wrt[:3], checkpoints=checkpoints
        )
        np.testing.assert_array_equal(again, expected)
        for name in wrt[:3]:
            np.testing.assert_array_equal(other[name], gradient[name])
    rows = [{name: array[row] for name, array in inputs.items()} for row in range(3)]
    calls = [ValueAndGradientCall(RolloutCall(**row), loss, wrt[:3]) for row in rows]
    for row, answer in enumerate(value_and_gradient_together(ENGINE, MODEL, calls)):
        assert not isinstance(answer, Exception)
        assert answer[0] == expected[row]
        for name in wrt[:3]:
            np.testing.assert_array_equal(answer[1][name], gradient[name][row])


def test_a_rollout_without_steps_measures_its_start() -> None:
    data = mujoco.MjData(MODEL.mujoco_model)
    mujoco.mj_forward(MODEL.mujoco_model, data)
    found, gradient = ENGINE.value_and_gradient(
        MODEL,
        MODEL.qpos0,
        MODEL.qvel0,
        np.zeros((0, MODEL.nu)),
        loss=Loss([Term("site_pos", site="sc", index=[2], form="linear")]),
        wrt=["qpos"],
    )
    assert found == pytest.approx(data.site("sc").xpos[2], abs=1e-12)
    assert gradient.qpos[2] == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (Term("site_pos", site="nowhere"), "loss.terms.0.site: expected a site among world, sa, box"),
        (Term("qpos", joint="knee"), "loss.terms.0.joint: expected a joint among float, h, s"),
        (
            Term("site_pos", site="tip", index=[3]),
            "entries from 0 to 2, got 3; site_pos of tip has 3 entries",
        ),
        (Term("qpos", times=[99]), "loss.terms.0.times: expected times from -7 to 6"),
        (Term("site_pos", site="tip", target=[1, 2]), "broadcasts to [1, 3]"),
        (Term("site_quat", site="tip", target=0.0), "a quaternion (w x y z) of non-zero length"),
    ],
)
def test_mistakes_are_named(term: Term, text: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        value(start(), Loss([term]))
    assert text in str(caught.value)
