"""Reads a model's text and the files it names into one self-contained document.

The result contains everything that MuJoCo needs: includes are expanded, names of mesh files are replaced by
keys of `files`, and MuJoCo never opens a path. Data for renderers (visual shapes of a URDF, texture files,
skins) are dropped. Elements that refer to other files or to code are an error.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field
from typing import NamedTuple

from revolute.contract.errors import ModelError

from ._bounds import bound_document, bound_elements, bound_heights, heights_in_file, heights_in_text
from ._files import FileFinder, missing_file
from ._includes import Includer
from ._mesh_files import readable_mesh
from ._mimic import read_mimics
from ._urdf import check_limits, check_masses, drop_unknown_elements
from ._urdf_tree import check_tree
from ._xml import Element, name_of, parse, write

MESH_TYPES = (".stl", ".obj", ".msh", ".dae")
"""Supported mesh formats; none refers to further files."""

_REFUSED = {
    "plugin": "remove it",
    "extension": "remove the plugins",
    "flexcomp": "only rigid bodies are simulated; remove it",
}
MAX_ATTACHED = 32
"""Largest depth of attached models."""

_FOLDER_ATTRIBUTES = ("meshdir", "texturedir", "assetdir", "strippath")


@dataclass
class Source:
    """A model's document with all files that it refers to.

    Attributes:
        label: name of the file in messages.
        is_urdf: whether the document is URDF; otherwise it is MJCF.
        root: the self-contained document.
        files: contents of mesh files, by the keys used in `root` and `models`.
        models: self-contained documents of attached models, by the keys used in `root` and `models`.
        references: original file name of each key.
        has_includes: whether MuJoCo's line numbers may refer to included or attached files.
        notes: notes on dropped content.
        warnings: probable mistakes in the file.
        held_joints: fixed positions of joints that mimic a fixed joint, by name.
        heights: number of heights of all height fields.
    """

    label: str
    is_urdf: bool
    root: Element
    files: dict[str, bytes] = field(default_factory=dict)
    models: dict[str, bytes] = field(default_factory=dict)
    references: dict[str, str] = field(default_factory=dict)
    has_includes: bool = False
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    held_joints: dict[str, float] = field(default_factory=dict)
    heights: float = 0.0

    @property
    def declared_name(self) -> str:
        """Name of the model in the document; empty if it has none."""
        return self.root.attributes.get("name" if self.is_urdf else "model", "")


def read_source(label: str, data: str | bytes, finder: FileFinder) -> Source:
    """Read a model's text.

    Args:
        label: name of the file in messages.
        data: URDF or MJCF text.
        finder: where files that the text names are looked up.

    Returns:
        The self-contained document.

    Raises:
        ModelError: not XML, not a model, a file is missing, or an element is not supported.
    """
    root = parse(label, data)
    if root.tag not in ("mujoco", "robot"):
        raise ModelError(f"{label}: expected <mujoco> or <robot> as first element, got <{root.tag}>")
    source = Source(label, root.tag == "robot", root)
    if source.is_urdf:
        _read_urdf(source)
        _check_document(label, root)
        bound_elements(root, label)
        _collect_files(source, finder, root, None, label)
        _refuse_references(source, label, root)
    else:
        _Reader(source, finder).read(label, root, posixpath.basename(label))
    return source


class _Reader:
    """Reads an MJCF document with its includes and, recursively, its attached models."""

    def __init__(self, source: Source, finder: FileFinder) -> None:
        self._source = source
        self._finder = finder
        self._elements: dict[str, float] = {}  # number of elements by model file, attached models included
        self._keys: dict[str, str] = {}  # key in Source.models by model file
        self._open: list[str] = []  # chain of model files being read, each attached by the one before

    def read(self, label: str, root: Element, file: str, folder: str | None = None) -> float:
        """Make a document self-contained.

        Args:
            label: name of the document in messages.
            root: the document; changed in place.
            file: file of the document, relative to the model.
            folder: folder of an attached model's file, searched first for meshes; None for the main document.

        Returns:
            Number of elements, attached models included.
        """
        source = self._source
        includer = Includer(label, self._finder)
        includer.expand(root, file)
        source.has_includes |= includer.has_includes or folder is not None
        _drop_pictures(root)
        _check_document(label, root)
        self._open.append(file)
        largest = max([self._attached(label, model, file) for model in root.find("model")], default=0.0)
        self._open.pop()
        elements = bound_elements(root, label, largest)
        _collect_files(source, self._finder, root, folder, label)
        _refuse_references(source, label, root)
        return elements

    def _attached(self, label: str, model: Element, above: str) -> float:
        """Read the file of a `<model>` asset, only once per file; return the number of its elements."""
        reference = model.attributes.get("file", "")
        element = f"{label}: model '{reference}'"
        nested = posixpath.normpath(posixpath.join(posixpath.dirname(above), reference.replace("\\", "/")))
        file, data = self._finder.first_of((nested, reference), label, "model", reference)
        if file in self._open:
            raise ModelError(f"{element}: expected a model that does not attach itself, got one that does")
        if len(self._open) > MAX_ATTACHED:
            raise ModelError(f"{element}: expected at most {MAX_ATTACHED} models that attach each other")
        if file not in self._elements:
            root = parse(element, data)
            if root.tag != "mujoco":
                raise ModelError(f"{element}: expected <mujoco> as first element, got <{root.tag}>")
            self._elements[file] = self.read(element, root, file, posixpath.dirname(file))
            key = f"attached_{len(self._source.models)}.xml"
            self._source.models[key] = write(root).encode()
            self._source.references[key] = reference
            self._keys[file] = key
        model.attributes["file"] = self._keys[file]
        model.attributes.pop("content_type", None)
        return self._elements[file]


def _check_document(label: str, root: Element) -> None:
    """Check the elements and numbers of a document, and limit its memory."""
    _refuse_elements(label, root)
    _refuse_nan(label, root)
    bound_document(root, label)


def _drop_pictures(root: Element) -> None:
    """Remove data for renderers: skins, and the image files of textures."""
    for element in root.walk():
        element.children = [child for child in element.children if child.tag != "skin"]
    for texture in root.find("texture"):
        images = [name for name in texture.attributes if name.startswith("file")]
        if images:
            texture.attributes.setdefault("name", posixpath.splitext(texture.attributes[images[0]])[0])
            for name in (*images, "content_type", "gridsize", "gridlayout", "embed"):
                texture.attributes.pop(name, None)
            texture.attributes.update(builtin="flat", width="1", height="1")


def _read_urdf(source: Source) -> None:
    """Check a URDF's physical elements, and drop the others with a note."""
    drop_unknown_elements(source.root, source.label, source.notes, source.warnings)
    check_masses(source.root, source.label)
    check_limits(source.root, source.label, source.notes, source.warnings)
    source.held_joints = read_mimics(source.root, source.label, source.notes)
    check_tree(source.root, source.label, source.warnings)


def _refuse_elements(label: str, root: Element) -> None:
    """Raise an error for elements that load code or define deformable bodies."""
    for element in root.walk():
        advice = _REFUSED.get(element.tag)
        if advice is not None:
            raise ModelError(f"{label}: {element.tag} {name_of(element)}: not supported; {advice}")


def _refuse_nan(label: str, root: Element) -> None:
    """Raise an error for NaN in attributes, which MuJoCo's compiler accepts."""
    names = {element.attributes.get(key) for element in root.walk() for key in ("name", "class")}
    for element in root.walk():
        for attribute, value in element.attributes.items():
            if "nan" in value.lower().split() and value not in names:
                raise ModelError(
                    f"{label}: {element.tag} {name_of(element)}: expected numbers, "
                    f"got '{value}' in {attribute}"
                )


def _collect_files(source: Source, finder: FileFinder, root: Element, folder: str | None, label: str) -> None:
    """Load each file of a mesh or height field of a document, and replace its name by a key.

    Args:
        source: receives the files.
        finder: looks up the files.
        root: the document; changed in place.
        folder: folder of an attached model, searched first; None for the main document.
        label: name of the document in messages.
    """
    meshdir, strip = _mesh_folder(root)
    place = _MeshPlace(finder, meshdir, folder)
    attribute = "filename" if source.is_urdf else "file"
    keys: dict[tuple[str, str], str] = {}
    for kind in ("mesh",) if source.is_urdf else ("mesh", "hfield"):
        for element in root.find(kind):
            reference = element.attributes.get(attribute)
            if reference is None:
                if kind == "hfield":
                    source.heights += heights_in_text(element)
                    bound_heights(label, element.attributes.get("name", ""), source.heights)
                continue
            base = posixpath.basename(reference.replace("\\", "/"))
            wanted = base if strip else reference
            picture = element.attributes.pop("content_type", None) == "image/png"
            if (kind, wanted) not in keys:
                keys[kind, wanted] = _load_file(source, place, kind, wanted, reference, label, picture)
            element.attributes[attribute] = keys[kind, wanted]
            if not source.is_urdf:
                element.attributes.setdefault("name", posixpath.splitext(base)[0])


class _MeshPlace(NamedTuple):
    """Looks up a document's files of meshes and height fields, which share a folder.

    Attributes:
        finder: looks up files.
        meshdir: the document's folder for meshes.
        folder: folder of an attached model; None for the main document.
    """

    finder: FileFinder
    meshdir: str
    folder: str | None

    def find(self, wanted: str) -> bytes | None:
        """Return the content of a mesh file, or None. An attached model's folder is searched first."""
        if self.folder is not None:
            found = self.finder.find(self._beside(wanted))
            if found is not None:
                return found
        return self.finder.find(wanted, self._subfolder())

    def tried(self, wanted: str) -> list[str]:
        """Return the paths that `find` tries on disk."""
        beside = [] if self.folder is None else self.finder.tried(self._beside(wanted))
        return list(dict.fromkeys([*beside, *self.finder.tried(wanted, self._subfolder())]))

    def _beside(self, wanted: str) -> str:
        return posixpath.normpath(posixpath.join(self._subfolder(), wanted.replace("\\", "/")))

    def _subfolder(self) -> str:
        return posixpath.join(self.folder or "", self.meshdir)


def _mesh_folder(root: Element) -> tuple[str, bool]:
    """Remove the folder settings from the document; return the mesh folder and whether to strip paths."""
    settings: dict[str, str] = {}
    for compiler in root.find("compiler"):
        for name in _FOLDER_ATTRIBUTES:
            if name in compiler.attributes:
                settings[name] = compiler.attributes.pop(name)
    meshdir = settings.get("meshdir", settings.get("assetdir", ""))
    return meshdir, settings.get("strippath") == "true"


def _load_file(
    source: Source, place: _MeshPlace, kind: str, wanted: str, reference: str, label: str, picture: bool
) -> str:
    """Add the file of a mesh or height field to `source.files` and return its key."""
    stem, extension = posixpath.splitext(posixpath.basename(wanted.replace("\\", "/")))
    extension = ".png" if picture else extension.lower()
    if kind == "mesh" and extension not in MESH_TYPES:
        raise ModelError(
            f"{label}: mesh '{reference}': expected one of {', '.join(MESH_TYPES)}, "
            f"got {extension or 'no extension'}; convert it"
        )
    data = place.find(wanted)
    if data is None:
        raise ModelError(missing_file(label, kind, reference, place.tried(wanted)))
    if kind == "mesh":
        extension, data = readable_mesh(label, reference, extension, data)
    else:
        source.heights += heights_in_file(label, reference, extension == ".png", data)
        bound_heights(label, reference, source.heights)
    key = f"{len(source.files)}/{re.sub(r'[^A-Za-z0-9_-]', '_', stem)}{extension}"
    source.files[key] = data
    source.references[key] = reference
    return key


def _refuse_references(source: Source, label: str, root: Element) -> None:
    """Raise an error for any remaining file name, so that MuJoCo never opens a path."""
    for element in root.walk():
        for name, value in element.attributes.items():
            if name.startswith("file") and value not in source.files and value not in source.models:
                raise ModelError(f"{label}: {element.tag} '{value}': files of this kind are not supported")
