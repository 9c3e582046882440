"""Documents and messages: the same fields both ways."""

from __future__ import annotations

import numpy as np

from revolute.contract.codec.documents import fill_message, read_message
from revolute.contract.v1 import model_pb2, session_pb2, trajectory_pb2

REQUEST = {
    "inputs": {
        "model_id": "m",
        "qpos": np.zeros(3),
        "qvel": np.ones(2),
        "ctrl": np.zeros((4, 2)),
        "params": {"body_mass": np.ones(2)},
    },
    "loss": {
        "terms": [
            {
                "quantity": "qpos",
                "weight": np.array(1.0),
                "target": np.zeros(2),
                "when": "final",
                "index": [0, 2],
            },
            {"quantity": "ctrl", "form": "linear", "index": None},
        ]
    },
    "wrt": ["qpos", "ctrl"],
}


def test_request_comes_back() -> None:
    message = trajectory_pb2.ValueAndGradientInputs()
    values = fill_message(message, REQUEST)
    assert set(values) == {
        *("inputs.qpos", "inputs.qvel", "inputs.ctrl", "inputs.params.body_mass"),
        *("loss.terms.0.weight", "loss.terms.0.target"),
    }
    again = read_message(message, values)
    assert again["inputs"]["model_id"] == "m" and again["wrt"] == ["qpos", "ctrl"]
    assert again["inputs"]["params"]["body_mass"] is values["inputs.params.body_mass"]
    first, second = again["loss"]["terms"]
    assert first["index"] == [0, 2] and "index" not in second
    assert "weight" not in second and second["form"] == "linear"


def test_options_that_are_not_given_stay_unset() -> None:
    message = model_pb2.ModelSource()
    fill_message(message, {"builtin": "ant", "options": {"ground": False, "timestep": None}, "name": None})
    assert message.options.HasField("ground") and not message.options.HasField("timestep")
    assert read_message(message, {})["options"] == {"ground": False}


def test_empty_index_differs_from_none() -> None:
    message = trajectory_pb2.LossTerm()
    fill_message(message, {"quantity": "qpos", "index": []})
    assert read_message(message, {})["index"] == []


def test_steps_zero_differs_from_not_set() -> None:
    message = session_pb2.StepInputs()
    fill_message(message, {"session_id": "s", "ctrl": np.zeros(1), "steps": 0})
    assert message.HasField("steps") and message.steps == 0
