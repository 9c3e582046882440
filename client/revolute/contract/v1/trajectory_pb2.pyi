from revolute.contract.v1 import gradient_report_pb2 as _gradient_report_pb2
from revolute.contract.v1 import tensor_pb2 as _tensor_pb2
from revolute.contract.v1 import verb_pb2 as _verb_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RolloutRequest(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: RolloutInputs
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[RolloutInputs, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class RolloutInputs(_message.Message):
    __slots__ = ("model_id", "qpos", "qvel", "ctrl", "params", "checkpoints", "states", "request_id", "forget", "hold", "feedback", "policy", "qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat", "measure")
    class ParamsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _tensor_pb2.Tensor
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    QPOS_FIELD_NUMBER: _ClassVar[int]
    QVEL_FIELD_NUMBER: _ClassVar[int]
    CTRL_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    FORGET_FIELD_NUMBER: _ClassVar[int]
    HOLD_FIELD_NUMBER: _ClassVar[int]
    FEEDBACK_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    QFRC_APPLIED_FIELD_NUMBER: _ClassVar[int]
    XFRC_APPLIED_FIELD_NUMBER: _ClassVar[int]
    MOCAP_POS_FIELD_NUMBER: _ClassVar[int]
    MOCAP_QUAT_FIELD_NUMBER: _ClassVar[int]
    MEASURE_FIELD_NUMBER: _ClassVar[int]
    model_id: str
    qpos: _tensor_pb2.Tensor
    qvel: _tensor_pb2.Tensor
    ctrl: _tensor_pb2.Tensor
    params: _containers.MessageMap[str, _tensor_pb2.Tensor]
    checkpoints: str
    states: str
    request_id: str
    forget: _containers.RepeatedScalarFieldContainer[str]
    hold: int
    feedback: Feedback
    policy: Policy
    qfrc_applied: _tensor_pb2.Tensor
    xfrc_applied: _tensor_pb2.Tensor
    mocap_pos: _tensor_pb2.Tensor
    mocap_quat: _tensor_pb2.Tensor
    measure: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, model_id: _Optional[str] = ..., qpos: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., qvel: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., ctrl: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., params: _Optional[_Mapping[str, _tensor_pb2.Tensor]] = ..., checkpoints: _Optional[str] = ..., states: _Optional[str] = ..., request_id: _Optional[str] = ..., forget: _Optional[_Iterable[str]] = ..., hold: _Optional[int] = ..., feedback: _Optional[_Union[Feedback, _Mapping]] = ..., policy: _Optional[_Union[Policy, _Mapping]] = ..., qfrc_applied: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., xfrc_applied: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., mocap_pos: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., mocap_quat: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., measure: _Optional[_Iterable[str]] = ...) -> None: ...

class Feedback(_message.Message):
    __slots__ = ("gain", "qpos", "qvel")
    GAIN_FIELD_NUMBER: _ClassVar[int]
    QPOS_FIELD_NUMBER: _ClassVar[int]
    QVEL_FIELD_NUMBER: _ClassVar[int]
    gain: _tensor_pb2.Tensor
    qpos: _tensor_pb2.Tensor
    qvel: _tensor_pb2.Tensor
    def __init__(self, gain: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., qpos: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., qvel: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...

class Policy(_message.Message):
    __slots__ = ("weights", "sizes", "observe", "activation", "scale", "squash", "goal")
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    SIZES_FIELD_NUMBER: _ClassVar[int]
    OBSERVE_FIELD_NUMBER: _ClassVar[int]
    ACTIVATION_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    SQUASH_FIELD_NUMBER: _ClassVar[int]
    GOAL_FIELD_NUMBER: _ClassVar[int]
    weights: _tensor_pb2.Tensor
    sizes: _containers.RepeatedScalarFieldContainer[int]
    observe: _containers.RepeatedScalarFieldContainer[str]
    activation: str
    scale: _tensor_pb2.Tensor
    squash: bool
    goal: _tensor_pb2.Tensor
    def __init__(self, weights: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., sizes: _Optional[_Iterable[int]] = ..., observe: _Optional[_Iterable[str]] = ..., activation: _Optional[str] = ..., scale: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., squash: bool = ..., goal: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...

class RolloutResponse(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: Trajectory
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[Trajectory, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class Trajectory(_message.Message):
    __slots__ = ("trajectory_id", "model_id", "qpos", "qvel", "ctrl", "status", "diverged_step", "report", "final_qpos", "final_qvel", "checkpoints", "hold", "params", "unsettled_step", "residual", "inputs", "measured")
    class ParamsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _tensor_pb2.Tensor
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...
    class InputsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _tensor_pb2.Tensor
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...
    class MeasuredEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _tensor_pb2.Tensor
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...
    TRAJECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    QPOS_FIELD_NUMBER: _ClassVar[int]
    QVEL_FIELD_NUMBER: _ClassVar[int]
    CTRL_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    DIVERGED_STEP_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    FINAL_QPOS_FIELD_NUMBER: _ClassVar[int]
    FINAL_QVEL_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    HOLD_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    UNSETTLED_STEP_FIELD_NUMBER: _ClassVar[int]
    RESIDUAL_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    MEASURED_FIELD_NUMBER: _ClassVar[int]
    trajectory_id: str
    model_id: str
    qpos: _tensor_pb2.Tensor
    qvel: _tensor_pb2.Tensor
    ctrl: _tensor_pb2.Tensor
    status: _tensor_pb2.Tensor
    diverged_step: _tensor_pb2.Tensor
    report: CheckpointReport
    final_qpos: _tensor_pb2.Tensor
    final_qvel: _tensor_pb2.Tensor
    checkpoints: str
    hold: int
    params: _containers.MessageMap[str, _tensor_pb2.Tensor]
    unsettled_step: _tensor_pb2.Tensor
    residual: _tensor_pb2.Tensor
    inputs: _containers.MessageMap[str, _tensor_pb2.Tensor]
    measured: _containers.MessageMap[str, _tensor_pb2.Tensor]
    def __init__(self, trajectory_id: _Optional[str] = ..., model_id: _Optional[str] = ..., qpos: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., qvel: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., ctrl: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., status: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., diverged_step: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., report: _Optional[_Union[CheckpointReport, _Mapping]] = ..., final_qpos: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., final_qvel: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., checkpoints: _Optional[str] = ..., hold: _Optional[int] = ..., params: _Optional[_Mapping[str, _tensor_pb2.Tensor]] = ..., unsettled_step: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., residual: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., inputs: _Optional[_Mapping[str, _tensor_pb2.Tensor]] = ..., measured: _Optional[_Mapping[str, _tensor_pb2.Tensor]] = ...) -> None: ...

class CheckpointReport(_message.Message):
    __slots__ = ("states_stored", "checkpoint_bytes", "replayed_steps")
    STATES_STORED_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_BYTES_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_STEPS_FIELD_NUMBER: _ClassVar[int]
    states_stored: int
    checkpoint_bytes: int
    replayed_steps: int
    def __init__(self, states_stored: _Optional[int] = ..., checkpoint_bytes: _Optional[int] = ..., replayed_steps: _Optional[int] = ...) -> None: ...

class StreamRolloutRequest(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: StreamRolloutInputs
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[StreamRolloutInputs, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class StreamRolloutInputs(_message.Message):
    __slots__ = ("inputs", "segment_steps")
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_STEPS_FIELD_NUMBER: _ClassVar[int]
    inputs: RolloutInputs
    segment_steps: int
    def __init__(self, inputs: _Optional[_Union[RolloutInputs, _Mapping]] = ..., segment_steps: _Optional[int] = ...) -> None: ...

class StreamRolloutResponse(_message.Message):
    __slots__ = ("start", "chunk", "end")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    start: RolloutSegment
    chunk: _tensor_pb2.Chunk
    end: RolloutEnd
    def __init__(self, start: _Optional[_Union[RolloutSegment, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ..., end: _Optional[_Union[RolloutEnd, _Mapping]] = ...) -> None: ...

class RolloutSegment(_message.Message):
    __slots__ = ("first", "qpos", "qvel", "ctrl")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    QPOS_FIELD_NUMBER: _ClassVar[int]
    QVEL_FIELD_NUMBER: _ClassVar[int]
    CTRL_FIELD_NUMBER: _ClassVar[int]
    first: int
    qpos: _tensor_pb2.Tensor
    qvel: _tensor_pb2.Tensor
    ctrl: _tensor_pb2.Tensor
    def __init__(self, first: _Optional[int] = ..., qpos: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., qvel: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., ctrl: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...

class RolloutEnd(_message.Message):
    __slots__ = ("trajectory_id", "model_id", "status", "diverged_step", "report", "unsettled_step", "residual")
    TRAJECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    DIVERGED_STEP_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    UNSETTLED_STEP_FIELD_NUMBER: _ClassVar[int]
    RESIDUAL_FIELD_NUMBER: _ClassVar[int]
    trajectory_id: str
    model_id: str
    status: _tensor_pb2.Tensor
    diverged_step: _tensor_pb2.Tensor
    report: CheckpointReport
    unsettled_step: _tensor_pb2.Tensor
    residual: _tensor_pb2.Tensor
    def __init__(self, trajectory_id: _Optional[str] = ..., model_id: _Optional[str] = ..., status: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., diverged_step: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., report: _Optional[_Union[CheckpointReport, _Mapping]] = ..., unsettled_step: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., residual: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...

class GetTrajectoryRequest(_message.Message):
    __slots__ = ("trajectory_id", "states")
    TRAJECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    trajectory_id: str
    states: str
    def __init__(self, trajectory_id: _Optional[str] = ..., states: _Optional[str] = ...) -> None: ...

class GetTrajectoryResponse(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: Trajectory
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[Trajectory, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class BackwardRequest(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: Cotangents
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[Cotangents, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class Cotangents(_message.Message):
    __slots__ = ("trajectory_id", "qpos_bar", "qvel_bar", "wrt", "times", "clip", "on_diverged", "ctrl_bar", "gradient")
    TRAJECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    QPOS_BAR_FIELD_NUMBER: _ClassVar[int]
    QVEL_BAR_FIELD_NUMBER: _ClassVar[int]
    WRT_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    CLIP_FIELD_NUMBER: _ClassVar[int]
    ON_DIVERGED_FIELD_NUMBER: _ClassVar[int]
    CTRL_BAR_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_FIELD_NUMBER: _ClassVar[int]
    trajectory_id: str
    qpos_bar: _tensor_pb2.Tensor
    qvel_bar: _tensor_pb2.Tensor
    wrt: _containers.RepeatedScalarFieldContainer[str]
    times: EntryList
    clip: float
    on_diverged: str
    ctrl_bar: _tensor_pb2.Tensor
    gradient: str
    def __init__(self, trajectory_id: _Optional[str] = ..., qpos_bar: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., qvel_bar: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., wrt: _Optional[_Iterable[str]] = ..., times: _Optional[_Union[EntryList, _Mapping]] = ..., clip: _Optional[float] = ..., on_diverged: _Optional[str] = ..., ctrl_bar: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., gradient: _Optional[str] = ...) -> None: ...

class BackwardResponse(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: Gradient
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[Gradient, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class Gradient(_message.Message):
    __slots__ = ("arrays", "status", "report", "clipped", "notes", "method")
    class ArraysEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _tensor_pb2.Tensor
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...
    ARRAYS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    CLIPPED_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    arrays: _containers.MessageMap[str, _tensor_pb2.Tensor]
    status: _tensor_pb2.Tensor
    report: CheckpointReport
    clipped: _tensor_pb2.Tensor
    notes: _containers.RepeatedScalarFieldContainer[str]
    method: str
    def __init__(self, arrays: _Optional[_Mapping[str, _tensor_pb2.Tensor]] = ..., status: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., report: _Optional[_Union[CheckpointReport, _Mapping]] = ..., clipped: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., notes: _Optional[_Iterable[str]] = ..., method: _Optional[str] = ...) -> None: ...

class ValueAndGradientRequest(_message.Message):
    __slots__ = ("start", "chunk", "cotangents")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    COTANGENTS_FIELD_NUMBER: _ClassVar[int]
    start: ValueAndGradientInputs
    chunk: _tensor_pb2.Chunk
    cotangents: Cotangents
    def __init__(self, start: _Optional[_Union[ValueAndGradientInputs, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ..., cotangents: _Optional[_Union[Cotangents, _Mapping]] = ...) -> None: ...

class ValueAndGradientInputs(_message.Message):
    __slots__ = ("inputs", "loss", "wrt", "clip", "on_diverged", "gradient")
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    WRT_FIELD_NUMBER: _ClassVar[int]
    CLIP_FIELD_NUMBER: _ClassVar[int]
    ON_DIVERGED_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_FIELD_NUMBER: _ClassVar[int]
    inputs: RolloutInputs
    loss: Loss
    wrt: _containers.RepeatedScalarFieldContainer[str]
    clip: float
    on_diverged: str
    gradient: str
    def __init__(self, inputs: _Optional[_Union[RolloutInputs, _Mapping]] = ..., loss: _Optional[_Union[Loss, _Mapping]] = ..., wrt: _Optional[_Iterable[str]] = ..., clip: _Optional[float] = ..., on_diverged: _Optional[str] = ..., gradient: _Optional[str] = ...) -> None: ...

class Loss(_message.Message):
    __slots__ = ("terms",)
    TERMS_FIELD_NUMBER: _ClassVar[int]
    terms: _containers.RepeatedCompositeFieldContainer[LossTerm]
    def __init__(self, terms: _Optional[_Iterable[_Union[LossTerm, _Mapping]]] = ...) -> None: ...

class LossTerm(_message.Message):
    __slots__ = ("quantity", "weight", "target", "when", "index", "form", "times", "elements", "relative_to")
    QUANTITY_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    WHEN_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    FORM_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    RELATIVE_TO_FIELD_NUMBER: _ClassVar[int]
    quantity: str
    weight: _tensor_pb2.Tensor
    target: _tensor_pb2.Tensor
    when: str
    index: EntryList
    form: str
    times: EntryList
    elements: _containers.RepeatedScalarFieldContainer[str]
    relative_to: str
    def __init__(self, quantity: _Optional[str] = ..., weight: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., target: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., when: _Optional[str] = ..., index: _Optional[_Union[EntryList, _Mapping]] = ..., form: _Optional[str] = ..., times: _Optional[_Union[EntryList, _Mapping]] = ..., elements: _Optional[_Iterable[str]] = ..., relative_to: _Optional[str] = ...) -> None: ...

class EntryList(_message.Message):
    __slots__ = ("entries",)
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, entries: _Optional[_Iterable[int]] = ...) -> None: ...

class ValueAndGradientResponse(_message.Message):
    __slots__ = ("start", "chunk", "trajectory")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    TRAJECTORY_FIELD_NUMBER: _ClassVar[int]
    start: ValueAndGradientResult
    chunk: _tensor_pb2.Chunk
    trajectory: Trajectory
    def __init__(self, start: _Optional[_Union[ValueAndGradientResult, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ..., trajectory: _Optional[_Union[Trajectory, _Mapping]] = ...) -> None: ...

class ValueAndGradientResult(_message.Message):
    __slots__ = ("value", "gradient", "diverged_step", "report", "unsettled_step", "residual")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_FIELD_NUMBER: _ClassVar[int]
    DIVERGED_STEP_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    UNSETTLED_STEP_FIELD_NUMBER: _ClassVar[int]
    RESIDUAL_FIELD_NUMBER: _ClassVar[int]
    value: _tensor_pb2.Tensor
    gradient: Gradient
    diverged_step: _tensor_pb2.Tensor
    report: CheckpointReport
    unsettled_step: _tensor_pb2.Tensor
    residual: _tensor_pb2.Tensor
    def __init__(self, value: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., gradient: _Optional[_Union[Gradient, _Mapping]] = ..., diverged_step: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., report: _Optional[_Union[CheckpointReport, _Mapping]] = ..., unsettled_step: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., residual: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...

class JvpRequest(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: Tangents
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[Tangents, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class Tangents(_message.Message):
    __slots__ = ("trajectory_id", "qpos_tan", "qvel_tan", "ctrl_tan", "params_tan", "control_tan")
    class ParamsTanEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _tensor_pb2.Tensor
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...
    class ControlTanEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _tensor_pb2.Tensor
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...
    TRAJECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    QPOS_TAN_FIELD_NUMBER: _ClassVar[int]
    QVEL_TAN_FIELD_NUMBER: _ClassVar[int]
    CTRL_TAN_FIELD_NUMBER: _ClassVar[int]
    PARAMS_TAN_FIELD_NUMBER: _ClassVar[int]
    CONTROL_TAN_FIELD_NUMBER: _ClassVar[int]
    trajectory_id: str
    qpos_tan: _tensor_pb2.Tensor
    qvel_tan: _tensor_pb2.Tensor
    ctrl_tan: _tensor_pb2.Tensor
    params_tan: _containers.MessageMap[str, _tensor_pb2.Tensor]
    control_tan: _containers.MessageMap[str, _tensor_pb2.Tensor]
    def __init__(self, trajectory_id: _Optional[str] = ..., qpos_tan: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., qvel_tan: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., ctrl_tan: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., params_tan: _Optional[_Mapping[str, _tensor_pb2.Tensor]] = ..., control_tan: _Optional[_Mapping[str, _tensor_pb2.Tensor]] = ...) -> None: ...

class JvpResponse(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: TrajectoryTangent
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[TrajectoryTangent, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class TrajectoryTangent(_message.Message):
    __slots__ = ("qpos", "qvel")
    QPOS_FIELD_NUMBER: _ClassVar[int]
    QVEL_FIELD_NUMBER: _ClassVar[int]
    qpos: _tensor_pb2.Tensor
    qvel: _tensor_pb2.Tensor
    def __init__(self, qpos: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., qvel: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...

class JacobianRequest(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: JacobianInputs
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[JacobianInputs, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class JacobianInputs(_message.Message):
    __slots__ = ("model_id", "qpos", "qvel", "ctrl", "params", "qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat")
    class ParamsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _tensor_pb2.Tensor
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    QPOS_FIELD_NUMBER: _ClassVar[int]
    QVEL_FIELD_NUMBER: _ClassVar[int]
    CTRL_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    QFRC_APPLIED_FIELD_NUMBER: _ClassVar[int]
    XFRC_APPLIED_FIELD_NUMBER: _ClassVar[int]
    MOCAP_POS_FIELD_NUMBER: _ClassVar[int]
    MOCAP_QUAT_FIELD_NUMBER: _ClassVar[int]
    model_id: str
    qpos: _tensor_pb2.Tensor
    qvel: _tensor_pb2.Tensor
    ctrl: _tensor_pb2.Tensor
    params: _containers.MessageMap[str, _tensor_pb2.Tensor]
    qfrc_applied: _tensor_pb2.Tensor
    xfrc_applied: _tensor_pb2.Tensor
    mocap_pos: _tensor_pb2.Tensor
    mocap_quat: _tensor_pb2.Tensor
    def __init__(self, model_id: _Optional[str] = ..., qpos: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., qvel: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., ctrl: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., params: _Optional[_Mapping[str, _tensor_pb2.Tensor]] = ..., qfrc_applied: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., xfrc_applied: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., mocap_pos: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., mocap_quat: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...

class JacobianResponse(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: StepJacobian
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[StepJacobian, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class StepJacobian(_message.Message):
    __slots__ = ("A", "B")
    A_FIELD_NUMBER: _ClassVar[int]
    B_FIELD_NUMBER: _ClassVar[int]
    A: _tensor_pb2.Tensor
    B: _tensor_pb2.Tensor
    def __init__(self, A: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., B: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...

class MeasuredStates(_message.Message):
    __slots__ = ("model_id", "qpos", "qvel", "ctrl", "time", "params", "trajectory_id", "times", "session_id", "qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat")
    class ParamsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _tensor_pb2.Tensor
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    QPOS_FIELD_NUMBER: _ClassVar[int]
    QVEL_FIELD_NUMBER: _ClassVar[int]
    CTRL_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    TRAJECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    QFRC_APPLIED_FIELD_NUMBER: _ClassVar[int]
    XFRC_APPLIED_FIELD_NUMBER: _ClassVar[int]
    MOCAP_POS_FIELD_NUMBER: _ClassVar[int]
    MOCAP_QUAT_FIELD_NUMBER: _ClassVar[int]
    model_id: str
    qpos: _tensor_pb2.Tensor
    qvel: _tensor_pb2.Tensor
    ctrl: _tensor_pb2.Tensor
    time: float
    params: _containers.MessageMap[str, _tensor_pb2.Tensor]
    trajectory_id: str
    times: EntryList
    session_id: str
    qfrc_applied: _tensor_pb2.Tensor
    xfrc_applied: _tensor_pb2.Tensor
    mocap_pos: _tensor_pb2.Tensor
    mocap_quat: _tensor_pb2.Tensor
    def __init__(self, model_id: _Optional[str] = ..., qpos: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., qvel: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., ctrl: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., time: _Optional[float] = ..., params: _Optional[_Mapping[str, _tensor_pb2.Tensor]] = ..., trajectory_id: _Optional[str] = ..., times: _Optional[_Union[EntryList, _Mapping]] = ..., session_id: _Optional[str] = ..., qfrc_applied: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., xfrc_applied: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., mocap_pos: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., mocap_quat: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...

class MeasureRequest(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: MeasureInputs
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[MeasureInputs, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class MeasureInputs(_message.Message):
    __slots__ = ("states", "quantities", "jacobians", "cotangents", "wrt")
    class CotangentsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _tensor_pb2.Tensor
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...
    STATES_FIELD_NUMBER: _ClassVar[int]
    QUANTITIES_FIELD_NUMBER: _ClassVar[int]
    JACOBIANS_FIELD_NUMBER: _ClassVar[int]
    COTANGENTS_FIELD_NUMBER: _ClassVar[int]
    WRT_FIELD_NUMBER: _ClassVar[int]
    states: MeasuredStates
    quantities: _containers.RepeatedScalarFieldContainer[str]
    jacobians: _containers.RepeatedScalarFieldContainer[str]
    cotangents: _containers.MessageMap[str, _tensor_pb2.Tensor]
    wrt: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, states: _Optional[_Union[MeasuredStates, _Mapping]] = ..., quantities: _Optional[_Iterable[str]] = ..., jacobians: _Optional[_Iterable[str]] = ..., cotangents: _Optional[_Mapping[str, _tensor_pb2.Tensor]] = ..., wrt: _Optional[_Iterable[str]] = ...) -> None: ...

class MeasureResponse(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: Measured
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[Measured, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class Measured(_message.Message):
    __slots__ = ("arrays", "jacobians", "gradient")
    class ArraysEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _tensor_pb2.Tensor
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...
    class JacobiansEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _tensor_pb2.Tensor
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...
    class GradientEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _tensor_pb2.Tensor
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...
    ARRAYS_FIELD_NUMBER: _ClassVar[int]
    JACOBIANS_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_FIELD_NUMBER: _ClassVar[int]
    arrays: _containers.MessageMap[str, _tensor_pb2.Tensor]
    jacobians: _containers.MessageMap[str, _tensor_pb2.Tensor]
    gradient: _containers.MessageMap[str, _tensor_pb2.Tensor]
    def __init__(self, arrays: _Optional[_Mapping[str, _tensor_pb2.Tensor]] = ..., jacobians: _Optional[_Mapping[str, _tensor_pb2.Tensor]] = ..., gradient: _Optional[_Mapping[str, _tensor_pb2.Tensor]] = ...) -> None: ...

class FindContactsRequest(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: MeasuredStates
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[MeasuredStates, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class FindContactsResponse(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: ContactList
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[ContactList, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class ContactList(_message.Message):
    __slots__ = ("state", "geom", "distance", "position", "frame", "force")
    STATE_FIELD_NUMBER: _ClassVar[int]
    GEOM_FIELD_NUMBER: _ClassVar[int]
    DISTANCE_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    state: _tensor_pb2.Tensor
    geom: _tensor_pb2.Tensor
    distance: _tensor_pb2.Tensor
    position: _tensor_pb2.Tensor
    frame: _tensor_pb2.Tensor
    force: _tensor_pb2.Tensor
    def __init__(self, state: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., geom: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., distance: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., position: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., frame: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., force: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...

class CheckGradientRequest(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: CheckGradientInputs
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[CheckGradientInputs, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class CheckGradientInputs(_message.Message):
    __slots__ = ("model_id", "qpos", "qvel", "ctrl", "params", "wrt", "steps", "directions", "seed", "tolerance", "hold", "feedback", "policy", "qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat")
    class ParamsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _tensor_pb2.Tensor
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    QPOS_FIELD_NUMBER: _ClassVar[int]
    QVEL_FIELD_NUMBER: _ClassVar[int]
    CTRL_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    WRT_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    DIRECTIONS_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    TOLERANCE_FIELD_NUMBER: _ClassVar[int]
    HOLD_FIELD_NUMBER: _ClassVar[int]
    FEEDBACK_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    QFRC_APPLIED_FIELD_NUMBER: _ClassVar[int]
    XFRC_APPLIED_FIELD_NUMBER: _ClassVar[int]
    MOCAP_POS_FIELD_NUMBER: _ClassVar[int]
    MOCAP_QUAT_FIELD_NUMBER: _ClassVar[int]
    model_id: str
    qpos: _tensor_pb2.Tensor
    qvel: _tensor_pb2.Tensor
    ctrl: _tensor_pb2.Tensor
    params: _containers.MessageMap[str, _tensor_pb2.Tensor]
    wrt: _containers.RepeatedScalarFieldContainer[str]
    steps: int
    directions: int
    seed: int
    tolerance: float
    hold: int
    feedback: Feedback
    policy: Policy
    qfrc_applied: _tensor_pb2.Tensor
    xfrc_applied: _tensor_pb2.Tensor
    mocap_pos: _tensor_pb2.Tensor
    mocap_quat: _tensor_pb2.Tensor
    def __init__(self, model_id: _Optional[str] = ..., qpos: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., qvel: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., ctrl: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., params: _Optional[_Mapping[str, _tensor_pb2.Tensor]] = ..., wrt: _Optional[_Iterable[str]] = ..., steps: _Optional[int] = ..., directions: _Optional[int] = ..., seed: _Optional[int] = ..., tolerance: _Optional[float] = ..., hold: _Optional[int] = ..., feedback: _Optional[_Union[Feedback, _Mapping]] = ..., policy: _Optional[_Union[Policy, _Mapping]] = ..., qfrc_applied: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., xfrc_applied: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., mocap_pos: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., mocap_quat: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...

class CheckGradientResponse(_message.Message):
    __slots__ = ("report",)
    REPORT_FIELD_NUMBER: _ClassVar[int]
    report: _gradient_report_pb2.GradientReport
    def __init__(self, report: _Optional[_Union[_gradient_report_pb2.GradientReport, _Mapping]] = ...) -> None: ...

class DeleteTrajectoryRequest(_message.Message):
    __slots__ = ("trajectory_id", "request_id")
    TRAJECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    trajectory_id: str
    request_id: str
    def __init__(self, trajectory_id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteTrajectoryResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
