"""Reads a model file and the files it refers to. The client sends their contents, never a path.

A scan of the XML finds the references: collision meshes of a URDF; meshes, height fields, includes and
attached models of an MJCF file. Each existing file is sent under its reference as written. Missing files are
not sent. If the engine needs one, it raises an error, and `add_searched_paths` adds the paths that were
tried. Text that is not XML is sent unchanged; the engine reports the error.
"""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from .contract.errors import ArgumentError, ModelError, NotFoundError
from .contract.names import check_file_names, check_name
from .model import Source

_PACKAGE = "package://"
_SCHEMES = (_PACKAGE, "model://", "file://")
_SUFFIXES = (".urdf", ".xml", ".mjcf", ".xacro")
_MAX_DEPTH = 64
"""Largest depth of includes and attachments. The engine rejects a file that includes itself."""

_NOT_SENT = "expected its bytes in assets, got none"
"""Part of the engine's error text for a file that was not sent."""


def read_source(
    source: Any,
    *,
    options: Mapping[str, Any],
    assets: Mapping[str, bytes] | None = None,
    mesh_paths: Sequence[str | os.PathLike[str]] = (),
    package_paths: Mapping[str, str | os.PathLike[str]] | None = None,
    name: str | None = None,
) -> Source:
    """Read a model's text and files.

    Args:
        source: path of a URDF or MJCF file, XML text, or the name of a built-in model. A string without a
            folder and without a model file's suffix is a built-in name.
        options: checked options.
        assets: contents of files that the text refers to, by reference; they take precedence over files on
            disk.
        mesh_paths: further folders to look for files in.
        package_paths: folder of each ROS package that `package://name/…` names.
        name: name for messages; the file's name by default.

    Returns:
        The text, files and options to send.

    Raises:
        ArgumentError: `source` is not text or a path, or an asset is not bytes.
        ModelError: the file cannot be read, or is not text.
        NotFoundError: the file does not exist.
    """
    given = _checked_assets(assets)
    check_file_names(given)
    if name is not None and not isinstance(name, str):
        raise ArgumentError.expected("name", "a string", type(name).__name__)
    check_name("name", name or "")
    if not isinstance(source, (str, os.PathLike)) or not str(source).strip():
        got = repr(source) if isinstance(source, str) else type(source).__name__
        raise ArgumentError.expected(
            "source", "a path, XML text or a built-in name", got, advice="see revolute.models()"
        )
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<"):
        return _from_text(source, name or "", Path(), given, options, mesh_paths, package_paths)
    if isinstance(source, str) and _is_word(source):
        return Source(name=name or "", builtin=source, assets=given, options=options)
    path = _path("source", source)
    text = _read_text(path)
    if not text.strip():
        raise ModelError.expected(path.name, "XML text", "an empty file", advice="give an MJCF or URDF file")
    # file names on disk need not be valid UTF-8
    own_name = os.fsencode(path.name).decode("utf-8", "replace")
    return _from_text(text, name or own_name, path.parent, given, options, mesh_paths, package_paths)


def _from_text(
    text: str,
    name: str,
    folder: Path,
    given: Mapping[str, bytes],
    options: Mapping[str, Any],
    mesh_paths: Sequence[str | os.PathLike[str]],
    package_paths: Mapping[str, str | os.PathLike[str]] | None,
) -> Source:
    """Collect the files that a text refers to; relative paths start at `folder`."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ModelError.expected(
            name or "XML text", "Unicode text", f"half a surrogate pair at character {error.start}"
        ) from None
    if not isinstance(package_paths, Mapping | None):
        got = type(package_paths).__name__
        raise ArgumentError.expected("package_paths", "a mapping of package names to folders", got)
    if isinstance(mesh_paths, str | bytes | os.PathLike) or not isinstance(mesh_paths, Iterable):
        raise ArgumentError.expected("mesh_paths", "a list of folders", type(mesh_paths).__name__)
    packages = {package: _path("package_paths", place) for package, place in (package_paths or {}).items()}
    search = _Search(folder, [_path("mesh_paths", place) for place in mesh_paths], packages)
    assets = dict(given)
    documents = _Documents(search, assets)
    documents.add(text)
    for model in documents.models:
        _collect_meshes(model, search, assets)
    return Source(name=name, text=text, assets=assets, options=options, missing=search.missing)


def add_searched_paths(error: ModelError, source: Source) -> ModelError:
    """Add the paths that were tried to an error about a missing file. Other errors are returned unchanged.

    Args:
        error: the engine's or server's error.
        source: the text and files that were sent.
    """
    for reference, paths in source.missing.items():
        start, found, _ = error.message.partition(f" '{reference}': {_NOT_SENT}")
        if found:
            return ModelError(
                f"{start} '{reference}': expected a file, got none at {', '.join(paths)}; give its folder in "
                "mesh_paths or package_paths (on the command line --mesh-path or --package), or its bytes in "
                "assets",
                argument=error.argument,
            )
    return error


class _Search:
    """Searches the disk for the files of one model.

    Attributes:
        missing: paths tried for each missing file, by its reference.
    """

    def __init__(self, folder: Path, mesh_paths: Sequence[Path], package_paths: Mapping[str, Path]) -> None:
        self.missing: dict[str, list[str]] = {}
        self._folder = folder
        self._mesh_paths = mesh_paths
        self._package_paths = package_paths

    def read(
        self, reference: str, subfolders: Iterable[str] = ("",), *, written: str | None = None
    ) -> bytes | None:
        """Return the bytes of a file, or None if it does not exist.

        Args:
            reference: the file.
            subfolders: folders that the document names for files of this kind.
            written: the reference as the document writes it, the key in `missing`.
        """
        tried: list[str] = []
        for subfolder in subfolders:
            for path in self._candidates(reference.replace("\\", "/"), subfolder):
                if _is_file(path):
                    return path.read_bytes()
                tried.append(str(path))
        known = self.missing.setdefault(reference if written is None else written, [])
        known += [path for path in dict.fromkeys(tried) if path not in known]
        return None

    def _candidates(self, reference: str, subfolder: str) -> Iterator[Path]:
        """Yield the paths to try, most exact first."""
        if reference.startswith(_PACKAGE):
            yield from self._in_packages(reference[len(_PACKAGE) :])
        bare = next((reference[len(s) :] for s in _SCHEMES if reference.startswith(s)), reference)
        yield self._folder / subfolder / bare
        yield self._folder / bare
        for place in self._mesh_paths:
            yield place / bare.lstrip("/")
            yield place / posixpath.basename(bare)
        yield self._folder / subfolder / posixpath.basename(bare)

    def _in_packages(self, inner: str) -> Iterator[Path]:
        package, _, rest = inner.partition("/")
        if package in self._package_paths:
            yield self._package_paths[package] / rest
            return
        folder = self._folder.absolute()
        for place in (folder, *folder.parents):
            if place.name == package:
                yield place / rest
            yield place / package / rest


class _Model(NamedTuple):
    """A model's document and the documents that it includes.

    Attributes:
        roots: root elements of these documents, the model's first.
        included: names of the included files.
        folder: folder of an attached model, relative to the main file; None for the main model.
    """

    roots: list[ElementTree.Element]
    included: set[str]
    folder: str | None


class _Documents:
    """A model's document with all included and attached documents.

    Attributes:
        models: the main model first, then the attached models.
    """

    def __init__(self, search: _Search, assets: dict[str, bytes]) -> None:
        self.models = [_Model([], set(), None)]
        self._search = search
        self._assets = assets
        self._attached: set[str] = set()

    def add(self, text: str) -> None:
        """Read the main document, and add the files that it includes and attaches to the assets."""
        self._add(self.models[0], text, "", 0)

    def _add(self, model: _Model, text: str, folder: str, depth: int) -> None:
        """Read one document of a model.

        Args:
            model: the model.
            text: the document.
            folder: folder of the document, relative to the main file; its includes are relative to it.
            depth: nesting depth of includes and attachments.
        """
        try:
            root = ElementTree.fromstring(text.lstrip("\ufeff"))
        except (ElementTree.ParseError, ValueError):
            return
        model.roots.append(root)
        for element in root.iter():
            if element.tag not in ("include", "model") or depth == _MAX_DEPTH:
                continue
            found = self._content(folder, element.get("file", "").replace("\\", "/"))
            if found is None:
                continue
            name, content = found
            seen = model.included if element.tag == "include" else self._attached
            if name in seen:
                continue
            seen.add(name)
            within = model
            if element.tag == "model":
                within = _Model([], set(), posixpath.dirname(name))
                self.models.append(within)
            self._add(within, content.decode("utf-8", errors="replace"), posixpath.dirname(name), depth + 1)

    def _content(self, folder: str, reference: str) -> tuple[str, bytes] | None:
        """Return name and bytes of a file from the assets or the disk, or None if it does not exist."""
        nested = posixpath.normpath(posixpath.join(folder, reference))
        for name in dict.fromkeys((nested, reference)) if reference else ():
            content = self._assets.get(name)
            if content is None:
                content = self._search.read(name, written=reference)
            if content is not None:
                self._assets[name] = content
                return name, content
        return None


def _collect_meshes(model: _Model, search: _Search, assets: dict[str, bytes]) -> None:
    """Add the files of a model's meshes and height fields. Any of its documents may set their folder."""
    compilers = [compiler for root in model.roots for compiler in root.iter("compiler")]
    folders = {compiler.get("meshdir", compiler.get("assetdir", "")): None for compiler in compilers}
    strip = any(compiler.get("strippath") == "true" for compiler in compilers)
    for root in model.roots:
        for written in _mesh_references(root):
            reference = posixpath.basename(written.replace("\\", "/")) if strip else written
            if model.folder is None:
                name, places = reference, (*folders, "")
            else:
                # the engine first looks in the attached model's folder
                places = tuple(posixpath.join(model.folder, folder) for folder in (*folders, ""))
                name = posixpath.normpath(posixpath.join(places[-2 if folders else -1], reference))
            content = None if name in assets else search.read(reference, places, written=written)
            if content is not None:
                assets[name] = content


def _mesh_references(root: ElementTree.Element) -> list[str]:
    """Return a document's files of meshes and height fields, as written; in a URDF, of collision shapes."""
    if root.tag == "robot":
        meshes = [mesh for collision in root.iter("collision") for mesh in collision.iter("mesh")]
        return [name for mesh in meshes if (name := mesh.get("filename"))]
    assets = [*root.iter("mesh"), *root.iter("hfield")]
    return [name for asset in assets if (name := asset.get("file"))]


def _is_word(source: str) -> bool:
    """Return whether a string names a built-in model rather than a file."""
    return not any(mark in source for mark in "/\\~") and not source.lower().endswith(_SUFFIXES)


def _path(argument: str, place: Any) -> Path:
    """Return a user's path with ~ expanded."""
    if not isinstance(place, str | os.PathLike) or "\0" in os.fspath(place):
        raise ArgumentError.expected(argument, "a path", repr(place)[:100])
    try:
        return Path(place).expanduser()
    except RuntimeError:
        raise ArgumentError.expected(argument, "a path of a known user", f"'{place}'") from None


def _is_file(path: Path) -> bool:
    """Return whether a file exists; False for an invalid file name."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _read_text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        folder = error.errno == errno.EISDIR
        cause = "a folder" if folder else (error.strerror or type(error).__name__).lower()
        kind = NotFoundError if error.errno in (errno.ENOENT, errno.ENOTDIR) else ModelError
        raise kind.expected(
            "source", "a readable file, XML text or a built-in name", f"'{path}' ({cause})"
        ) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelError(
            f"{path.name}: expected XML text in UTF-8, got byte {data[error.start]:#04x} at {error.start}; "
            "save the file as UTF-8"
        ) from None


def _checked_assets(assets: Mapping[str, bytes] | None) -> dict[str, bytes]:
    """Return the assets as bytes objects."""
    checked: dict[str, bytes] = {}
    if not isinstance(assets, Mapping | None):
        raise ArgumentError.expected("assets", "bytes by file name", type(assets).__name__)
    for reference, content in (assets or {}).items():
        if not isinstance(reference, str) or not isinstance(content, (bytes, bytearray, memoryview)):
            raise ArgumentError.expected(
                "assets", "bytes by file name", f"{type(content).__name__} for {reference!r}"
            )
        checked[reference] = bytes(content)
    return checked
