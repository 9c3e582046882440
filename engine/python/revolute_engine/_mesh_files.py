"""Converts mesh files that MuJoCo cannot read to binary STL: COLLADA (.dae) and text STL.

From a COLLADA file, only the triangles are used, placed by the scene's nodes and scaled by the file's unit.
Its up axis is ignored, as in ROS.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt

from revolute.contract.arrays import Float64Array
from revolute.contract.errors import ModelError

_MAX_NODES, _MAX_DEPTH, _MAX_TRIANGLES = 100_000, 200, 5_000_000
"""Largest size of a scene, instances included. Without limits, a short file could create any number of
shapes."""

_POLYGONS = ("triangles", "polylist", "polygons", "trifans", "tristrips")
_NUMBER = rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_VERTEX = re.compile(rb"vertex\s+(%b)\s+(%b)\s+(%b)" % (_NUMBER, _NUMBER, _NUMBER), re.IGNORECASE)


def readable_mesh(label: str, reference: str, extension: str, data: bytes) -> tuple[str, bytes]:
    """Return a mesh in a format that MuJoCo decodes.

    Args:
        label: name of the model in messages.
        reference: name of the file in the model.
        extension: suffix of the file, in lower case.
        data: content of the file.

    Returns:
        Suffix and content, unchanged if MuJoCo can read the file.

    Raises:
        ModelError: the content does not match the suffix, or contains no triangles.
    """
    if extension == ".dae":
        try:
            triangles = _Collada(data).triangles()
        except (ElementTree.ParseError, ValueError, KeyError, IndexError, AttributeError) as error:
            raise _not_a_mesh(label, reference, "a COLLADA file", str(error)) from None
        if not len(triangles):
            raise _not_a_mesh(label, reference, "a COLLADA file with triangles", "none")
        return ".stl", _binary_stl(triangles)
    if extension == ".stl" and _is_stl_in_words(data):
        numbers = [[float(number) for number in found] for found in _VERTEX.findall(data)]
        if not numbers or len(numbers) % 3:
            raise _not_a_mesh(label, reference, "an STL file with triangles", f"{len(numbers)} vertices")
        return ".stl", _binary_stl(np.array(numbers).reshape(-1, 3, 3))
    return extension, data


def _not_a_mesh(label: str, reference: str, what: str, got: str) -> ModelError:
    return ModelError(
        f"{label}: mesh '{reference}': expected {what}, got {got}; convert it to binary STL or OBJ"
    )


def _is_stl_in_words(data: bytes) -> bool:
    """Return whether an STL file is text: it starts with `solid`, and its size does not match binary STL."""
    if data.lstrip()[:5].lower() != b"solid":
        return False
    count = int.from_bytes(data[80:84], "little")
    return len(data) != 84 + 50 * count and b"facet" in data


def _binary_stl(triangles: Float64Array) -> bytes:
    """Return triangles [n, 3, 3] as binary STL."""
    record = np.zeros(
        len(triangles), dtype=[("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")]
    )
    record["corners"] = triangles
    return bytes(80) + len(triangles).to_bytes(4, "little") + record.tobytes()


class _Collada:
    """The triangles of a COLLADA file's scene."""

    def __init__(self, data: bytes) -> None:
        if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
            raise ValueError("a document type")
        if b"\x00" in data:
            raise ValueError("text that is not UTF-8")
        root = ElementTree.fromstring(data)
        for element in root.iter():
            element.tag = element.tag.rpartition("}")[2]
        if root.tag != "COLLADA":
            raise ValueError(f"<{root.tag}>")
        self._root = root
        self._by_id = {element.attrib["id"]: element for element in root.iter() if "id" in element.attrib}
        unit = root.find("asset/unit")
        self._unit = float(unit.attrib.get("meter", "1")) if unit is not None else 1.0
        self._nodes = 0
        self._triangles = 0

    def triangles(self) -> Float64Array:
        """Return all triangles [n, 3, 3] in metres."""
        instance = self._root.find("scene/instance_visual_scene")
        scene = (
            self._target(instance)
            if instance is not None
            else self._root.find("library_visual_scenes/visual_scene")
        )
        parts: list[Float64Array] = []
        if scene is None:
            parts = [self._geometry(geometry) for geometry in self._root.iter("geometry")]
        else:
            for node in scene.findall("node"):
                parts.extend(self._node(node, np.eye(4), 0))
        found = np.concatenate(parts) if parts else np.zeros((0, 3, 3))
        if not np.isfinite(found).all():
            raise ValueError("numbers that are not finite")
        return self._unit * found

    def _target(self, element: ElementTree.Element) -> ElementTree.Element:
        """Return the element that an element refers to."""
        reference = element.attrib.get("url") or element.attrib["source"]
        return self._by_id[reference.lstrip("#")]

    def _node(self, node: ElementTree.Element, above: Float64Array, depth: int) -> Iterator[Float64Array]:
        """Yield the triangles of a scene node and its children."""
        self._nodes += 1
        if self._nodes > _MAX_NODES or depth > _MAX_DEPTH:
            raise ValueError("too many nodes")
        pose = above
        for child in node:
            if child.tag in _TRANSFORMS:
                pose = pose @ _TRANSFORMS[child.tag](_numbers(child))
        for instance in node.findall("instance_geometry"):
            local = self._geometry(self._target(instance))
            self._triangles += len(local)
            if self._triangles > _MAX_TRIANGLES:
                raise ValueError("too many triangles")
            yield local @ pose[:3, :3].T + pose[:3, 3]
        for child in node.findall("node"):
            yield from self._node(child, pose, depth + 1)
        for instance in node.findall("instance_node"):
            yield from self._node(self._target(instance), pose, depth + 1)

    def _geometry(self, geometry: ElementTree.Element) -> Float64Array:
        """Return the triangles of one geometry."""
        parts = [
            self._primitive(primitive)
            for primitive in geometry.iterfind("mesh/*")
            if primitive.tag in _POLYGONS
        ]
        return np.concatenate(parts) if parts else np.zeros((0, 3, 3))

    def _primitive(self, primitive: ElementTree.Element) -> Float64Array:
        """Return the triangles of a list of polygons."""
        inputs = primitive.findall("input")
        stride = 1 + max(int(each.attrib.get("offset", "0")) for each in inputs)
        vertex = next(each for each in inputs if each.attrib["semantic"] == "VERTEX")
        positions = self._positions(self._target(vertex))
        corners = [
            _numbers(each).astype(np.int64).reshape(-1, stride)[:, int(vertex.attrib.get("offset", "0"))]
            for each in primitive.findall("p")
        ]
        if not corners:
            return np.zeros((0, 3, 3))
        if primitive.tag == "triangles":
            faces = np.concatenate(corners).reshape(-1, 3)
        elif primitive.tag == "tristrips":
            faces = np.concatenate([np.stack([each[:-2], each[1:-1], each[2:]], axis=1) for each in corners])
        else:
            counts = primitive.find("vcount")
            if counts is not None:
                corners = np.split(corners[0], np.cumsum(_numbers(counts).astype(np.int64))[:-1])
            faces = np.concatenate([_fan(each) for each in corners])
        return positions[faces]

    def _positions(self, vertices: ElementTree.Element) -> Float64Array:
        """Return the points [n, 3] that a `<vertices>` element names."""
        position = next(each for each in vertices.findall("input") if each.attrib["semantic"] == "POSITION")
        source = self._target(position)
        accessor = source.find("technique_common/accessor")
        array = source.find("float_array")
        assert array is not None
        stride = int(accessor.attrib.get("stride", "3")) if accessor is not None else 3
        return _numbers(array).reshape(-1, stride)[:, :3]


def _numbers(element: ElementTree.Element) -> Float64Array:
    return np.array((element.text or "").split(), dtype=np.float64)


def _fan(corners: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Split a convex polygon into triangles around its first corner."""
    first = np.full(max(len(corners) - 2, 0), corners[0] if len(corners) else 0)
    return np.stack([first, corners[1:-1], corners[2:]], axis=1) if len(first) else np.zeros((0, 3), np.int64)


def _matrix(values: Float64Array) -> Float64Array:
    return values.reshape(4, 4)


def _translation(values: Float64Array) -> Float64Array:
    pose = np.eye(4)
    pose[:3, 3] = values
    return pose


def _scale(values: Float64Array) -> Float64Array:
    return np.diag([*values, 1.0])


def _rotation(values: Float64Array) -> Float64Array:
    """Return the rotation about an axis by an angle in degrees."""
    axis, angle = values[:3] / np.linalg.norm(values[:3]), math.radians(values[3])
    cross = np.cross(np.eye(3), axis)
    pose = np.eye(4)
    pose[:3, :3] += math.sin(angle) * cross + (1 - math.cos(angle)) * cross @ cross
    return pose


_TRANSFORMS = {"matrix": _matrix, "translate": _translation, "rotate": _rotation, "scale": _scale}
