"""`load_model`: from a robot file to a model that the engine can simulate."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
import numpy.typing as npt

from revolute.contract.argument_names import reject_unknown_arguments
from revolute.contract.errors import ArgumentError, NotFoundError
from revolute.contract.load_options import GivenOptions, LoadOptions, spell_out_options
from revolute.contract.names import check_file_names, check_name

from . import native as _native
from ._arrays import compiled_arrays, disabled_switches
from ._compile import compile_source
from ._cost import notes_on_cost
from ._faces import notes_on_faces
from ._files import FileFinder
from ._model import Model
from ._mujoco import collected_warnings
from ._names import check_names
from ._native_arrays import Arrays
from ._options import checked_options, engine_values
from ._pairs import candidate_pairs, no_pairs
from ._soft import soft_arrays
from ._source import Source, read_source
from ._start import first_step_warnings, limit_warnings, named_warnings
from ._support import check_support
from ._xml import write

if TYPE_CHECKING:
    from typing_extensions import Unpack

_MODELS = Path(__file__).parent / "models"
_SUFFIXES = (".xml", ".mjcf", ".urdf")

Pathlike = str | os.PathLike[str]


def models() -> list[str]:
    """Return the names of the built-in models, which `load_model` accepts."""
    return sorted(path.stem for path in _MODELS.glob("*.xml") if not path.name.startswith("_"))


@reject_unknown_arguments
@spell_out_options
def load_model(
    source: Pathlike | bytes,
    *,
    assets: Mapping[str, bytes] | None = None,
    mesh_paths: Sequence[Pathlike] = (),
    package_paths: Mapping[str, Pathlike] | None = None,
    allow_files: bool = True,
    name: str | None = None,
    warn: bool = True,
    **options: Unpack[GivenOptions],
) -> Model:
    """Load a URDF or MJCF model.

    Args:
        source: path of a file, XML text, or the name of a built-in model (see `models`).
        assets: contents of files that the text names (meshes, includes), by those names; looked up before the
            disk.
        **options: how the model is built and simulated; see `LoadOptions`.
        mesh_paths: folders to look for meshes in.
        package_paths: folders that `package://name/` stands for, by name.
        allow_files: False reads nothing from disk: text, assets and built-in models only.
        name: what to call the model; by default the file's name, or the name it gives itself.
        warn: False leaves the warnings of `model.warnings` to the caller.

    Returns:
        The model; `model.notes` lists what the engine does differently from what the file asks.

    Raises:
        ModelError: the file cannot be read or holds what the engine does not simulate; names file and
            element.
        ArgumentError: an option is out of range.
        NotFoundError: there is no such file or built-in model.
    """
    chosen = checked_options(options)
    given = _open(source, assets or {}, mesh_paths, package_paths or {}, allow_files, name)
    document = read_source(given.label, given.data, given.finder)
    with collected_warnings() as mujoco_warnings:
        compiled, _ = compile_source(
            document, base=chosen.base, ground=chosen.ground, fuse_fixed=chosen.fuse_fixed
        )
        supported = check_support(
            compiled,
            document.label,
            limits=chosen.limits,
            dry_friction=chosen.dry_friction,
            contact_model=chosen.contact_model,
        )
        notes = [*document.notes, *supported]
        arrays, alarming, zero_pose = _engine_arrays(compiled, document, chosen)
        notes += notes_on_faces(compiled, arrays)
        # a file with keyframes defines its own starts
        (notes if compiled.nkey else alarming).extend(zero_pose)
        native = _native.Model(arrays)
        alarming += first_step_warnings(compiled, arrays, native)
        notes += notes_on_cost(compiled, arrays, native)
    alarming = [*document.warnings, *named_warnings(compiled, mujoco_warnings), *alarming]
    model_name = given.name or document.declared_name or "model"
    check_names(model_name, compiled, document.label)
    model = _model(model_name, given, document, compiled, arrays, native, chosen, notes, alarming)
    for note in alarming if warn else ():
        warnings.warn(f"{document.label}: {note}", stacklevel=3)
    return model


def to_mjcf(
    source: str | bytes, *, assets: Mapping[str, bytes] | None = None, **options: Unpack[GivenOptions]
) -> str:
    """Return MJCF text of the model that MuJoCo compiles for `load_model`; see `to_mjcf_files`."""
    return to_mjcf_files(source, assets=assets, **options)[0]


def to_mjcf_files(
    source: str | bytes, *, assets: Mapping[str, bytes] | None = None, **options: Unpack[GivenOptions]
) -> tuple[str, dict[str, bytes]]:
    """Return MJCF text of the model that MuJoCo compiles for `load_model`, and the files that it refers to.

    Args:
        source: XML text as bytes, or the name of a built-in model.
        assets: as for `load_model`.
        **options: as for `load_model`; those that change the file are in the text.

    Raises:
        ModelError: the model does not compile.
    """
    chosen = checked_options(options)
    given = _open(source, assets or {}, (), {}, allow_files=False, name=None)
    document = read_source(given.label, given.data, given.finder)
    with collected_warnings():
        _, spec = compile_source(
            document, base=chosen.base, ground=chosen.ground, fuse_fixed=chosen.fuse_fixed
        )
    if chosen.timestep is not None:
        spec.option.timestep = chosen.timestep
    return _with_flat_names(spec.to_xml(), document.files)


def _with_flat_names(text: str, files: Mapping[str, bytes]) -> tuple[str, dict[str, bytes]]:
    """Replace the keys of files by names without folders, because MuJoCo looks up assets by these."""
    last = Counter(key.rpartition("/")[2] for key in files)
    flat = {}
    for key, content in files.items():
        name = key.rpartition("/")[2]
        name = name if last[name] == 1 else key.replace("/", "-")
        text = text.replace(f'file="{key}"', f'file="{name}"')
        flat[name] = content
    return text, flat


@dataclass(frozen=True)
class _Given:
    """What the user gave as source.

    Attributes:
        label: its name in messages.
        name: the model's name, empty when only the text can say.
        data: URDF or MJCF text.
        finder: where files that the text names are looked up.
    """

    label: str
    name: str
    data: str | bytes
    finder: FileFinder


def _open(
    source: Any,
    assets: Mapping[str, bytes],
    mesh_paths: Sequence[Pathlike],
    package_paths: Mapping[str, Pathlike],
    allow_files: bool,
    name: str | None,
) -> _Given:
    """Find out whether `source` is text, a built-in name or a path, and read it."""
    _check_assets(assets)
    check_file_names(assets)
    check_name("name", name or "")
    folders = [Path(path) for path in mesh_paths]
    packages = {package: Path(path) for package, path in package_paths.items()}
    if _is_text(source):
        finder = FileFinder(assets, None, folders, packages, allow_files)
        return _Given(name or "XML text", _stem(name or ""), source, finder)
    if not isinstance(source, (str, os.PathLike)):
        raise ArgumentError.expected(
            "source", "a path, XML text or the name of a model", type(source).__name__
        )
    text = os.fspath(source)
    if isinstance(source, str) and text in models():
        path = _MODELS / f"{text}.xml"
        return _Given(
            name or path.name, _stem(name or text), path.read_bytes(), FileFinder({}, _MODELS, (), {}, True)
        )
    path = Path(text)
    if allow_files and path.is_file():
        finder = FileFinder(assets, path.parent, folders, packages, True)
        return _Given(name or path.name, _stem(name or path.name), path.read_bytes(), finder)
    raise _no_such_model(text, allow_files)


def _is_text(source: Any) -> bool:
    """Whether `source` is the text of a model and not a name or path."""
    if isinstance(source, (bytes, bytearray)):
        return True
    return isinstance(source, str) and (source.lstrip("\ufeff \t\r\n").startswith("<") or "\n" in source)


def _stem(name: str) -> str:
    """Strip the suffix of a model file."""
    return name[: name.rindex(".")] if name.lower().endswith(_SUFFIXES) else name


def _check_assets(assets: Any) -> None:
    if not isinstance(assets, Mapping):
        raise ArgumentError.expected("assets", "a mapping of file names to bytes", type(assets).__name__)
    for key, value in assets.items():
        if not isinstance(key, str) or not isinstance(value, (bytes, bytearray, memoryview)):
            got = f"{type(value).__name__} for {key!r}"
            raise ArgumentError.expected("assets", "a mapping of file names to bytes", got)


def _no_such_model(source: str, allow_files: bool) -> NotFoundError:
    """Return the error for a name that is neither a file nor a built-in model."""
    looks_like_path = source.lower().endswith(_SUFFIXES) or os.sep in source
    what = "a file" if looks_like_path and allow_files else "XML text or the name of a built-in model"
    advice = "" if looks_like_path and allow_files else f"; built-in models are {', '.join(models())}"
    return NotFoundError(
        f"source: expected {what}, got '{source}', which does not exist{advice}", argument="source"
    )


def _engine_arrays(
    compiled: mujoco.MjModel, document: Source, options: LoadOptions
) -> tuple[Arrays, list[str], list[str]]:
    """Return the compiled arrays with contact pairs and options; notes on pairs, and on the zero pose."""
    arrays = compiled_arrays(compiled, document.label)
    off = disabled_switches(compiled)
    switches = {
        name: getattr(options, name) and not off[name] for name in ("contact", "limits", "dry_friction")
    }
    pairs, left_out, zero_pose = no_pairs(), list[str](), list[str]()
    if switches["contact"]:
        pairs, left_out, zero_pose = candidate_pairs(
            compiled,
            document.label,
            is_urdf=document.is_urdf,
            contact_model=options.contact_model,
            margin=options.margin,
        )
    if switches["limits"]:
        zero_pose += limit_warnings(compiled)
    arrays.update(pairs)
    arrays.update(soft_arrays(compiled, options))
    arrays.update(engine_values(options))
    arrays.update({name: int(value) for name, value in switches.items()})
    return arrays, left_out, zero_pose


def _model(
    name: str,
    given: _Given,
    document: Source,
    compiled: mujoco.MjModel,
    arrays: Arrays,
    native: _native.Model,
    options: LoadOptions,
    notes: list[str],
    alarming: list[str],
) -> Model:
    """Put the parts together; the arrays become read-only."""
    for value in arrays.values():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
    text = given.data.decode(errors="replace") if isinstance(given.data, (bytes, bytearray)) else given.data
    return Model(
        id=_content_hash(document, options),
        name=name,
        options={**asdict(options), "timestep": arrays["timestep"]},
        notes=[*notes, *alarming],
        warnings=alarming,
        keyframes=_keyframes(compiled),
        source_text=text,
        assets={document.references[key]: data for key, data in document.files.items()},
        arrays=arrays,
        native=native,
        mujoco_model=compiled,
    )


def _keyframes(compiled: mujoco.MjModel) -> dict[str, npt.NDArray[np.float64]]:
    """Return the file's keyframes; those without a name are called by their number."""
    frames = {}
    for index in range(compiled.nkey):
        frame = np.array(compiled.key_qpos[index])
        frame.setflags(write=False)
        frames[compiled.key(index).name or str(index)] = frame
    return frames


def _content_hash(document: Source, options: LoadOptions) -> str:
    """Return a hash that two loads share when text, files and options are the same."""
    digest = hashlib.sha256()
    parts = [write(document.root).encode(), json.dumps(asdict(options), sort_keys=True).encode()]
    for key, data in sorted({**document.files, **document.models}.items()):
        parts += [key.encode(), data]
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()
