from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetServerInfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetServerInfoResponse(_message.Message):
    __slots__ = ("version", "api_versions", "features", "limits", "build")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    API_VERSIONS_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    BUILD_FIELD_NUMBER: _ClassVar[int]
    version: str
    api_versions: _containers.RepeatedScalarFieldContainer[str]
    features: _containers.RepeatedScalarFieldContainer[str]
    limits: Limits
    build: Build
    def __init__(self, version: _Optional[str] = ..., api_versions: _Optional[_Iterable[str]] = ..., features: _Optional[_Iterable[str]] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ..., build: _Optional[_Union[Build, _Mapping]] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("request_bytes", "sessions", "trajectories", "trajectory_bytes", "models", "calls")
    REQUEST_BYTES_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    TRAJECTORIES_FIELD_NUMBER: _ClassVar[int]
    TRAJECTORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    request_bytes: int
    sessions: int
    trajectories: int
    trajectory_bytes: int
    models: int
    calls: int
    def __init__(self, request_bytes: _Optional[int] = ..., sessions: _Optional[int] = ..., trajectories: _Optional[int] = ..., trajectory_bytes: _Optional[int] = ..., models: _Optional[int] = ..., calls: _Optional[int] = ...) -> None: ...

class Build(_message.Message):
    __slots__ = ("engine_version", "isa", "lanes", "threads")
    ENGINE_VERSION_FIELD_NUMBER: _ClassVar[int]
    ISA_FIELD_NUMBER: _ClassVar[int]
    LANES_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    engine_version: str
    isa: str
    lanes: int
    threads: int
    def __init__(self, engine_version: _Optional[str] = ..., isa: _Optional[str] = ..., lanes: _Optional[int] = ..., threads: _Optional[int] = ...) -> None: ...
