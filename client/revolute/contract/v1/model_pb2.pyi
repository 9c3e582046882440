from revolute.contract.v1 import tensor_pb2 as _tensor_pb2
from revolute.contract.v1 import verb_pb2 as _verb_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RegisterModelRequest(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: ModelSource
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[ModelSource, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class ModelSource(_message.Message):
    __slots__ = ("builtin", "text", "assets", "options", "name", "request_id")
    class AssetsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _tensor_pb2.Blob
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_tensor_pb2.Blob, _Mapping]] = ...) -> None: ...
    BUILTIN_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    ASSETS_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    builtin: str
    text: _tensor_pb2.Blob
    assets: _containers.MessageMap[str, _tensor_pb2.Blob]
    options: ModelOptions
    name: str
    request_id: str
    def __init__(self, builtin: _Optional[str] = ..., text: _Optional[_Union[_tensor_pb2.Blob, _Mapping]] = ..., assets: _Optional[_Mapping[str, _tensor_pb2.Blob]] = ..., options: _Optional[_Union[ModelOptions, _Mapping]] = ..., name: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class ModelOptions(_message.Message):
    __slots__ = ("base", "ground", "fuse_fixed", "timestep", "solver", "iterations", "contact", "limits", "dry_friction", "erp", "cfm", "restitution", "margin", "contact_model", "cone")
    BASE_FIELD_NUMBER: _ClassVar[int]
    GROUND_FIELD_NUMBER: _ClassVar[int]
    FUSE_FIXED_FIELD_NUMBER: _ClassVar[int]
    TIMESTEP_FIELD_NUMBER: _ClassVar[int]
    SOLVER_FIELD_NUMBER: _ClassVar[int]
    ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    CONTACT_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    DRY_FRICTION_FIELD_NUMBER: _ClassVar[int]
    ERP_FIELD_NUMBER: _ClassVar[int]
    CFM_FIELD_NUMBER: _ClassVar[int]
    RESTITUTION_FIELD_NUMBER: _ClassVar[int]
    MARGIN_FIELD_NUMBER: _ClassVar[int]
    CONTACT_MODEL_FIELD_NUMBER: _ClassVar[int]
    CONE_FIELD_NUMBER: _ClassVar[int]
    base: str
    ground: bool
    fuse_fixed: bool
    timestep: float
    solver: str
    iterations: int
    contact: bool
    limits: bool
    dry_friction: bool
    erp: float
    cfm: float
    restitution: float
    margin: float
    contact_model: str
    cone: str
    def __init__(self, base: _Optional[str] = ..., ground: bool = ..., fuse_fixed: bool = ..., timestep: _Optional[float] = ..., solver: _Optional[str] = ..., iterations: _Optional[int] = ..., contact: bool = ..., limits: bool = ..., dry_friction: bool = ..., erp: _Optional[float] = ..., cfm: _Optional[float] = ..., restitution: _Optional[float] = ..., margin: _Optional[float] = ..., contact_model: _Optional[str] = ..., cone: _Optional[str] = ...) -> None: ...

class RegisterModelResponse(_message.Message):
    __slots__ = ("model",)
    MODEL_FIELD_NUMBER: _ClassVar[int]
    model: ModelInfo
    def __init__(self, model: _Optional[_Union[ModelInfo, _Mapping]] = ...) -> None: ...

class GetModelRequest(_message.Message):
    __slots__ = ("model_id",)
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    model_id: str
    def __init__(self, model_id: _Optional[str] = ...) -> None: ...

class GetModelResponse(_message.Message):
    __slots__ = ("model",)
    MODEL_FIELD_NUMBER: _ClassVar[int]
    model: ModelInfo
    def __init__(self, model: _Optional[_Union[ModelInfo, _Mapping]] = ...) -> None: ...

class GetModelFilesRequest(_message.Message):
    __slots__ = ("model_id",)
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    model_id: str
    def __init__(self, model_id: _Optional[str] = ...) -> None: ...

class GetModelFilesResponse(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: ModelFiles
    chunk: _tensor_pb2.Chunk
    def __init__(self, start: _Optional[_Union[ModelFiles, _Mapping]] = ..., chunk: _Optional[_Union[_tensor_pb2.Chunk, _Mapping]] = ...) -> None: ...

class ModelFiles(_message.Message):
    __slots__ = ("mjcf", "assets")
    class AssetsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _tensor_pb2.Blob
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_tensor_pb2.Blob, _Mapping]] = ...) -> None: ...
    MJCF_FIELD_NUMBER: _ClassVar[int]
    ASSETS_FIELD_NUMBER: _ClassVar[int]
    mjcf: _tensor_pb2.Blob
    assets: _containers.MessageMap[str, _tensor_pb2.Blob]
    def __init__(self, mjcf: _Optional[_Union[_tensor_pb2.Blob, _Mapping]] = ..., assets: _Optional[_Mapping[str, _tensor_pb2.Blob]] = ...) -> None: ...

class ListModelsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListModelsResponse(_message.Message):
    __slots__ = ("builtin", "models", "next_page_token")
    BUILTIN_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    builtin: _containers.RepeatedScalarFieldContainer[str]
    models: _containers.RepeatedCompositeFieldContainer[ModelSummary]
    next_page_token: str
    def __init__(self, builtin: _Optional[_Iterable[str]] = ..., models: _Optional[_Iterable[_Union[ModelSummary, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class DeleteModelRequest(_message.Message):
    __slots__ = ("model_id", "request_id")
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    model_id: str
    request_id: str
    def __init__(self, model_id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteModelResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ModelSummary(_message.Message):
    __slots__ = ("model_id", "name")
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    model_id: str
    name: str
    def __init__(self, model_id: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class ModelInfo(_message.Message):
    __slots__ = ("model_id", "name", "nq", "nv", "nu", "nbody", "njnt", "ngeom", "timestep", "qpos0", "qvel0", "body_names", "joint_names", "geom_names", "actuator_names", "dof_names", "ctrlrange", "body_mass", "geom_friction", "options", "notes", "warnings", "params", "keyframes", "joint_types", "site_names", "sensor_names", "sensor_types", "sensor_dims", "jnt_range", "geom_bodyid", "mocap_names", "mocap_pos", "mocap_quat")
    class ParamsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _tensor_pb2.Tensor
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NQ_FIELD_NUMBER: _ClassVar[int]
    NV_FIELD_NUMBER: _ClassVar[int]
    NU_FIELD_NUMBER: _ClassVar[int]
    NBODY_FIELD_NUMBER: _ClassVar[int]
    NJNT_FIELD_NUMBER: _ClassVar[int]
    NGEOM_FIELD_NUMBER: _ClassVar[int]
    TIMESTEP_FIELD_NUMBER: _ClassVar[int]
    QPOS0_FIELD_NUMBER: _ClassVar[int]
    QVEL0_FIELD_NUMBER: _ClassVar[int]
    BODY_NAMES_FIELD_NUMBER: _ClassVar[int]
    JOINT_NAMES_FIELD_NUMBER: _ClassVar[int]
    GEOM_NAMES_FIELD_NUMBER: _ClassVar[int]
    ACTUATOR_NAMES_FIELD_NUMBER: _ClassVar[int]
    DOF_NAMES_FIELD_NUMBER: _ClassVar[int]
    CTRLRANGE_FIELD_NUMBER: _ClassVar[int]
    BODY_MASS_FIELD_NUMBER: _ClassVar[int]
    GEOM_FRICTION_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    KEYFRAMES_FIELD_NUMBER: _ClassVar[int]
    JOINT_TYPES_FIELD_NUMBER: _ClassVar[int]
    SITE_NAMES_FIELD_NUMBER: _ClassVar[int]
    SENSOR_NAMES_FIELD_NUMBER: _ClassVar[int]
    SENSOR_TYPES_FIELD_NUMBER: _ClassVar[int]
    SENSOR_DIMS_FIELD_NUMBER: _ClassVar[int]
    JNT_RANGE_FIELD_NUMBER: _ClassVar[int]
    GEOM_BODYID_FIELD_NUMBER: _ClassVar[int]
    MOCAP_NAMES_FIELD_NUMBER: _ClassVar[int]
    MOCAP_POS_FIELD_NUMBER: _ClassVar[int]
    MOCAP_QUAT_FIELD_NUMBER: _ClassVar[int]
    model_id: str
    name: str
    nq: int
    nv: int
    nu: int
    nbody: int
    njnt: int
    ngeom: int
    timestep: float
    qpos0: _tensor_pb2.Tensor
    qvel0: _tensor_pb2.Tensor
    body_names: _containers.RepeatedScalarFieldContainer[str]
    joint_names: _containers.RepeatedScalarFieldContainer[str]
    geom_names: _containers.RepeatedScalarFieldContainer[str]
    actuator_names: _containers.RepeatedScalarFieldContainer[str]
    dof_names: _containers.RepeatedScalarFieldContainer[str]
    ctrlrange: _tensor_pb2.Tensor
    body_mass: _tensor_pb2.Tensor
    geom_friction: _tensor_pb2.Tensor
    options: ModelOptions
    notes: _containers.RepeatedScalarFieldContainer[str]
    warnings: _containers.RepeatedScalarFieldContainer[str]
    params: _containers.MessageMap[str, _tensor_pb2.Tensor]
    keyframes: _containers.RepeatedCompositeFieldContainer[Keyframe]
    joint_types: _containers.RepeatedScalarFieldContainer[str]
    site_names: _containers.RepeatedScalarFieldContainer[str]
    sensor_names: _containers.RepeatedScalarFieldContainer[str]
    sensor_types: _containers.RepeatedScalarFieldContainer[str]
    sensor_dims: _containers.RepeatedScalarFieldContainer[int]
    jnt_range: _tensor_pb2.Tensor
    geom_bodyid: _containers.RepeatedScalarFieldContainer[int]
    mocap_names: _containers.RepeatedScalarFieldContainer[str]
    mocap_pos: _tensor_pb2.Tensor
    mocap_quat: _tensor_pb2.Tensor
    def __init__(self, model_id: _Optional[str] = ..., name: _Optional[str] = ..., nq: _Optional[int] = ..., nv: _Optional[int] = ..., nu: _Optional[int] = ..., nbody: _Optional[int] = ..., njnt: _Optional[int] = ..., ngeom: _Optional[int] = ..., timestep: _Optional[float] = ..., qpos0: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., qvel0: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., body_names: _Optional[_Iterable[str]] = ..., joint_names: _Optional[_Iterable[str]] = ..., geom_names: _Optional[_Iterable[str]] = ..., actuator_names: _Optional[_Iterable[str]] = ..., dof_names: _Optional[_Iterable[str]] = ..., ctrlrange: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., body_mass: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., geom_friction: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., options: _Optional[_Union[ModelOptions, _Mapping]] = ..., notes: _Optional[_Iterable[str]] = ..., warnings: _Optional[_Iterable[str]] = ..., params: _Optional[_Mapping[str, _tensor_pb2.Tensor]] = ..., keyframes: _Optional[_Iterable[_Union[Keyframe, _Mapping]]] = ..., joint_types: _Optional[_Iterable[str]] = ..., site_names: _Optional[_Iterable[str]] = ..., sensor_names: _Optional[_Iterable[str]] = ..., sensor_types: _Optional[_Iterable[str]] = ..., sensor_dims: _Optional[_Iterable[int]] = ..., jnt_range: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., geom_bodyid: _Optional[_Iterable[int]] = ..., mocap_names: _Optional[_Iterable[str]] = ..., mocap_pos: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ..., mocap_quat: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...

class Keyframe(_message.Message):
    __slots__ = ("name", "qpos")
    NAME_FIELD_NUMBER: _ClassVar[int]
    QPOS_FIELD_NUMBER: _ClassVar[int]
    name: str
    qpos: _tensor_pb2.Tensor
    def __init__(self, name: _Optional[str] = ..., qpos: _Optional[_Union[_tensor_pb2.Tensor, _Mapping]] = ...) -> None: ...
