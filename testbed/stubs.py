"""Service stubs for bare gRPC, made from the descriptors of the messages.

The client and the server of revolute make their own calls from the table of verbs, so the package ships no
generated service stubs.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from google.protobuf.message_factory import GetMessageClass


def service_of(messages: ModuleType) -> Any:
    """Return the descriptor of the service in a module of messages, such as `session_pb2`."""
    (service,) = messages.DESCRIPTOR.services_by_name.values()
    return service


class Stub:
    """The rpcs of a service as methods.

    Args:
        messages: the module of the service's messages, such as `session_pb2`.
        channel: a channel of grpc or grpc.aio.
    """

    def __init__(self, messages: ModuleType, channel: Any) -> None:
        service = service_of(messages)
        for rpc in service.methods:
            one = "stream" if rpc.client_streaming else "unary"
            other = "stream" if rpc.server_streaming else "unary"
            method = getattr(channel, f"{one}_{other}")(
                f"/{service.full_name}/{rpc.name}",
                request_serializer=GetMessageClass(rpc.input_type).SerializeToString,
                response_deserializer=GetMessageClass(rpc.output_type).FromString,
            )
            setattr(self, rpc.name, method)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the service has no rpc {name}")
