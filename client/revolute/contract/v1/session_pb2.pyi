from revolute.contract.v1 import tensor_pb2 as _tensor_pb2
from revolute.contract.v1 import trajectory_pb2 as _trajectory_pb2
from revolute.contract.v1 import verb_pb2 as _verb_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CreateSessionRequest(_message.Message):
    __slots__ = ("model_id", "batch", "lease", "request_id", "durable")
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DURABLE_FIELD_NUMBER: _ClassVar[int]
    model_id: str
    batch: int
    lease: float
    request_id: str
    durable: bool
    def __init__(self, model_id: _Optional[str] = ..., batch: _Optional[int] = ..., lease: _Optional[float] = ..., request_id: _Optional[str] = ..., durable: bool = ...) -> None: ...

class CreateSessionResponse(_message.Message):
    __slots__ = ("session_id", "model_id", "batch", "lease", "durable")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    DURABLE_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    model_id: str
    batch: int
    lease: float
    durable: bool
    def __init__(self, session_id: _Optional[str] = ..., model_id: _Optional[str] = ..., batch: _Optional[int] = ..., lease: _Optional[float] = ..., durable: bool = ...) -> None: ...

class GetSessionRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class GetSessionResponse(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: SessionInfo
    def __init__(self, session: _Optional[_Union[SessionInfo, _Mapping]] = ...) -> None: ...

class SessionInfo(_message.Message):
    __slots__ = ("session_id", "model_id", "batch", "step_count", "lease", "expires_in", "age", "durable")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    STEP_COUNT_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_IN_FIELD_NUMBER: _ClassVar[int]
    AGE_FIELD_NUMBER: _ClassVar[int]
    DURABLE_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    model_id: str
    batch: int
    step_count: int
    lease: float
    expires_in: float
    age: float
    durable: bool
    def __init__(self, session_id: _Optional[str] = ..., model_id: _Optional[str] = ..., batch: _Optional[int] = ..., step_count: _Optional[int] = ..., lease: _Optional[float] = ..., expires_in: _Optional[float] = ..., age: _Optional[float] = ..., durable: bool = ...) -> None: ...

class ListSessionsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListSessionsResponse(_message.Message):
    __slots__ = ("sessions", "next_page_token")
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    sessions: _containers.RepeatedCompositeFieldContainer[SessionInfo]
    next_page_token: str
    def __init__(self, sessions: _Optional[_Iterable[_Union[SessionInfo, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class KeepAliveRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class KeepAliveResponse(_message.Message):
    __slots__ = ("lease",)
    LEASE_FIELD_NUMBER: _ClassVar[int]
    lease: float
    def __init__(self, lease: _Optional[float] = ...) -> None: ...

class SessionState(_message.Message):
    __slots__ = ("qpos", "qvel", "time", "step_count", "status", "step_counts", "unsettled_step", "residual", "measured", "mocap_pos", "mocap_quat", "ctrl")
    class MeasuredEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _tensor_pb2.Tensor
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...
    QPOS_FIELD_NUMBER: _ClassVar[int]
    QVEL_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    STEP_COUNT_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    STEP_COUNTS_FIELD_NUMBER: _ClassVar[int]
    UNSETTLED_STEP_FIELD_NUMBER: _ClassVar[int]
    RESIDUAL_FIELD_NUMBER: _ClassVar[int]
    MEASURED_FIELD_NUMBER: _ClassVar[int]
    MOCAP_POS_FIELD_NUMBER: _ClassVar[int]
    MOCAP_QUAT_FIELD_NUMBER: _ClassVar[int]
    CTRL_FIELD_NUMBER: _ClassVar[int]
    qpos: _tensor_pb2.Tensor
    qvel: _tensor_pb2.Tensor
    time: float
    step_count: int
    status: _tensor_pb2.Tensor
    step_counts: _tensor_pb2.Tensor
    unsettled_step: _tensor_pb2.Tensor
    residual: _tensor_pb2.Tensor
    measured: _containers.MessageMap[str, _tensor_pb2.Tensor]
    mocap_pos: _tensor_pb2.Tensor
    mocap_quat: _tensor_pb2.Tensor
    ctrl: _tensor_pb2.Tensor
    def __init__(self, qpos: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., qvel: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., time: _Optional[float] = ..., step_count: _Optional[int] = ..., status: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., step_counts: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., unsettled_step: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., residual: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., measured: _Optional[_Mapping[str, _tensor_pb2.Tensor]] = ..., mocap_pos: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., mocap_quat: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., ctrl: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...

class ResetRequest(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: ResetInputs
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[ResetInputs, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class ResetInputs(_message.Message):
    __slots__ = ("session_id", "qpos", "qvel", "request_id", "where", "mocap_pos", "mocap_quat")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    QPOS_FIELD_NUMBER: _ClassVar[int]
    QVEL_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    MOCAP_POS_FIELD_NUMBER: _ClassVar[int]
    MOCAP_QUAT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    qpos: _tensor_pb2.Tensor
    qvel: _tensor_pb2.Tensor
    request_id: str
    where: _tensor_pb2.Tensor
    mocap_pos: _tensor_pb2.Tensor
    mocap_quat: _tensor_pb2.Tensor
    def __init__(self, session_id: _Optional[str] = ..., qpos: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., qvel: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., request_id: _Optional[str] = ..., where: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., mocap_pos: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., mocap_quat: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...

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
    __slots__ = ("session_id", "ctrl", "steps", "request_id", "measure", "qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat", "hold", "feedback", "policy")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CTRL_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    MEASURE_FIELD_NUMBER: _ClassVar[int]
    QFRC_APPLIED_FIELD_NUMBER: _ClassVar[int]
    XFRC_APPLIED_FIELD_NUMBER: _ClassVar[int]
    MOCAP_POS_FIELD_NUMBER: _ClassVar[int]
    MOCAP_QUAT_FIELD_NUMBER: _ClassVar[int]
    HOLD_FIELD_NUMBER: _ClassVar[int]
    FEEDBACK_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    ctrl: _tensor_pb2.Tensor
    steps: int
    request_id: str
    measure: _containers.RepeatedScalarFieldContainer[str]
    qfrc_applied: _tensor_pb2.Tensor
    xfrc_applied: _tensor_pb2.Tensor
    mocap_pos: _tensor_pb2.Tensor
    mocap_quat: _tensor_pb2.Tensor
    hold: int
    feedback: _trajectory_pb2.Feedback
    policy: _trajectory_pb2.Policy
    def __init__(self, session_id: _Optional[str] = ..., ctrl: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., steps: _Optional[int] = ..., request_id: _Optional[str] = ..., measure: _Optional[_Iterable[str]] = ..., qfrc_applied: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., xfrc_applied: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., mocap_pos: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., mocap_quat: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., hold: _Optional[int] = ..., feedback: _Optional[_Union[_trajectory_pb2.Feedback, _Mapping]] = ..., policy: _Optional[_Union[_trajectory_pb2.Policy, _Mapping]] = ...) -> None: ...

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

class SetStateRequest(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: SetStateInputs
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[SetStateInputs, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class SetStateInputs(_message.Message):
    __slots__ = ("session_id", "qpos", "qvel", "step_count", "request_id", "step_counts", "mocap_pos", "mocap_quat", "ctrl")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    QPOS_FIELD_NUMBER: _ClassVar[int]
    QVEL_FIELD_NUMBER: _ClassVar[int]
    STEP_COUNT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_COUNTS_FIELD_NUMBER: _ClassVar[int]
    MOCAP_POS_FIELD_NUMBER: _ClassVar[int]
    MOCAP_QUAT_FIELD_NUMBER: _ClassVar[int]
    CTRL_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    qpos: _tensor_pb2.Tensor
    qvel: _tensor_pb2.Tensor
    step_count: int
    request_id: str
    step_counts: _tensor_pb2.Tensor
    mocap_pos: _tensor_pb2.Tensor
    mocap_quat: _tensor_pb2.Tensor
    ctrl: _tensor_pb2.Tensor
    def __init__(self, session_id: _Optional[str] = ..., qpos: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., qvel: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., step_count: _Optional[int] = ..., request_id: _Optional[str] = ..., step_counts: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., mocap_pos: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., mocap_quat: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., ctrl: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...

class SetStateResponse(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: SessionState
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[SessionState, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class SetParamsRequest(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: SetParamsInputs
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[SetParamsInputs, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class SetParamsInputs(_message.Message):
    __slots__ = ("session_id", "params", "request_id")
    class ParamsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _tensor_pb2.Tensor
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    params: _containers.MessageMap[str, _tensor_pb2.Tensor]
    request_id: str
    def __init__(self, session_id: _Optional[str] = ..., params: _Optional[_Mapping[str, _tensor_pb2.Tensor]] = ..., request_id: _Optional[str] = ...) -> None: ...

class SetParamsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ForkSessionRequest(_message.Message):
    __slots__ = ("session_id", "lease", "request_id")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    lease: float
    request_id: str
    def __init__(self, session_id: _Optional[str] = ..., lease: _Optional[float] = ..., request_id: _Optional[str] = ...) -> None: ...

class ForkSessionResponse(_message.Message):
    __slots__ = ("session_id", "model_id", "batch", "lease", "durable")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    DURABLE_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    model_id: str
    batch: int
    lease: float
    durable: bool
    def __init__(self, session_id: _Optional[str] = ..., model_id: _Optional[str] = ..., batch: _Optional[int] = ..., lease: _Optional[float] = ..., durable: bool = ...) -> None: ...

class SessionServiceJacobianRequest(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: SessionJacobianInputs
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[SessionJacobianInputs, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class SessionJacobianInputs(_message.Message):
    __slots__ = ("session_id", "ctrl", "qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CTRL_FIELD_NUMBER: _ClassVar[int]
    QFRC_APPLIED_FIELD_NUMBER: _ClassVar[int]
    XFRC_APPLIED_FIELD_NUMBER: _ClassVar[int]
    MOCAP_POS_FIELD_NUMBER: _ClassVar[int]
    MOCAP_QUAT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    ctrl: _tensor_pb2.Tensor
    qfrc_applied: _tensor_pb2.Tensor
    xfrc_applied: _tensor_pb2.Tensor
    mocap_pos: _tensor_pb2.Tensor
    mocap_quat: _tensor_pb2.Tensor
    def __init__(self, session_id: _Optional[str] = ..., ctrl: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., qfrc_applied: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., xfrc_applied: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., mocap_pos: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., mocap_quat: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...

class SessionServiceJacobianResponse(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: _trajectory_pb2.StepJacobian
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[_trajectory_pb2.StepJacobian, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class DeleteSessionRequest(_message.Message):
    __slots__ = ("session_id", "request_id")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    request_id: str
    def __init__(self, session_id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteSessionResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
