"""Arguments of a wrong kind are refused by name before anything is sent."""

from __future__ import annotations

from typing import Any

import pytest

import revolute
from revolute.contract.errors import ArgumentError, LimitError, NotFoundError, RevoluteError

PENDULUM = """<mujoco><asset><mesh name="m" file="{}"/></asset><worldbody><body><joint/>
  <geom type="mesh" mesh="m"/></body></worldbody></mujoco>"""
LONG = "x" * 5000


@pytest.fixture(scope="module")
def sim() -> Any:
    with revolute.connect(threads=1) as simulator:
        yield simulator


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"mesh_paths": 5}, "mesh_paths"),
        ({"mesh_paths": [None]}, "mesh_paths"),
        ({"mesh_paths": "folder"}, "mesh_paths"),
        ({"package_paths": ["a"]}, "package_paths"),
        ({"package_paths": {"a": None}}, "package_paths"),
        ({"assets": ["a"]}, "assets"),
        ({"name": 7}, "name"),
        ({"name": b"x"}, "name"),
    ],
)
def test_keywords_of_load_model(sim: Any, arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        sim.load_model(PENDULUM.format("m.stl"), **arguments)
    assert caught.value.argument == named


def test_an_argument_that_does_not_exist_is_named_with_the_one_that_was_meant(sim: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        sim.load_model("pendulum1", timestepp=1)
    assert caught.value.argument == "timestepp"
    assert str(caught.value).endswith("got 'timestepp'; did you mean timestep?")
    model = sim.load_model("pendulum1")
    with pytest.raises(ArgumentError, match=r"^stepz: expected .* argument of check_gradient, .* mean steps"):
        sim.check_gradient(model, stepz=1)
    with pytest.raises(ArgumentError, match=r"got 'zzz'; it has model, batch, params, lease, durable"):
        sim.session(model, zzz=1)


def test_arguments_of_what_a_simulator_makes(sim: Any) -> None:
    model = sim.load_model("pendulum1")
    trajectory = sim.rollout(model, [0.0], [0.0], [[0.0]])
    with pytest.raises(ArgumentError, match=r"^ctrl: expected .* argument of jvp, .*; did you mean ctrl_tan"):
        trajectory.jvp(ctrl=[[1.0]])
    with pytest.raises(ArgumentError, match=r"^time: .* argument of backward, .*; did you mean times"):
        trajectory.backward([[1.0]], time=[-1])
    with sim.session(model) as session:
        with pytest.raises(
            ArgumentError, match=r"^mask: .* argument of reset, .*; it has qpos, qvel, .*where$"
        ):
            session.reset(mask=[True])
        for call in (session.step, session.jacobian, session.set_state, session.fork):
            with pytest.raises(ArgumentError, match=f"^zzz: .* argument of {call.__name__}, "):
                call(zzz=1)


@pytest.mark.parametrize("loss", [[revolute.Term("qpos")], {"terms": [{"quantity": "qpos"}]}, None])
def test_a_loss_that_is_none(sim: Any, loss: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^loss: expected a revolute\.Term, .*; several terms are revol"):
        sim.value_and_gradient(sim.load_model("pendulum1"), [0.0], [0.0], [[0.0]], loss)


@pytest.mark.parametrize("qpos", [None, "home"])
def test_a_conversion_that_would_not_help_is_not_advised(sim: Any, qpos: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^qpos: expected an array of real numbers, got [^;]*$"):
        sim.rollout(sim.load_model("pendulum1"), qpos, [0.0], [[0.0]])


@pytest.mark.parametrize("source", ["nope.urdf", "folder/nope.xml", "laikagoo"])
def test_a_model_that_is_not_there_is_not_found(sim: Any, source: str) -> None:
    with pytest.raises(NotFoundError):
        sim.load_model(source)


@pytest.mark.parametrize("source", [f"/{LONG}", "/a\0b.xml", "~nosuchuser42/x.xml", PENDULUM.format(LONG)])
def test_paths_that_no_file_can_have(sim: Any, source: str) -> None:
    with pytest.raises(RevoluteError) as caught:
        sim.load_model(source)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("terms", [5, None])
def test_a_loss_of_something_else(terms: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^loss\.terms: expected a list of revolute\.Term"):
        revolute.Loss(terms)


def test_sizes_beyond_any_memory(sim: Any) -> None:
    model = sim.load_model("pendulum1")
    with pytest.raises(ArgumentError, match=r"^batch: expected a whole number of at most 2147483647"):
        sim.session(model, batch=2**62)
    with pytest.raises(LimitError):
        sim.session(model, batch=2**31 - 1)


def test_an_id_that_is_no_string(sim: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^trajectory_id: expected a string, got int"):
        sim.trajectory(sim.load_model("pendulum1"), 7)
