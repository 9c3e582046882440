"""Finds the contents of the files that a model names, among the assets or on disk.

The assets come first; a name is tried as written, under its mesh folder, without `package://`, and by its
last part. With `allow_files`, the disk follows: next to the model file, under its mesh folder, in
`mesh_paths` and, for `package://name/rest`, in `package_paths["name"]` or in a folder `name` above the model
file. With `allow_files=False`, no path is opened, checked or even built.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from revolute.contract.errors import ModelError

PACKAGE = "package://"


class FileFinder:
    """Looks up the files that one model refers to."""

    def __init__(
        self,
        assets: Mapping[str, bytes],
        folder: Path | None,
        mesh_paths: Sequence[Path],
        package_paths: Mapping[str, Path],
        allow_files: bool,
    ) -> None:
        self._assets = {_clean(name): data for name, data in assets.items()}
        self._folder = folder or Path()
        self._mesh_paths = mesh_paths
        self._package_paths = package_paths
        self.allow_files = allow_files

    def find(self, reference: str, subfolder: str = "") -> bytes | None:
        """Return the bytes of a file.

        Args:
            reference: the file's name as the model writes it.
            subfolder: the model's folder for files of this kind (`meshdir`).

        Returns:
            The content, or None if the file does not exist.
        """
        for name in self._asset_names(reference, subfolder):
            if name in self._assets:
                return self._assets[name]
        if self.allow_files:
            for path in self._paths(reference, subfolder):
                if path.is_file():
                    return path.read_bytes()
        return None

    def first_of(self, names: Iterable[str], label: str, kind: str, reference: str) -> tuple[str, bytes]:
        """Return name and content of the first of `names` that exists.

        Args:
            names: names of the file, most exact first.
            label: name of the model's file in messages.
            kind: the element that names the file, such as "include".
            reference: the file's name as the model writes it; none is found for an empty one.

        Raises:
            ModelError: there is no such file.
        """
        distinct = list(dict.fromkeys(names))
        for name in distinct if reference else ():
            data = self.find(name)
            if data is not None:
                return name, data
        tried = dict.fromkeys(path for name in distinct for path in self.tried(name))
        raise ModelError(missing_file(label, kind, reference, tried))

    def tried(self, reference: str, subfolder: str = "") -> list[str]:
        """Return the paths that `find` tries on disk, in order and without duplicates."""
        if not self.allow_files:
            return []
        return list(dict.fromkeys(str(path) for path in self._paths(reference, subfolder)))

    def _asset_names(self, reference: str, subfolder: str) -> Iterator[str]:
        """Yield the names under which an asset may have been given, most exact first."""
        yield _clean(reference)
        bare = _without_scheme(reference)
        yield _clean(posixpath.join(subfolder, bare))
        yield _clean(bare)
        if reference.startswith(PACKAGE):
            yield _clean(bare.partition("/")[2])
        yield posixpath.basename(_clean(bare))

    def _paths(self, reference: str, subfolder: str) -> Iterator[Path]:
        """Yield the paths where a file may be on disk, most exact first."""
        if reference.startswith(PACKAGE):
            yield from self._package_files(reference)
        bare = _without_scheme(reference)
        yield self._folder / subfolder / bare
        yield self._folder / bare
        for folder in self._mesh_paths:
            yield folder / bare.lstrip("/")
            yield folder / posixpath.basename(bare)
        yield self._folder / subfolder / posixpath.basename(bare)

    def _package_files(self, reference: str) -> Iterator[Path]:
        """Yield where `package://name/rest` may be."""
        package, _, rest = reference[len(PACKAGE) :].partition("/")
        if package in self._package_paths:
            yield self._package_paths[package] / rest
            return
        for folder in (self._folder.absolute(), *self._folder.absolute().parents):
            if folder.name == package:
                yield folder / rest
            yield folder / package / rest


def _without_scheme(reference: str) -> str:
    """Strip `package://`, `model://` or `file://` and turn backslashes into slashes."""
    plain = reference.replace("\\", "/")
    for scheme in (PACKAGE, "model://", "file://"):
        if plain.startswith(scheme):
            return plain[len(scheme) :]
    return plain


def _clean(name: str) -> str:
    """Return an asset's name in one spelling: forward slashes, no `./`."""
    scheme, separator, rest = name.replace("\\", "/").rpartition("://")
    return scheme + separator + posixpath.normpath(rest)


def missing_file(label: str, kind: str, reference: str, tried: Iterable[str]) -> str:
    """Return the error text for a missing file."""
    paths = ", ".join(tried)
    if paths:
        return (
            f"{label}: {kind} '{reference}': expected a file, got none at {paths}; "
            "give its folder in mesh_paths or package_paths, or its bytes in assets"
        )
    return f"{label}: {kind} '{reference}': expected its bytes in assets, got none; the file was not sent"
