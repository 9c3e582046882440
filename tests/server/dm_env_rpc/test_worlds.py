"""Worlds: what an agent sees is the engine's, and episodes begin and end as their settings say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import dm_env
import grpc
import numpy as np
import pytest
from absl.testing import absltest
from dm_env import test_utils
from dm_env_rpc.v1 import connection as connections
from dm_env_rpc.v1 import dm_env_adaptor, error, tensor_utils
from dm_env_rpc.v1 import dm_env_rpc_pb2 as pb

import revolute
from revolute.contract.codec.status import decode_status
from revolute.gym import Env
from revolute_server.access.tokens import new_token, token_line
from testbed.cart import CART
from testbed.server_process import ServerProcess, running_server
from testbed.token_files import write_tokens

from .conftest import Connect

LOSS = {
    "terms": [
        {"quantity": "qpos", "weight": [1.0, 4.0], "target": [0.2, 0.0]},
        {"quantity": "ctrl", "weight": 0.01},
    ]
}
RUNNING, TERMINATED, INTERRUPTED = (
    getattr(pb.EnvironmentStateType, name) for name in ("RUNNING", "TERMINATED", "INTERRUPTED")
)


def environment(connection: connections.Connection, **settings: Any) -> dm_env_adaptor.DmEnvAdaptor:
    return dm_env_adaptor.create_and_join_world(connection, settings, {}).env


def packed(settings: dict[str, Any]) -> dict[str, pb.Tensor]:
    return {name: tensor_utils.pack_tensor(value) for name, value in settings.items()}


def create(connection: connections.Connection, **settings: Any) -> str:
    return connection.send(pb.CreateWorldRequest(settings=packed(settings))).world_name


def join(connection: connections.Connection, name: str) -> pb.ActionObservationSpecs:
    return connection.send(pb.JoinWorldRequest(world_name=name)).specs


def step(connection: connections.Connection, ctrl: float | None = None) -> pb.StepResponse:
    actions = {} if ctrl is None else {1: tensor_utils.pack_tensor(np.array([ctrl]))}
    return connection.send(pb.StepRequest(actions=actions, requested_observations=[1, 2, 3]))


def qpos(response: pb.StepResponse) -> np.ndarray:
    return tensor_utils.unpack_tensor(response.observations[1])


def refusal(connection: connections.Connection, request: Any) -> revolute.RevoluteError:
    with pytest.raises(error.DmEnvRpcError) as caught:
        connection.send(request)
    found = decode_status(caught.value._status_proto.SerializeToString())
    assert found is not None
    return found


class TestAsDmEnv(test_utils.EnvironmentTestMixin, absltest.TestCase):
    """What dm_env asks of every environment."""

    @pytest.fixture(autouse=True)
    def _take(self, connection: connections.Connection) -> None:
        self._connection = connection

    def make_object_under_test(self) -> dm_env.Environment:
        return environment(self._connection, model="cartpole", episode_length=20)

    def make_action_sequence(self) -> Any:
        spec = self.environment.action_spec()
        dice = np.random.default_rng(1)
        for _ in range(50):
            yield {name: dice.uniform(-1, 1, one.shape) for name, one in spec.items()}


def test_episodes_are_the_engines_rollouts_and_rewards_the_loss(
    connection: connections.Connection, in_process: revolute.Simulator
) -> None:
    start, actions = np.array([0.1, 0.05]), np.random.default_rng(3).normal(size=(15, 1))
    env = environment(
        connection,
        model="cartpole",
        options={"timestep": 0.005},
        hold=3,
        qpos=start,
        reward=json.dumps(LOSS),
        discount=0.97,
    )
    model = in_process.load_model("cartpole", timestep=0.005)
    trajectory = in_process.rollout(model, start, model.qvel0, np.repeat(actions, 3, axis=0))
    first = env.reset()
    assert first.first()
    assert first.observation["qpos"].tobytes() == start.tobytes()
    weights, target = np.array([1.0, 4.0]), np.array([0.2, 0.0])
    for index, action in enumerate(actions):
        now = env.step({"ctrl": action})
        expected = trajectory.qpos[3 * (index + 1)]
        assert now.observation["qpos"].tobytes() == expected.tobytes()
        assert now.observation["qvel"].tobytes() == trajectory.qvel[3 * (index + 1)].tobytes()
        reward = -(weights * (expected - target) ** 2).sum() - 0.01 * float(action @ action)
        np.testing.assert_allclose(now.reward, reward, rtol=1e-12)
        assert now.discount == 0.97


@pytest.mark.parametrize("observe", [["qpos", "qvel"], ["qvel"]])
def test_a_world_and_a_gymnasium_environment_of_one_task_have_the_same_episodes(
    connection: connections.Connection, in_process: revolute.Simulator, observe: list[str]
) -> None:
    document = {
        "reward": LOSS,
        "qpos_min": np.array([-np.inf, -0.4]),
        "qpos_max": np.array([np.inf, 0.4]),
        "observe": observe,
        "start_noise": 0.05,
        "hold": 5,
        "episode_length": 12,
    }
    settings = {**document, "reward": json.dumps(LOSS), "observe": np.array(observe)}
    world = environment(connection, model="cartpole", seed=7, **settings)
    model, task = in_process.load_model("cartpole"), revolute.Task.from_dict(document)
    env = Env(in_process, model, task)
    assert world.action_spec()["ctrl"].maximum == env.action_space.high == 20.0
    dice = np.random.default_rng(0)
    ends = []
    for episode in range(4):
        first, _ = env.reset(seed=7 if episode == 0 else None)
        seen = world.reset()
        while True:
            assert set(seen.observation) == {*observe}
            assert np.concatenate([seen.observation[name] for name in observe]).tobytes() == first.tobytes()
            if seen.last():
                break
            action = dice.uniform(-8, 8, 1) + 4.0 * (episode % 2)
            action = np.clip(action, -8, 8)
            first, reward, terminated, truncated, _ = env.step(action)
            seen = world.step({"ctrl": action})
            assert (seen.reward, seen.last()) == (reward, terminated or truncated)
        assert seen.discount == (0.0 if terminated else 1.0)
        ends.append(terminated)
    assert {*ends} == {True, False}


def test_an_episode_ends_at_its_length_and_the_next_begins(connection: connections.Connection) -> None:
    env = environment(connection, model="cartpole", episode_length=3, reward=json.dumps(LOSS))
    kinds = [env.reset().step_type, *(env.step({"ctrl": np.ones(1)}).step_type for _ in range(7))]
    first, mid, last = dm_env.StepType.FIRST, dm_env.StepType.MID, dm_env.StepType.LAST
    assert kinds == [first, mid, mid, last, first, mid, mid, last]


def test_leaving_the_range_terminates_with_discount_zero(connection: connections.Connection) -> None:
    settings = {"qpos_max": np.array([0.01, np.inf]), "reward": json.dumps(LOSS)}
    env = environment(connection, model="cartpole", **settings)
    env.reset()
    for _ in range(1000):
        now = env.step({"ctrl": np.full(1, 10.0)})
        if now.last():
            break
    assert now.last()
    assert now.discount == 0.0
    assert now.observation["qpos"][0] > 0.01
    assert now.reward < 0.0


def test_physics_beyond_the_finite_numbers_is_an_error_and_no_reward(
    connection: connections.Connection,
) -> None:
    join(connection, create(connection, text=CART, action_limit=1e6, qvel=np.array([1e308])))
    step(connection)
    request = pb.StepRequest(actions={1: tensor_utils.pack_tensor(np.array([1e6]))})
    for _ in range(3):
        found = None
        try:
            while True:
                connection.send(request)
        except error.DmEnvRpcError as caught:
            found = decode_status(caught._status_proto.SerializeToString())
        assert isinstance(found, revolute.DivergedError)
        assert step(connection).state == RUNNING


def test_an_action_left_out_holds_the_last_one(connection: connections.Connection) -> None:
    join(connection, create(connection, text=CART))
    step(connection)
    first, second = step(connection, 2.0), step(connection)
    # v = h u n, with h = 1 ms and m = 1 kg
    speeds = [tensor_utils.unpack_tensor(one.observations[2])[0] for one in (first, second)]
    np.testing.assert_allclose(speeds, [2e-3, 4e-3], rtol=1e-12)


def test_reset_takes_a_start(connection: connections.Connection) -> None:
    join(connection, create(connection, text=CART))
    step(connection)
    connection.send(pb.ResetRequest(settings=packed({"qpos": np.array([0.5])})))
    assert qpos(step(connection)) == [0.5]
    found = refusal(connection, pb.ResetRequest(settings=packed({"qpos": np.zeros(2)})))
    assert str(found) == "qpos: expected shape [1], got [2]"


def test_starts_are_random_and_repeat_with_the_seed(connect: Connect) -> None:
    def starts(seed: int) -> np.ndarray:
        connection = connect()
        join(connection, create(connection, model="laikago", start_noise=0.1, seed=seed))
        found = []
        for _ in range(3):
            found.append(qpos(step(connection)))
            connection.send(pb.ResetRequest())
        return np.array(found)

    one, again, other = starts(1), starts(1), starts(2)
    assert one.tobytes() == again.tobytes()
    assert (one != other).any(axis=1).all()
    assert len(np.unique(one, axis=0)) == 3
    np.testing.assert_allclose(np.linalg.norm(one[:, 3:7], axis=1), 1.0, rtol=1e-12)


def test_a_world_that_another_stream_resets_interrupts_its_agent(connect: Connect) -> None:
    agent, other = connect(), connect()
    name = create(other, text=CART)
    join(agent, name)
    step(agent)
    moved = step(agent, 1.0)
    request = pb.ResetWorldRequest(world_name=name, settings=packed({"qpos": np.array([0.25])}))
    caller = threading.Thread(target=other.send, args=(request,))
    caller.start()
    told = moved
    end = time.monotonic() + 10.0
    while told.state == RUNNING and time.monotonic() < end:
        told = step(agent, 1.0)
    assert told.state == INTERRUPTED
    caller.join(10.0)
    assert not caller.is_alive()
    again = step(agent)
    assert again.state == RUNNING
    assert qpos(again) == [0.25]


def test_a_world_has_one_agent_and_outlives_it(connect: Connect) -> None:
    maker, agent, late = connect(), connect(), connect()
    name = create(maker, text=CART)
    join(agent, name)
    assert "one that has an agent" in str(refusal(late, pb.JoinWorldRequest(world_name=name)))
    agent._stream._stream.cancel()
    end = time.monotonic() + 10.0
    while True:
        try:
            join(late, name)
            break
        except error.DmEnvRpcError:
            assert time.monotonic() < end, "the dead agent still holds the world"
            time.sleep(0.02)
    assert step(late).state == RUNNING


def test_a_destroyed_world_is_gone_for_its_agent(connect: Connect) -> None:
    maker, agent = connect(), connect()
    name = create(maker, text=CART)
    join(agent, name)
    step(agent)
    assert "its own" in str(refusal(agent, pb.DestroyWorldRequest(world_name=name)))
    maker.send(pb.DestroyWorldRequest(world_name=name))
    assert isinstance(refusal(agent, pb.StepRequest()), revolute.NotFoundError)
    agent.send(pb.LeaveWorldRequest())
    assert isinstance(refusal(agent, pb.JoinWorldRequest(world_name=name)), revolute.NotFoundError)


SETTINGS = {
    "no model": ({}, "settings: expected one of model, model_id, text, got none of them"),
    "two models": ({"model": "cartpole", "text": CART}, "got model, text"),
    "an unknown model": ({"model": "unicycle"}, "unicycle"),
    "a model id of nowhere": ({"model_id": "0" * 64}, "model_id"),
    "an unknown option": ({"model": "cartpole", "options.colour": 1}, "options.colour"),
    "a reward that is no loss": ({"model": "cartpole", "reward": "[]"}, "loss: expected"),
    "a reward that does not fit": (
        {"model": "cartpole", "reward": json.dumps({"terms": [{"quantity": "qpos", "index": [7]}]})},
        "loss.terms.0.index: expected entries from 0 to 1, got 7",
    ),
    "a start that does not fit": (
        {"model": "cartpole", "qpos": np.zeros(3)},
        "qpos: expected shape [2], got [3]",
    ),
    "no length": ({"model": "cartpole", "episode_length": 0}, "episode_length: expected a whole number"),
    "text for a number": ({"model": "cartpole", "discount": "high"}, "discount: expected a number"),
}


@pytest.mark.parametrize("case", SETTINGS)
def test_refused_settings(connection: connections.Connection, case: str) -> None:
    settings, text = SETTINGS[case]
    found = refusal(connection, pb.CreateWorldRequest(settings=packed(settings)))
    assert isinstance(found, ValueError | LookupError)
    assert text in str(found)


def tensor(shape: list[int], **payload: Any) -> pb.Tensor:
    made = pb.Tensor(shape=shape)
    for name, values in payload.items():
        getattr(made, name).array.extend(values)
    return made


TENSORS = {
    "nothing": tensor([]),
    "one element for 2^62": tensor([2**31 - 1, 2**31 - 1], doubles=[0.0]),
    "two unknown axes": tensor([-1, -1], doubles=[0.0, 1.0]),
    "too few elements": tensor([3], doubles=[0.0, 1.0]),
    "no elements": tensor([], doubles=[]),
}


@pytest.mark.parametrize("case", TENSORS)
def test_malformed_tensors(connection: connections.Connection, case: str) -> None:
    settings = {**packed({"model": "cartpole"}), "qpos": TENSORS[case]}
    assert refusal(connection, pb.CreateWorldRequest(settings=settings)).reason == "INVALID_ARGUMENT"
    join(connection, create(connection, model="cartpole"))
    step(connection)
    assert refusal(connection, pb.StepRequest(actions={1: TENSORS[case]})).reason == "INVALID_ARGUMENT"
    assert step(connection).state == RUNNING


def test_requests_out_of_place(connection: connections.Connection) -> None:
    assert "send join_world first" in str(refusal(connection, pb.StepRequest()))
    connection.send(pb.LeaveWorldRequest())
    connection._stream.write(pb.EnvironmentRequest())
    assert "payload: expected one of create_world" in connection._stream.read().error.message


def test_a_stream_that_waits_does_not_hold_up_the_end() -> None:
    with (
        running_server("--dm-env-rpc", "0", "--grace", "20") as server,
        grpc.insecure_channel(server.dm_env_rpc_target) as channel,
    ):
        connection = connections.Connection(channel)
        join(connection, create(connection, text=CART))
        step(connection)
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 10.0
        with pytest.raises(grpc.RpcError) as caught:
            step(connection)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


def test_a_stream_needs_a_token_that_may_run(tmp_path: Path) -> None:
    tokens = {role: new_token() for role in ("read", "run")}
    file = tmp_path / "tokens"
    file.write_text("".join(f"{token_line(role, role, token)}\n" for role, token in tokens.items()))

    def code(channel: grpc.Channel, metadata: list[tuple[str, str]]) -> grpc.StatusCode | None:
        try:
            create(connections.Connection(channel, metadata), text=CART)
        except grpc.RpcError as error:
            return error.code()
        return None

    with (
        running_server("--dm-env-rpc", "0", "--tokens", str(file)) as server,
        grpc.insecure_channel(server.dm_env_rpc_target) as channel,
    ):
        assert code(channel, []) is grpc.StatusCode.UNAUTHENTICATED
        assert (
            code(channel, [("authorization", f"Bearer {tokens['read']}")])
            is grpc.StatusCode.PERMISSION_DENIED
        )
        assert code(channel, [("authorization", f"Bearer {tokens['run']}")]) is None


def test_a_world_belongs_to_the_token_that_made_it(tmp_path: Path) -> None:
    roles = {"ann": "run", "ben": "run", "root": "admin"}
    tokens = write_tokens(tmp_path / "tokens", roles)
    flags = ("--dm-env-rpc", "0", "--tokens", str(tmp_path / "tokens"), "--max-client-sessions", "1")
    with running_server(*flags) as server, grpc.insecure_channel(server.dm_env_rpc_target) as channel:

        def stream(name: str) -> connections.Connection:
            return connections.Connection(channel, [("authorization", f"Bearer {tokens[name]}")])

        ann, ben, root = stream("ann"), stream("ben"), stream("root")
        world = create(ann, text=CART)
        for request in (pb.JoinWorldRequest, pb.ResetWorldRequest, pb.DestroyWorldRequest):
            found, missing = (refusal(ben, request(world_name=name)) for name in (world, "0" * 32))
            assert isinstance(found, revolute.NotFoundError)
            assert str(found).replace(world, "0" * 32) == str(missing)
        # each token has its share of worlds
        assert "--max-client-sessions" in str(
            refusal(ann, pb.CreateWorldRequest(settings=packed({"text": CART})))
        )
        assert create(ben, text=CART)
        join(ann, world)
        step(ann)
        ann.send(pb.LeaveWorldRequest())
        root.send(pb.DestroyWorldRequest(world_name=world))
        assert isinstance(refusal(ann, pb.JoinWorldRequest(world_name=world)), revolute.NotFoundError)


def test_bytes_that_are_no_request(facade: ServerProcess, connection: connections.Connection) -> None:
    with grpc.insecure_channel(facade.dm_env_rpc_target) as channel:
        process = channel.stream_stream("/dm_env_rpc.v1.Environment/Process")
        first, second = process(
            iter([b"\xff\xff\xff", pb.EnvironmentRequest().SerializeToString()]), timeout=10.0
        )
    assert "3 bytes that are none" in pb.EnvironmentResponse.FromString(first).error.message
    assert "payload" in pb.EnvironmentResponse.FromString(second).error.message


def test_without_the_extra_the_server_says_what_to_install() -> None:
    hidden = (
        "import sys; sys.modules['dm_env_rpc'] = None; from revolute_server.cli import main; sys.exit(main())"
    )
    ports = ["--grpc-port", "0", "--http-port", "0", "--dm-env-rpc", "0"]
    done = subprocess.run(
        [sys.executable, "-c", hidden, *ports],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("revolute serve: dm_env_rpc: expected the package dm-env-rpc, got none")
    assert "revolute-server[dm-env-rpc]" in done.stderr
    assert len(done.stderr.splitlines()) == 1


PAGE = (Path(__file__).parents[3] / "docs/dm_env_rpc.md").read_text(encoding="utf-8")


def test_the_pages_example_runs(facade: ServerProcess) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    assert "127.0.0.1:50052" in code
    code = code.replace("127.0.0.1:50052", facade.dm_env_rpc_target)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("(2,)\n")


def test_no_fault_was_logged(facade: ServerProcess) -> None:
    assert facade.process.poll() is None
    assert "incident" not in facade.log.read_text()
