from revolute.v1 import tensor_pb2 as _tensor_pb2
from revolute.v1 import trajectory_pb2 as _trajectory_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CreateSessionRequest(_message.Message):
    __slots__ = ("model_id", "batch")
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    model_id: str
    batch: int
    def __init__(self, model_id: _Optional[str] = ..., batch: _Optional[int] = ...) -> None: ...

class CreateSessionResponse(_message.Message):
    __slots__ = ("session_id", "model_id", "batch")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    model_id: str
    batch: int
    def __init__(self, session_id: _Optional[str] = ..., model_id: _Optional[str] = ..., batch: _Optional[int] = ...) -> None: ...

class SessionState(_message.Message):
    __slots__ = ("qpos", "qvel", "time", "step_count", "status")
    QPOS_FIELD_NUMBER: _ClassVar[int]
    QVEL_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    STEP_COUNT_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    qpos: _tensor_pb2.Tensor
    qvel: _tensor_pb2.Tensor
    time: float
    step_count: int
    status: _tensor_pb2.Tensor
    def __init__(self, qpos: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., qvel: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., time: _Optional[float] = ..., step_count: _Optional[int] = ..., status: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...

class ResetRequest(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: ResetInputs
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[ResetInputs, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class ResetInputs(_message.Message):
    __slots__ = ("session_id", "qpos", "qvel")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    QPOS_FIELD_NUMBER: _ClassVar[int]
    QVEL_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    qpos: _tensor_pb2.Tensor
    qvel: _tensor_pb2.Tensor
    def __init__(self, session_id: _Optional[str] = ..., qpos: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., qvel: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...

class ResetResponse(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: SessionState
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[SessionState, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class StepRequest(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: StepInputs
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[StepInputs, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class StepInputs(_message.Message):
    __slots__ = ("session_id", "ctrl", "steps")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CTRL_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    ctrl: _tensor_pb2.Tensor
    steps: int
    def __init__(self, session_id: _Optional[str] = ..., ctrl: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., steps: _Optional[int] = ...) -> None: ...

class StepResponse(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: SessionState
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[SessionState, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class GetStateRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class GetStateResponse(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: SessionState
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[SessionState, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class SessionServiceJacobianRequest(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: SessionJacobianInputs
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[SessionJacobianInputs, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class SessionJacobianInputs(_message.Message):
    __slots__ = ("session_id", "ctrl")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CTRL_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    ctrl: _tensor_pb2.Tensor
    def __init__(self, session_id: _Optional[str] = ..., ctrl: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...

class SessionServiceJacobianResponse(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: _trajectory_pb2.StepJacobian
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[_trajectory_pb2.StepJacobian, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class DeleteSessionRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class DeleteSessionResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
