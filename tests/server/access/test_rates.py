"""Calls and steps of a client per second: exactly on a clock of the test's own, then over each transport."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import numpy as np
import pytest
from dm_env_rpc.v1 import dm_env_rpc_pb2 as pb
from dm_env_rpc.v1 import dm_env_rpc_pb2_grpc as pb_grpc
from google.rpc import status_pb2

import revolute
from revolute.contract.codec.status import decode_status
from revolute.contract.errors import ArgumentError, LimitError
from revolute_server.access import tokens as auth
from revolute_server.access.admission import Calls
from revolute_server.access.caller import Caller, Role
from revolute_server.access.rates import Rates
from revolute_server.settings import Settings
from testbed.cart import CART
from testbed.server_process import ServerProcess, running_server
from testbed.wire import GrpcWire, HttpWire

from ..observe.test_metrics import sample, scrape

ROLLOUT = "TrajectoryService.Rollout"
RARE = 1e-3  # calls per second: one call, and then none during a test


class Client:
    """Makes calls at times that the test chooses."""

    def __init__(self, **rates: Any) -> None:
        self.now = 100.0
        self.refusals: list[str] = []
        self.rates = Rates(**rates, refused=self.refusals.append, clock=lambda: self.now)
        self.calls = Calls(auth.Access(None), rates=self.rates)

    def call(
        self, host: str = "ann", *, steps: int = 0, own: Caller | None = None, verb: str = ROLLOUT
    ) -> None:
        if own is not None:
            self.calls.access.admit = lambda *_: own  # type: ignore[method-assign]
        with self.calls.open("grpc", {}, verb, host=host) as call:
            self.calls.admit(call, None)
            self.rates.use_steps(steps)

    def refused(self, host: str = "ann", **options: Any) -> LimitError:
        with pytest.raises(LimitError) as caught:
            self.call(host, **options)
        return caught.value


def test_a_second_of_calls_at_once_and_then_one_after_the_other() -> None:
    client = Client(calls=4.0)
    for _ in range(4):
        client.call()
    error = client.refused()
    assert error.retry_after == pytest.approx(0.25)
    assert str(error).startswith("calls: expected at most 4 calls of one client per second")
    client.now += 0.24
    assert client.refused().retry_after == pytest.approx(0.01)
    client.now += 0.01
    client.call()
    client.refused()
    # another client has its own; a long pause gives no more than one second's calls
    client.call("bob")
    client.now += 1000.0
    for _ in range(4):
        client.call()
    client.refused()
    assert client.refusals == ["calls"] * 4


def test_over_time_a_client_gets_its_rate() -> None:
    client, made = Client(calls=50.0), 0
    for _ in range(10_000):
        client.now += 1e-3
        try:
            client.call()
            made += 1
        except LimitError:
            pass
    assert made == pytest.approx(50 + 50 * 10, abs=1)


def test_less_than_one_call_per_second() -> None:
    client = Client(calls=0.1)
    client.call()
    assert client.refused().retry_after == pytest.approx(10.0)
    client.now += 10.0
    client.call()


def test_steps_are_paid_for_before_the_next_call_that_computes() -> None:
    client = Client(steps=1000.0)
    client.call(steps=999)
    client.call(steps=5000)  # begins within the second that a client may be ahead
    error = client.refused()
    assert error.argument == "steps" and error.retry_after == pytest.approx(4.999)
    client.call(verb="SessionService.GetSession")
    client.now += 5.0
    client.call(steps=1)
    assert client.refusals == ["steps"]


def test_a_token_has_its_own_rates() -> None:
    client = Client(calls=1.0)
    fast = Caller("ann", Role.RUN, calls_per_second=3.0)
    for _ in range(3):
        client.call(own=fast)
    client.refused(own=fast)
    client.call(own=Caller("bob", Role.RUN))
    client.refused(own=Caller("bob", Role.RUN))
    for _ in range(100):
        client.call(own=Caller("eve", Role.RUN, calls_per_second=float("inf")))


def test_clients_that_are_not_ahead_are_forgotten() -> None:
    client = Client(calls=10.0)
    for number in range(5000):
        client.now += 1.0
        client.call(f"host {number}")
    assert len(client.rates._calls._until) <= 1025


@pytest.mark.parametrize("verb", ["Health", "Metrics", "Status"])
def test_health_and_metrics_do_not_count(verb: str) -> None:
    client = Client(calls=RARE)
    for _ in range(3):
        client.call(verb=verb)
    client.call()
    client.call(verb=verb)
    client.refused()


def test_rates_in_the_token_file(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    command = (sys.executable, "-m", "revolute", "token", "new", "--role", "run", "--tokens", str(file))
    found = {}
    for name, flags in {
        "plain": (),
        "slow": ("--calls", "2.5"),
        "both": ("--steps", "1e6", "--calls", "20", "--expires", "2099-01-31"),
    }.items():
        done = subprocess.run([*command, "--name", name, *flags], capture_output=True, text=True, check=True)
        found[name] = auth.TokenFile(file).find(done.stdout.strip())
    callers = {
        name: (token.caller.calls_per_second, token.caller.steps_per_second) for name, token in found.items()
    }
    assert callers == {"plain": (None, None), "slow": (2.5, None), "both": (20.0, 1e6)}
    assert str(found["both"].last_day) == "2099-01-31"
    wrong = subprocess.run([*command, "--name", "x", "--calls", "-1"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "calls: expected a positive number per second, got '-1'" in wrong.stderr
    past = subprocess.run(
        [*command, "--name", "x", "--expires", "2020-01-31"], capture_output=True, text=True
    )
    assert past.returncode == 2 and "expires: expected a day from today on, got 2020-01-31" in past.stderr
    assert len(file.read_text().splitlines()) == len(callers)


@pytest.mark.parametrize("field", ["calls=0", "calls=nan", "steps=many", "cats=3", "calls="])
def test_wrong_rates_in_the_token_file(tmp_path: Path, field: str) -> None:
    (tmp_path / "tokens").write_text(f"{auth.token_line('ann', 'run', 'x')}:{field}\n")
    with pytest.raises(ArgumentError, match=r"at .*tokens line 1"):
        auth.TokenFile(tmp_path / "tokens")


@pytest.mark.parametrize("name", ["max_client_rate", "max_client_steps"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_wrong_settings(name: str, value: float) -> None:
    with pytest.raises(ArgumentError, match=f"{name}: expected a positive number per second"):
        Settings(**{name: value})


@pytest.fixture(scope="module")
def rare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerProcess, dict[str, str]]]:
    """Return a server that lets each token make one call, and takes one second to think of the next."""
    file = tmp_path_factory.mktemp("rates") / "tokens"
    tokens = {name: auth.new_token() for name in ("grpc", "http", "env", "upload", "steps", "free")}
    rates = {"steps": {"calls": "inf", "steps": "10"}, "free": {"calls": "inf"}}
    file.write_text(
        "".join(f"{auth.token_line(name, 'run', tokens[name], rates=rates.get(name))}\n" for name in tokens)
    )
    flags = ("--tokens", str(file), "--max-client-rate", str(RARE), "--dm-env-rpc", "0")
    with running_server(*flags) as server:
        yield server, tokens


Rare = tuple[ServerProcess, dict[str, str]]


def test_over_grpc(rare: Rare) -> None:
    server, tokens = rare
    wire = GrpcWire(server.grpc_target, tokens["grpc"])
    wire.call("ListModels", {})
    for _ in range(2):
        error, code = wire.error("ListModels", {})
        assert (code, error.argument) == ("RESOURCE_EXHAUSTED", "calls")
        assert 900 < error.retry_after <= 1000  # RetryInfo
    wire.close()


def test_over_http(rare: Rare) -> None:
    server, tokens = rare
    wire = HttpWire(server.http, npz=False, token=tokens["http"])
    wire.call("ListModels", {})
    answer = wire.send("ListModels", {})
    assert answer.status_code == 429
    assert 900 < answer.json()["retry_after"] <= int(answer.headers["retry-after"]) <= 1000
    # what watches a server does not count
    for _ in range(3):
        assert httpx.get(server.http + "/readyz").status_code == 200
        metrics = httpx.get(server.http + "/metrics", headers={"authorization": f"Bearer {tokens['http']}"})
        assert metrics.status_code == 200
    assert 'revolute_rate_refusals_total{limit="calls"}' in metrics.text
    wire.close()


def test_over_dm_env_rpc(rare: Rare) -> None:
    server, tokens = rare
    with grpc.insecure_channel(server.dm_env_rpc_target) as channel:
        request = pb.EnvironmentRequest(leave_world=pb.LeaveWorldRequest())
        metadata = (("authorization", f"Bearer {tokens['env']}"),)
        answers = list(pb_grpc.EnvironmentStub(channel).Process(iter([request] * 2), metadata=metadata))
    assert [answer.WhichOneof("payload") for answer in answers] == ["leave_world", "error"]
    error = decode_status(answers[1].error.SerializeToString())
    assert isinstance(error, LimitError) and error.retry_after > 900
    assert isinstance(answers[1].error, status_pb2.Status)


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_an_upload_that_is_refused(rare: Rare, transport: str) -> None:
    """The refusal comes before the request has been read, and still reaches the client."""
    server, tokens = rare
    inputs = {"model_id": "x", "qpos": np.zeros((4096, 1)), "qvel": np.zeros((4096, 1))}
    document = {**inputs, "ctrl": np.zeros((4096, 1000, 1))}
    if transport == "grpc":
        wire: Any = GrpcWire(server.grpc_target, tokens["upload"])
    else:
        wire = HttpWire(server.http, npz=True, token=tokens["upload"])
    wire.error("Rollout", document)
    error, code = wire.error("Rollout", document)
    assert code in ("RESOURCE_EXHAUSTED", "429") and error.argument == "calls"
    wire.close()


def test_steps_of_a_token(rare: Rare) -> None:
    server, tokens = rare
    with revolute.connect(server.grpc, token=tokens["free"]) as admin:
        model = admin.load_model(CART)
        for _ in range(3):
            admin.rollout(model, np.zeros(1), np.zeros(1), np.ones((1000, 1)))
    with revolute.connect(server.http, token=tokens["steps"], timeout=30.0) as simulator:
        model = simulator.load_model(CART)
        simulator.rollout(model, np.zeros(1), np.zeros(1), np.ones((1000, 1)))
        # 1000 steps at 10 per second: it does not wait that long
        with pytest.raises(LimitError, match="steps: expected at most 10 steps of one client per second"):
            simulator.rollout(model, np.zeros(1), np.zeros(1), np.ones((1, 1)))
        assert simulator.models()


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_the_client_waits_as_it_is_told(transport: str) -> None:
    with running_server("--max-client-rate", "5") as server:
        with revolute.connect(getattr(server, transport)) as simulator:
            cart = simulator.load_model(CART)
            for _ in range(12):
                simulator.rollout(cart, np.zeros(1), np.zeros(1), np.ones((2, 1)))
        found = scrape(server)
    assert sample(found, "revolute_rate_refusals_total", limit="calls") > 0
    labels = {"verb": ROLLOUT, "transport": transport}
    assert sample(found, "revolute_requests_total", **labels, reason="OK") == 12
