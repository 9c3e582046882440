"""The compliance tests that the package dm-env-rpc brings, against our server."""

from __future__ import annotations

from typing import Any

import pytest
from dm_env_rpc.v1 import compliance, tensor_utils
from dm_env_rpc.v1 import connection as connections
from dm_env_rpc.v1 import dm_env_rpc_pb2 as pb

SETTINGS = {
    "cartpole": {"model": "cartpole"},
    "laikago": {"model": "laikago", "hold": 2, "options.timestep": 2e-3},
}


def packed(settings: dict[str, Any]) -> dict[str, pb.Tensor]:
    return {name: tensor_utils.pack_tensor(value) for name, value in settings.items()}


def world_of(connection: connections.Connection, model: str = "cartpole") -> str:
    return connection.send(pb.CreateWorldRequest(settings=packed(SETTINGS[model]))).world_name


class _Connected:
    """Takes a connection from the fixture."""

    @pytest.fixture(autouse=True)
    def _take(self, connection: connections.Connection) -> None:
        self._connection = connection

    @property
    def connection(self) -> connections.Connection:
        return self._connection


class _InAWorld(_Connected):
    """Makes a world."""

    @pytest.fixture(autouse=True)
    def _make(self, _take: None) -> None:
        self._world_name = world_of(self._connection)

    @property
    def world_name(self) -> str:
        return self._world_name

    def join(self) -> pb.ActionObservationSpecs:
        return self.connection.send(pb.JoinWorldRequest(world_name=self.world_name)).specs


class TestCreateDestroyWorld(_Connected, compliance.CreateDestroyWorld):
    has_multiple_world_support = True
    required_world_settings = packed({"model": "cartpole"})
    invalid_world_settings = packed(
        {
            "gravity": 1,
            "episode_length": 0,
            "hold": 1.5,
            "discount": 2.0,
            "reward": "{",
            "text": "",
        }
    )


class TestJoinLeaveWorld(_InAWorld, compliance.JoinLeaveWorld):
    invalid_join_settings = packed({"team": "red"})


class TestReset(_InAWorld, compliance.Reset):
    def join_world(self) -> pb.ActionObservationSpecs:
        return self.join()


class TestResetWorld(_InAWorld, compliance.ResetWorld):
    pass


class TestStep(_InAWorld, compliance.Step):
    @pytest.fixture(autouse=True)
    def _join(self, _make: None) -> None:
        self._specs = self.join()

    @property
    def specs(self) -> pb.ActionObservationSpecs:
        return self._specs


class TestStepOfAQuadruped(TestStep):
    @pytest.fixture(autouse=True)
    def _make(self, _take: None) -> None:
        self._world_name = world_of(self._connection, "laikago")
