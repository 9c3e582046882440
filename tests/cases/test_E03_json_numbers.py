"""Case E03: NaN, infinities and exact doubles over JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import revolute
from testbed.server_process import ServerProcess

FOLDER = Path(__file__).parent / "E03"
CART = (FOLDER / "cart.xml").read_text()
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
VALUES = [float(word) for word in EXPECTED["values"]]
FINITE = [value for value in VALUES if np.isfinite(value)]
WORDS = ["nan", "inf", "-inf"]


@pytest.fixture(scope="module")
def http(server: ServerProcess) -> Iterator[httpx.Client]:
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    with httpx.Client(base_url=server.http, headers=headers, trust_env=False) as client:
        yield client


@pytest.fixture(scope="module")
def model_id(http: httpx.Client) -> str:
    return _strict(http.post("/v1/models", json={"text": CART}))["model_id"]


def _strict(response: httpx.Response) -> Any:
    """Parse a body as RFC 8259 has it: without the bare words NaN and Infinity."""

    def refuse(word: str) -> None:
        raise AssertionError(f"the body has the bare word {word}")

    return json.loads(response.content.decode("utf-8"), parse_constant=refuse)


def _refused(response: httpx.Response, argument: str) -> None:
    problem = _strict(response)
    assert response.status_code == 400, problem
    assert response.headers["content-type"] == "application/problem+json"
    assert (problem["reason"], problem["argument"], problem["status"]) == ("INVALID_ARGUMENT", argument, 400)


def _session(http: httpx.Client, model_id: str, batch: int) -> str:
    return _strict(http.post("/v1/sessions", json={"model_id": model_id, "batch": batch}))["session_id"]


def test_the_third_is_the_expected_double() -> None:
    assert np.array(VALUES[7], dtype=">f8").tobytes().hex() == EXPECTED["hex_third"]


def test_finite_doubles_come_back_bit_equal(http: httpx.Client, model_id: str) -> None:
    session = _session(http, model_id, len(FINITE))
    rows = ", ".join(f"[{word}]" for word in EXPECTED["values"] if word not in WORDS)
    for body in (
        f'{{"qpos": [{rows}]}}',
        f'{{"qpos": [{rows}]}}'.replace("9007199254740992.0", "9007199254740993"),
    ):
        state = _strict(http.post(f"/v1/sessions/{session}/reset", content=body))
        again = _strict(http.get(f"/v1/sessions/{session}/state"))
        for qpos in (state["qpos"], again["qpos"]):
            assert np.array(qpos, dtype=np.float64).tobytes() == np.array(FINITE).tobytes()


def test_parameter_comes_back_bit_equal(http: httpx.Client, model_id: str) -> None:
    # one step with force 1 from rest: v = h / m
    for mass in (1 / 3, 0.1):
        body = {
            "model_id": model_id,
            "qpos": [0.0],
            "qvel": [0.0],
            "ctrl": [[1.0]],
            "params": {"body_mass": [0.0, mass]},
        }
        answer = _strict(http.post("/v1/trajectories", json=body))
        assert answer["qvel"][1][0] == pytest.approx(1e-3 / mass, rel=1e-15)


@pytest.mark.parametrize(
    "bare", ["NaN", "Infinity", "-Infinity", "1e999", '"nan"', '"inf"', '"-inf"', "null"]
)
def test_other_numbers_are_refused(bare: str, http: httpx.Client, model_id: str) -> None:
    session = _session(http, model_id, 1)
    _refused(http.post(f"/v1/sessions/{session}/reset", content=f'{{"qpos": [[{bare}]]}}'), "qpos")
    _refused(http.post(f"/v1/sessions/{session}/step", content=f'{{"ctrl": [[{bare}]]}}'), "ctrl")
    start = f'"model_id": "{model_id}", "qpos": [0.0], "qvel": [0.0]'
    _refused(http.post("/v1/trajectories", content=f'{{{start}, "ctrl": [[{bare}]]}}'), "ctrl")
    body = f'{{{start}, "ctrl": [[1.0]], "params": {{"body_mass": [0.0, {bare}]}}}}'
    assert http.post("/v1/trajectories", content=body).status_code == 400
    # nothing is lost: the session goes on from where it was
    assert _strict(http.get(f"/v1/sessions/{session}/state"))["qpos"] == [[0.0]]


def test_diverged_run_says_so(http: httpx.Client) -> None:
    # a spring far too stiff for its step
    stiff = CART.replace('timestep="0.001"', 'timestep="10"').replace("<joint", '<joint stiffness="1e6"')
    model_id = _strict(http.post("/v1/models", json={"text": stiff}))["model_id"]
    body = {"model_id": model_id, "qpos": [[0.0], [1.0]], "qvel": [0.0], "ctrl": [[[0.0]] * 60] * 2}
    answer = _strict(http.post("/v1/trajectories", json=body))
    assert answer["status"] == [0, 1]
    assert answer["diverged_step"][0] == -1 and 0 < answer["diverged_step"][1] < 60
    assert answer["qpos"][0][-1] == [0.0]
    assert answer["qpos"][1][-1] == ["nan"]


@pytest.mark.parametrize("word", WORDS)
def test_every_transport_refuses_the_same(word: str, simulators: dict[str, revolute.Simulator]) -> None:
    texts = []
    for simulator in simulators.values():
        session = simulator.session(simulator.load_model(CART))
        with pytest.raises(revolute.ArgumentError) as caught:
            session.reset(qpos=[float(word)])
        texts.append(str(caught.value))
    assert len(set(texts)) == 1
    assert texts[0].startswith(f"qpos: expected finite values, got {word} at [0]")


def test_every_transport_keeps_the_bits(simulator: revolute.Simulator) -> None:
    session = simulator.session(simulator.load_model(CART), len(FINITE))
    state = session.reset(qpos=np.array(FINITE)[:, None])
    assert state.qpos.tobytes() == np.array(FINITE).tobytes()
