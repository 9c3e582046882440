"""The worlds of the server, by name; unused worlds are destroyed after a while."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from revolute.contract.errors import ArgumentError, LimitError, NotFoundError

from ..access.call import current_client
from ..access.caller import is_visible
from ..compute.memory_budget import Reservation
from ..verbs import Verbs
from .task import model_request, read_task
from .world import World

IDLE_SECONDS = 600.0
"""Time for which a world is kept after the last stream that holds it has ended."""


class Worlds:
    """CreateWorld, JoinWorld, LeaveWorld and DestroyWorld.

    A world belongs to the token that created it; other callers, except admins, get NOT_FOUND. A stream holds
    the worlds that it has created and the world that it has joined. A world without streams is destroyed
    after IDLE_SECONDS, so that the worlds of dead agents are removed.
    """

    def __init__(self, verbs: Verbs) -> None:
        self._verbs = verbs
        self._worlds: dict[str, tuple[World, Reservation]] = {}
        self._holders: dict[str, int] = {}
        self._ends: dict[str, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        return len(self._worlds)

    async def create(self, settings: Mapping[str, Any]) -> World:
        """Create a world, held by the caller's stream.

        Raises:
            ArgumentError: the settings do not describe a model and a task.
            ModelError: the model's text does not compile.
            LimitError: there are too many worlds.
        """
        service = self._verbs.service
        self._check_room()
        request = model_request(settings)
        if "model_id" not in request:
            request = await self._verbs.register_model(request)
        model = await service.models.get(request["model_id"])
        world = World(service, model, read_task(model, settings))
        self._worlds[world.name] = world, service.budget.reserve("a world", 16 * (model.nq + model.nv)).keep()
        self.hold(world)
        return world

    def _check_room(self) -> None:
        """Check that the server and the client may have another world.

        Raises:
            LimitError: there are too many worlds.
        """
        settings, client = self._verbs.service.settings, current_client()
        own = sum(world.client == client for world, _ in self._worlds.values())
        for count, limit, whose, flag in (
            (own, settings.max_client_sessions, " of one client", "--max-client-sessions"),
            (len(self._worlds), settings.max_sessions, "", "--max-sessions"),
        ):
            if limit is not None and count >= limit:
                raise LimitError.expected(
                    "worlds",
                    f"at most {limit}{whose}, as many as sessions",
                    "one more",
                    advice=f"destroy one, or start the server with a larger {flag}",
                )

    def get(self, name: str) -> World:
        """Return a world by its name.

        Raises:
            NotFoundError: it was destroyed, never existed, or belongs to another caller.
        """
        if name not in self._worlds or not is_visible(self._worlds[name][0].owner):
            advice = "it was destroyed or made elsewhere"
            raise NotFoundError.expected("world_name", "the name of a world", repr(name[:80]), advice=advice)
        return self._worlds[name][0]

    def join(self, name: str) -> World:
        """Join an agent to a world; its stream holds the world.

        Raises:
            NotFoundError: as for `get`.
            ArgumentError: the world already has an agent.
        """
        world = self.get(name)
        if world.joined:
            raise ArgumentError.expected("world_name", "a world without an agent", "one that has an agent")
        world.joined = True
        self.hold(world)
        return world

    def leave(self, world: World) -> None:
        """Remove the agent from its world."""
        world.leave()
        self.release(world)

    def destroy(self, name: str) -> None:
        """Destroy a world; its agent gets an error at its next request.

        Raises:
            NotFoundError: as for `get`.
        """
        self._end(self.get(name).name)

    def _end(self, name: str) -> None:
        world, reservation = self._worlds.pop(name)
        del self._holders[name]
        if name in self._ends:
            self._ends.pop(name).cancel()
        reservation.release()
        world.destroyed = True
        world.reset({})

    def hold(self, world: World) -> None:
        """Count a stream that holds a world."""
        self._holders[world.name] = self._holders.get(world.name, 0) + 1
        if world.name in self._ends:
            self._ends.pop(world.name).cancel()

    def release(self, world: World) -> None:
        """Stop counting a stream that holds a world; a world without streams is destroyed after a while."""
        if world.name not in self._worlds:
            return
        self._holders[world.name] -= 1
        if not self._holders[world.name]:
            loop = asyncio.get_running_loop()
            self._ends[world.name] = loop.call_later(IDLE_SECONDS, self._end, world.name)
