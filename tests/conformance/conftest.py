"""Which server is judged: `pytest tests/conformance --address grpc://host:port`, or one of ours over every
transport. `--token TOKEN` (or REVOLUTE_TOKEN) and `--ca FILE` are for servers with tokens and with TLS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testbed.wire import GrpcWire, HttpWire

Wire = GrpcWire | HttpWire
WAYS = ("grpc", "json", "npz")


@pytest.fixture(scope="session", params=WAYS)
def wire(request: pytest.FixtureRequest) -> Iterator[Wire]:
    """Return each way to reach the server that is judged; those its address does not have are skipped."""
    address = request.config.getoption("address")
    token, ca = request.config.getoption("token"), request.config.getoption("ca")
    scheme = "grpc" if request.param == "grpc" else "http"
    if address is None:
        address = getattr(request.getfixturevalue("server"), scheme)
    elif not address.startswith((f"{scheme}://", f"{scheme}s://")):
        pytest.skip(f"{address} does not speak {request.param}")
    judged: Wire
    if request.param == "grpc":
        judged = GrpcWire(address.partition("://")[2], token, ca=ca)
    else:
        judged = HttpWire(address, npz=request.param == "npz", token=token, ca=ca)
    yield judged
    judged.close()
