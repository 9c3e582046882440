from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GradientReport(_message.Message):
    __slots__ = ("model", "steps", "directions", "seed", "tolerance", "growth", "inputs", "passed", "worst")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    DIRECTIONS_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    TOLERANCE_FIELD_NUMBER: _ClassVar[int]
    GROWTH_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    PASSED_FIELD_NUMBER: _ClassVar[int]
    WORST_FIELD_NUMBER: _ClassVar[int]
    model: str
    steps: int
    directions: int
    seed: int
    tolerance: float
    growth: float
    inputs: _containers.RepeatedCompositeFieldContainer[InputCheck]
    passed: bool
    worst: str
    def __init__(self, model: _Optional[str] = ..., steps: _Optional[int] = ..., directions: _Optional[int] = ..., seed: _Optional[int] = ..., tolerance: _Optional[float] = ..., growth: _Optional[float] = ..., inputs: _Optional[_Iterable[_Union[InputCheck, _Mapping]]] = ..., passed: bool = ..., worst: _Optional[str] = ...) -> None: ...

class InputCheck(_message.Message):
    __slots__ = ("name", "verdict", "reason", "error", "dot_error", "step", "gradients", "differences", "switching_steps", "worst")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    DOT_ERROR_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    GRADIENTS_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCES_FIELD_NUMBER: _ClassVar[int]
    SWITCHING_STEPS_FIELD_NUMBER: _ClassVar[int]
    WORST_FIELD_NUMBER: _ClassVar[int]
    name: str
    verdict: str
    reason: str
    error: float
    dot_error: float
    step: float
    gradients: _containers.RepeatedScalarFieldContainer[float]
    differences: _containers.RepeatedScalarFieldContainer[float]
    switching_steps: _containers.RepeatedScalarFieldContainer[int]
    worst: EntryCheck
    def __init__(self, name: _Optional[str] = ..., verdict: _Optional[str] = ..., reason: _Optional[str] = ..., error: _Optional[float] = ..., dot_error: _Optional[float] = ..., step: _Optional[float] = ..., gradients: _Optional[_Iterable[float]] = ..., differences: _Optional[_Iterable[float]] = ..., switching_steps: _Optional[_Iterable[int]] = ..., worst: _Optional[_Union[EntryCheck, _Mapping]] = ...) -> None: ...

class EntryCheck(_message.Message):
    __slots__ = ("name", "gradient", "difference", "error")
    NAME_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    name: str
    gradient: float
    difference: float
    error: float
    def __init__(self, name: _Optional[str] = ..., gradient: _Optional[float] = ..., difference: _Optional[float] = ..., error: _Optional[float] = ...) -> None: ...
