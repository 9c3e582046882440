from revolute.contract.v1 import verb_pb2 as _verb_pb2
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
    __slots__ = ("max_request", "max_json", "memory", "max_models", "max_sessions", "max_trajectories", "queue", "max_model", "max_mesh", "max_batch", "store_bytes", "lease", "max_lease", "trajectory_ttl", "request_ttl", "max_requests")
    MAX_REQUEST_FIELD_NUMBER: _ClassVar[int]
    MAX_JSON_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    MAX_MODELS_FIELD_NUMBER: _ClassVar[int]
    MAX_SESSIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_TRAJECTORIES_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MAX_MODEL_FIELD_NUMBER: _ClassVar[int]
    MAX_MESH_FIELD_NUMBER: _ClassVar[int]
    MAX_BATCH_FIELD_NUMBER: _ClassVar[int]
    STORE_BYTES_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    MAX_LEASE_FIELD_NUMBER: _ClassVar[int]
    TRAJECTORY_TTL_FIELD_NUMBER: _ClassVar[int]
    REQUEST_TTL_FIELD_NUMBER: _ClassVar[int]
    MAX_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    max_request: int
    max_json: int
    memory: int
    max_models: int
    max_sessions: int
    max_trajectories: int
    queue: int
    max_model: int
    max_mesh: int
    max_batch: int
    store_bytes: int
    lease: float
    max_lease: float
    trajectory_ttl: float
    request_ttl: float
    max_requests: int
    def __init__(self, max_request: _Optional[int] = ..., max_json: _Optional[int] = ..., memory: _Optional[int] = ..., max_models: _Optional[int] = ..., max_sessions: _Optional[int] = ..., max_trajectories: _Optional[int] = ..., queue: _Optional[int] = ..., max_model: _Optional[int] = ..., max_mesh: _Optional[int] = ..., max_batch: _Optional[int] = ..., store_bytes: _Optional[int] = ..., lease: _Optional[float] = ..., max_lease: _Optional[float] = ..., trajectory_ttl: _Optional[float] = ..., request_ttl: _Optional[float] = ..., max_requests: _Optional[int] = ...) -> None: ...

class Build(_message.Message):
    __slots__ = ("isa", "lanes", "threads", "workers", "python", "numpy", "machine")
    ISA_FIELD_NUMBER: _ClassVar[int]
    LANES_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    PYTHON_FIELD_NUMBER: _ClassVar[int]
    NUMPY_FIELD_NUMBER: _ClassVar[int]
    MACHINE_FIELD_NUMBER: _ClassVar[int]
    isa: str
    lanes: int
    threads: int
    workers: int
    python: str
    numpy: str
    machine: str
    def __init__(self, isa: _Optional[str] = ..., lanes: _Optional[int] = ..., threads: _Optional[int] = ..., workers: _Optional[int] = ..., python: _Optional[str] = ..., numpy: _Optional[str] = ..., machine: _Optional[str] = ...) -> None: ...
