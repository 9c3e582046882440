"""The table of verbs, read from the method options of the proto files (proto/revolute/v1/verb.proto)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from google.protobuf.descriptor import MethodDescriptor

from .v1 import model_pb2, server_pb2, session_pb2, trajectory_pb2, verb_pb2

_FILES = (model_pb2, session_pb2, trajectory_pb2, server_pb2)


@dataclass(frozen=True)
class Verb:
    """Properties of a verb that transports and server use.

    Attributes:
        name: unique name: the rpc's name, but "SessionJacobian" for SessionService.Jacobian.
        rpc: "Service.Method".
        method: the rpc's descriptor.
        role: lowest role of a caller: 1 may read, 2 run, 3 everything.
        mutation: whether the verb changes state on the server; it takes effect once per `request_id`.
        computes: whether the verb needs a worker of the engine.
        large_answer: whether a small request can have a large answer.
        http_method: HTTP method.
        http_path: HTTP path, with "{}" for the id.
        id_field: request field in the path; empty if the path has no id.
        creates: whether the HTTP status of success is 201.
        wrapped_in: name of the only field of an answer that wraps one message; empty for any other answer.
    """

    name: str
    rpc: str
    method: MethodDescriptor
    role: int
    mutation: bool
    computes: bool
    large_answer: bool
    http_method: str
    http_path: str
    id_field: str
    creates: bool
    wrapped_in: str


def _verb(method: MethodDescriptor) -> Verb:
    # the stubs lack the type of method option extensions
    options: verb_pb2.Verb = method.GetOptions().Extensions[verb_pb2.verb]  # type: ignore[index]
    service = method.containing_service.name
    http_method, path = options.http.split()
    names = re.findall(r"{(\w+)}", path)
    return Verb(
        name="SessionJacobian" if (service, method.name) == ("SessionService", "Jacobian") else method.name,
        rpc=f"{service}.{method.name}",
        method=method,
        role=options.role or verb_pb2.ROLE_ADMIN,
        mutation=options.mutation,
        computes=options.computes,
        large_answer=options.large_answer,
        http_method=http_method,
        http_path=re.sub(r"{\w+}", "{}", path),
        id_field=names[0] if names else "",
        creates=options.creates,
        wrapped_in=_wrapped_in(method),
    )


def _wrapped_in(method: MethodDescriptor) -> str:
    """Return the name of the only field of an answer that wraps one message, or an empty one."""
    fields = method.output_type.fields
    if method.server_streaming or len(fields) != 1 or fields[0].message_type is None:
        return ""
    return fields[0].name


VERBS = {
    verb.name: verb
    for file in _FILES
    for service in file.DESCRIPTOR.services_by_name.values()
    for verb in map(_verb, service.methods)
}
"""Every verb by its name."""

BY_RPC = {verb.rpc: verb for verb in VERBS.values()}
"""Every verb by its rpc, "Service.Method"."""
