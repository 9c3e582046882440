"""Rollouts whose states come while they are computed: the same bits on every transport as in one piece."""

from __future__ import annotations

import time

import httpx
import numpy as np
import pytest

import revolute
from revolute.contract.codec.json_text import from_json
from testbed.cart import CART
from testbed.server_process import ServerProcess, running_server

STEPS = 120
POSE = np.tile([0.0, 0.1, -0.8], 4)
START = np.concatenate([[0, 0, 0.458476, 1, 0, 0, 0], POSE])


def controls(*batch: int) -> np.ndarray:
    return POSE + np.random.default_rng(0).normal(0, 0.03, (*batch, STEPS, 12))


@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("segment_steps", [7, None])
def test_segments_make_up_the_rollout(
    simulator: revolute.Simulator, batch: tuple[int, ...], segment_steps: int | None
) -> None:
    model = simulator.load_model("laikago", timestep=2e-3)
    arguments = model, START, np.zeros(model.nv), controls(*batch)
    params = {"geom_friction": np.full((model.ngeom, 3), 0.4)}
    with simulator.rollout(*arguments, params=params) as whole:
        stream = simulator.stream_rollout(*arguments, params=params, segment_steps=segment_steps)
        segments = list(stream)
        assert len(segments) == (18 if segment_steps else 1)
        for name in ("qpos", "qvel"):
            joined = np.concatenate([getattr(segment, name) for segment in segments], axis=len(batch))
            np.testing.assert_array_equal(joined, getattr(whole, name), strict=True)
        kept = stream.trajectory
        assert kept is not None
        for name in ("qpos", "qvel", "ctrl", "status", "diverged_step"):
            np.testing.assert_array_equal(getattr(kept, name), getattr(whole, name), strict=True)
        bar = np.ones(whole.qpos.shape)
        np.testing.assert_array_equal(kept.backward(bar).ctrl, whole.backward(bar).ctrl)
        kept.delete()


def test_large_segments_are_sent_in_chunks(simulator: revolute.Simulator) -> None:
    model = simulator.load_model(CART)
    ctrl = np.ones((100_000, 1))
    stream = simulator.stream_rollout(model, [0.0], [0.0], ctrl, segment_steps=100_000)
    (segment,) = stream
    assert segment.qpos.shape == (100_001, 1)
    np.testing.assert_allclose(segment.qvel[-1], [100.0], rtol=1e-9)


def test_what_is_wrong_is_told_before_the_first_segment(simulator: revolute.Simulator) -> None:
    model = simulator.load_model(CART)
    with pytest.raises(revolute.ArgumentError, match="ctrl"):
        simulator.stream_rollout(model, [0.0], [0.0], np.ones((10, 2)))
    with pytest.raises(revolute.ArgumentError, match="segment_steps"):
        simulator.stream_rollout(model, [0.0], [0.0], np.ones((10, 1)), segment_steps=0)
    nothing = simulator.stream_rollout(model, [0.0], [0.0], np.ones((0, 1)))
    assert [segment.qpos.tolist() for segment in nothing] == [[[0.0]]]


@pytest.fixture(scope="module")
def own_server() -> ServerProcess:  # type: ignore[misc]
    """Return a server whose memory and processor time only these tests use."""
    with running_server("--workers", "1", "--threads", "1") as running:
        yield running


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_the_engine_waits_for_a_slow_reader_and_stops_when_it_leaves(
    own_server: ServerProcess, transport: str
) -> None:
    with revolute.connect(getattr(own_server, transport)) as simulator:
        model = simulator.load_model(CART)
        before = own_server.metric("revolute_memory_bytes")
        # some 20 s of steps, 160 MB of states
        stream = simulator.stream_rollout(model, [0.0], [0.0], np.ones((10_000_000, 1)))
        first = next(stream)
        assert first.first == 0
        time.sleep(0.5)
        used = own_server.cpu_seconds()
        time.sleep(0.5)
        assert own_server.cpu_seconds() - used < 0.1
        taken = sum(segment.qpos.shape[0] for segment, _ in zip(stream, range(20), strict=False))
        assert taken > 0
        stream.close()
        for _ in range(100):
            if own_server.metric("revolute_memory_bytes") == before:
                break
            time.sleep(0.05)
        assert own_server.metric("revolute_memory_bytes") == before


def test_lines_of_json_for_people(server: ServerProcess, over_http: revolute.Simulator) -> None:
    model = over_http.load_model(CART)
    inputs = {"model_id": model.id, "qpos": [0.0], "qvel": [0.0], "ctrl": [[1.0]] * 5}
    with httpx.stream(
        "POST", f"{server.http}/v1/stream-rollout", json={"inputs": inputs, "segment_steps": 2}
    ) as answer:
        assert answer.headers["content-type"] == "application/x-ndjson"
        documents = [from_json(line.encode()) for line in answer.iter_lines()]
    assert [document["first"] for document in documents[:-1]] == [0, 3, 5]
    assert [len(document["qpos"]) for document in documents[:-1]] == [3, 2, 1]
    end = documents[-1]
    assert end["status"] == 0 and end["report"]["states_stored"] == 6
    assert httpx.delete(f"{server.http}/v1/trajectories/{end['trajectory_id']}").status_code == 204
