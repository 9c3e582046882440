"""A façade that lets agents written for dm_env_rpc step the server's models (`--dm-env-rpc PORT`).

A world is a model with a task: `task` reads it from a world's settings, `world` is its life from episode to
episode, `specs` says what an agent sees and does, `tensors` reads and writes the protocol's arrays, and
`servicer` answers the stream of an agent. docs/dm_env_rpc.md is the user's view. Only `servicer` and what it
imports need the package dm-env-rpc, an optional extra.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from revolute.contract.errors import UnavailableError

from ..access.admission import Calls
from ..verbs import Verbs

if TYPE_CHECKING:
    from .listener import Listener


def create_listener(verbs: Verbs, calls: Calls) -> Listener:
    """Build the façade's gRPC server; it is not yet bound to an address.

    Raises:
        UnavailableError: the package dm-env-rpc is not installed.
    """
    try:
        from .listener import Listener
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == __package__.partition(".")[0]:
            raise
        raise UnavailableError(
            f"dm_env_rpc: expected the package dm-env-rpc, got none ({error}); "
            "pip install 'revolute-server[dm-env-rpc]' brings it "
            "(from a clone: pip install ./client '.[dm-env-rpc]')",
            argument="dm_env_rpc",
        ) from error
    return Listener(verbs, calls)
