"""The dm_env_rpc transport, with which dm_env_rpc agents step the server's models (`--dm-env-rpc PORT`).

A world is a model with a task. `task` reads the task from the settings of a world, `world` runs episodes,
`specs` describes actions and observations, `tensors` converts arrays, and `servicer` answers the stream of an
agent. docs/dm_env_rpc.md is the user's guide. Only `servicer` and its imports need the optional package
dm-env-rpc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from revolute.contract.errors import UnavailableError

from ..access.admission import Calls
from ..grpc.waits import Peers
from ..verbs import Verbs

if TYPE_CHECKING:
    from .listener import Listener


def create_listener(verbs: Verbs, calls: Calls, peers: Peers) -> Listener:
    """Build the gRPC server of dm_env_rpc; it is not yet bound to an address.

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
    return Listener(verbs, calls, peers)
