"""Reads a model's text and the files it names into one self-contained document.

The result holds everything MuJoCo needs: includes are put in place, mesh files are replaced by names of
entries in `files`, and nothing else in the text can make MuJoCo open a path. What only a renderer uses
(visual shapes of a URDF, texture files, skins) is left out. Elements that would bring files or code of
another kind are refused by name.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from revolute.errors import ModelError

from ._bounds import bound_document
from ._files import FileFinder
from ._mesh_files import readable_mesh
from ._mimic import read_mimics
from ._urdf import check_limits, check_masses, keep_known
from ._urdf_tree import check_tree
from ._xml import MAX_DEPTH, Element, name_of, parse, too_deep

MESH_TYPES = (".stl", ".obj", ".msh", ".dae")
"""Mesh formats that are read; none needs further files."""

_REFUSED = {
    "plugin": "remove it",
    "extension": "remove the plugins",
    "flexcomp": "only rigid bodies are simulated; remove it",
    "hfield": "build the ground from planes and boxes",
    "model": "write the attached model into this file, or use <include>",
}
_FOLDER_ATTRIBUTES = ("meshdir", "texturedir", "assetdir", "strippath")


@dataclass
class Source:
    """A model's text with everything it refers to.

    Attributes:
        label: what messages call the file.
        is_urdf: URDF, else MJCF.
        root: the self-contained document.
        files: contents of mesh files by the names used in `root`.
        references: those names in the model's own spelling.
        has_includes: lines of included files are not lines of this one.
        notes: what was left out and matters to a user.
        warnings: what the file hardly means as it says it.
        held_joints: joints that mimic a fixed one and stay where they are, with their positions.
    """

    label: str
    is_urdf: bool
    root: Element
    files: dict[str, bytes] = field(default_factory=dict)
    references: dict[str, str] = field(default_factory=dict)
    has_includes: bool = False
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    held_joints: dict[str, float] = field(default_factory=dict)

    @property
    def declared_name(self) -> str:
        """The name that the model gives itself, empty when it gives none."""
        return self.root.attributes.get("name" if self.is_urdf else "model", "")


def read_source(label: str, data: str | bytes, finder: FileFinder) -> Source:
    """Read a model's text.

    Args:
        label: what messages call the file.
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
    else:
        _Includer(source, finder).expand()
        _drop_pictures(root)
    _refuse_elements(source)
    _refuse_nan(source)
    bound_document(root, label)
    _collect_meshes(source, finder)
    _refuse_references(source)
    return source


class _Place(NamedTuple):
    """An element, the folder of the file it comes from (relative to the model), and how deep it is nested."""

    element: Element
    folder: str
    depth: int


class _Includer:
    """Puts the content of included files in place of the include elements of an MJCF document."""

    def __init__(self, source: Source, finder: FileFinder) -> None:
        self._source = source
        self._finder = finder
        self._seen: set[str] = set()

    def expand(self) -> None:
        """Expand all includes of the document."""
        stack = [_Place(self._source.root, "", 0)]
        while stack:
            place = stack.pop()
            below = self._expanded(place)
            place.element.children = [each.element for each in below]
            stack.extend(reversed(below))

    def _expanded(self, place: _Place) -> list[_Place]:
        """Return the children of an element, those of included files in place of the includes."""
        expanded: list[_Place] = []
        pending = _children(place.element, place.folder, place.depth)
        while pending:
            child = pending.pop()
            if child.depth > MAX_DEPTH:
                raise too_deep(self._source.label, child.element.line)
            if child.element.tag == "include":
                root, folder = self._included(child.element, child.folder)
                pending += _children(root, folder, child.depth)
            else:
                expanded.append(child)
        return expanded

    def _included(self, include: Element, folder: str) -> tuple[Element, str]:
        """Return the first element of an included file, and the file's folder."""
        source = self._source
        reference = include.attributes.get("file", "")
        nested = posixpath.normpath(posixpath.join(folder, reference))
        names = list(dict.fromkeys((nested, reference)))
        data = next((found for name in names if (found := self._finder.find(name)) is not None), None)
        if not reference or data is None:
            tried = dict.fromkeys(path for name in names for path in self._finder.tried(name))
            raise ModelError(missing_file(source.label, "include", reference, tried))
        if nested in self._seen:
            raise ModelError(f"{source.label}: include '{reference}': expected a file once, got it twice")
        self._seen.add(nested)
        source.has_includes = True
        root = parse(f"{source.label}: include '{reference}'", data)
        if root.tag not in ("mujoco", "mujocoinclude"):
            raise ModelError(
                f"{source.label}: include '{reference}': expected <mujoco> or <mujocoinclude> as first "
                f"element, got <{root.tag}>"
            )
        return root, posixpath.dirname(nested)


def _children(element: Element, folder: str, depth: int) -> list[_Place]:
    """Return the children of an element from a file in `folder`, the last one first."""
    return [_Place(child, folder, depth + 1) for child in reversed(element.children)]


def _drop_pictures(root: Element) -> None:
    """Remove what only a renderer reads: skins, and the image files of textures."""
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
    """Keep what URDF defines for physics, checked; note what else the file holds."""
    keep_known(source.root, source.label, source.notes, source.warnings)
    check_masses(source.root, source.label)
    check_limits(source.root, source.label, source.notes, source.warnings)
    source.held_joints = read_mimics(source.root, source.label, source.notes)
    check_tree(source.root, source.label, source.warnings)


def _refuse_elements(source: Source) -> None:
    """Refuse elements that bring code, deformables or other models."""
    for element in source.root.walk():
        advice = _REFUSED.get(element.tag)
        if advice is not None:
            raise ModelError(f"{source.label}: {element.tag} {name_of(element)}: not supported; {advice}")


def _refuse_nan(source: Source) -> None:
    """Refuse attributes that hold NaN, which MuJoCo's compiler lets pass."""
    names = {element.attributes.get(key) for element in source.root.walk() for key in ("name", "class")}
    for element in source.root.walk():
        for attribute, value in element.attributes.items():
            if "nan" in value.lower().split() and value not in names:
                raise ModelError(
                    f"{source.label}: {element.tag} {name_of(element)}: expected numbers, "
                    f"got '{value}' in {attribute}"
                )


def _collect_meshes(source: Source, finder: FileFinder) -> None:
    """Load each mesh file and give it a name of our own."""
    meshdir, strip = _mesh_folder(source.root)
    attribute = "filename" if source.is_urdf else "file"
    keys: dict[str, str] = {}
    for mesh in source.root.find("mesh"):
        reference = mesh.attributes.get(attribute)
        if reference is None:
            continue
        wanted = posixpath.basename(reference.replace("\\", "/")) if strip else reference
        if wanted not in keys:
            keys[wanted] = _load_mesh(source, finder, wanted, reference, meshdir)
        mesh.attributes[attribute] = keys[wanted]
        mesh.attributes.pop("content_type", None)
        if not source.is_urdf:
            stem = posixpath.splitext(posixpath.basename(reference.replace("\\", "/")))[0]
            mesh.attributes.setdefault("name", stem)


def _mesh_folder(root: Element) -> tuple[str, bool]:
    """Take the folder settings out of the document; return the mesh folder and whether to strip paths."""
    settings: dict[str, str] = {}
    for compiler in root.find("compiler"):
        for name in _FOLDER_ATTRIBUTES:
            if name in compiler.attributes:
                settings[name] = compiler.attributes.pop(name)
    meshdir = settings.get("meshdir", settings.get("assetdir", ""))
    return meshdir, settings.get("strippath") == "true"


def _load_mesh(source: Source, finder: FileFinder, wanted: str, reference: str, meshdir: str) -> str:
    """Put one mesh file into `source.files` and return its name there."""
    stem, extension = posixpath.splitext(posixpath.basename(wanted.replace("\\", "/")))
    extension = extension.lower()
    if extension not in MESH_TYPES:
        raise ModelError(
            f"{source.label}: mesh '{reference}': expected one of {', '.join(MESH_TYPES)}, "
            f"got {extension or 'no extension'}; convert it"
        )
    data = finder.find(wanted, meshdir)
    if data is None:
        raise ModelError(missing_file(source.label, "mesh", reference, finder.tried(wanted, meshdir)))
    extension, data = readable_mesh(source.label, reference, extension, data)
    key = f"{len(source.files)}/{re.sub(r'[^A-Za-z0-9_-]', '_', stem)}{extension}"
    source.files[key] = data
    source.references[key] = reference
    return key


def _refuse_references(source: Source) -> None:
    """Refuse any file name that is left: MuJoCo must not open a path."""
    for element in source.root.walk():
        for name, value in element.attributes.items():
            if name.startswith("file") and value not in source.files:
                raise ModelError(
                    f"{source.label}: {element.tag} '{value}': files of this kind are not supported"
                )


def missing_file(label: str, kind: str, reference: str, tried: Iterable[str]) -> str:
    """Return the message for a file that the model names and nobody has, at none of the paths tried."""
    paths = ", ".join(tried)
    if paths:
        return (
            f"{label}: {kind} '{reference}': expected a file, got none at {paths}; "
            "give its folder in mesh_paths or package_paths, or its bytes in assets"
        )
    return f"{label}: {kind} '{reference}': expected its bytes in assets, got none; the file was not sent"
