from google.protobuf import descriptor_pb2 as _descriptor_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROLE_UNSPECIFIED: _ClassVar[Role]
    ROLE_READ: _ClassVar[Role]
    ROLE_RUN: _ClassVar[Role]
    ROLE_ADMIN: _ClassVar[Role]
ROLE_UNSPECIFIED: Role
ROLE_READ: Role
ROLE_RUN: Role
ROLE_ADMIN: Role
VERB_FIELD_NUMBER: _ClassVar[int]
verb: _descriptor.FieldDescriptor

class Verb(_message.Message):
    __slots__ = ("role", "mutation", "computes", "large_answer", "http", "creates")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    MUTATION_FIELD_NUMBER: _ClassVar[int]
    COMPUTES_FIELD_NUMBER: _ClassVar[int]
    LARGE_ANSWER_FIELD_NUMBER: _ClassVar[int]
    HTTP_FIELD_NUMBER: _ClassVar[int]
    CREATES_FIELD_NUMBER: _ClassVar[int]
    role: Role
    mutation: bool
    computes: bool
    large_answer: bool
    http: str
    creates: bool
    def __init__(self, role: _Optional[_Union[Role, str]] = ..., mutation: bool = ..., computes: bool = ..., large_answer: bool = ..., http: _Optional[str] = ..., creates: bool = ...) -> None: ...
