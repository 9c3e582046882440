"""COLLADA and STL in words give the shapes that the same mesh gives as OBJ."""

import numpy as np
import pytest

from revolute.contract.errors import ModelError
from revolute_engine import Model, load_model

CORNERS = np.array([[x, y, z] for x in (0, 1) for y in (0, 2) for z in (0, 3)], dtype=float)
FACES = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]

URDF = """<robot name="r"><link name="base"/><link name="box"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><geometry><mesh filename="{name}" scale="{scale}"/></geometry></collision></link>
  <joint name="j" type="floating"><parent link="base"/><child link="box"/></joint></robot>"""


def _obj(corners: np.ndarray = CORNERS) -> bytes:
    lines = [f"v {x} {y} {z}" for x, y, z in corners]
    lines += ["f " + " ".join(str(index + 1) for index in face) for face in FACES]
    return "\n".join(lines).encode()


def _collada(primitive: str, node: str = '<instance_geometry url="#g"/>', unit: str = "1") -> bytes:
    numbers = " ".join(f"{value:g}" for value in CORNERS.ravel())
    return f"""<?xml version="1.0"?>
    <COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
    <asset><unit name="u" meter="{unit}"/><up_axis>Y_UP</up_axis></asset>
    <library_geometries><geometry id="g"><mesh>
      <source id="p"><float_array id="a" count="24">{numbers}</float_array>
        <technique_common><accessor source="#a" count="8" stride="3"/></technique_common></source>
      <source id="n"><float_array id="b" count="3">0 0 1</float_array></source>
      <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
      {primitive}
    </mesh></geometry></library_geometries>
    <library_visual_scenes><visual_scene id="s"><node id="top">{node}</node></visual_scene>
    </library_visual_scenes>
    <scene><instance_visual_scene url="#s"/></scene></COLLADA>""".encode()


INPUTS = '<input semantic="VERTEX" source="#v" offset="0"/><input semantic="NORMAL" source="#n" offset="1"/>'


def _indices(face: tuple[int, ...]) -> str:
    return " ".join(f"{index} 0" for index in face)


TRIANGLES = [corners for a, b, c, d in FACES for corners in ((a, b, c), (a, c, d))]
PRIMITIVES = {
    "triangles": f"<triangles count='12'>{INPUTS}<p>{' '.join(map(_indices, TRIANGLES))}</p></triangles>",
    "polylist": f"<polylist count='6'>{INPUTS}<vcount>4 4 4 4 4 4</vcount>"
    f"<p>{' '.join(map(_indices, FACES))}</p></polylist>",
    "polygons": f"<polygons count='6'>{INPUTS}"
    f"{''.join(f'<p>{_indices(face)}</p>' for face in FACES)}</polygons>",
    "strips": f"<tristrips count='6'>{INPUTS}"
    f"{''.join(f'<p>{_indices((a, b, d, c))}</p>' for a, b, c, d in FACES)}</tristrips>",
}


def _load(name: str, data: bytes, scale: str = "1 1 1") -> Model:
    return load_model(URDF.format(name=name, scale=scale), assets={name: data})


def _corners(model: Model) -> np.ndarray:
    """Return the hull's corners in the link's frame, sorted."""
    arrays = model.arrays
    w, x, y, z = arrays["geom_quat"][0]
    turn = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    corners = arrays["hull_vert"] @ turn.T + arrays["geom_pos"][0]
    return corners[np.lexsort(np.round(corners, 4).T)]


def _expected(corners: np.ndarray) -> np.ndarray:
    return corners[np.lexsort(np.round(corners, 4).T)]


@pytest.mark.parametrize("primitive", PRIMITIVES)
def test_collada_gives_the_shape_of_obj(primitive: str) -> None:
    model = _load("box.dae", _collada(PRIMITIVES[primitive]))
    assert np.allclose(_corners(model), _expected(CORNERS), atol=1e-6)
    assert np.allclose(_corners(model), _corners(_load("box.obj", _obj())), atol=1e-6)


def test_nodes_place_and_units_scale_a_collada_shape() -> None:
    nested = (
        "<translate>1 0 0</translate><rotate>0 0 1 90</rotate><scale>2 1 1</scale>"
        '<node id="inner"><matrix>1 0 0 0  0 1 0 0  0 0 1 5  0 0 0 1</matrix>'
        '<instance_geometry url="#g"/></node>'
    )
    model = _load("box.dae", _collada(PRIMITIVES["triangles"], nested, unit="0.01"), scale="10 10 10")
    x, y, z = CORNERS.T
    placed = 0.1 * np.stack([1 - y, 2 * x, z + 5], axis=1)
    assert np.allclose(_corners(model), _expected(placed), atol=1e-6)


def test_instances_of_nodes_count_too() -> None:
    node = (
        '<node id="part"><instance_geometry url="#g"/></node>'
        '<node id="copy"><translate>0 0 10</translate><instance_node url="#part"/></node>'
    )
    model = _load("box.dae", _collada(PRIMITIVES["polylist"], node))
    assert _corners(model)[:, 2].max() == pytest.approx(13)


def test_stl_in_words_gives_the_same_shape() -> None:
    facets = "".join(
        "facet normal 0 0 0\n outer loop\n"
        + "".join(f"  vertex {x:.6e} {y:+.3f} {z}\n" for x, y, z in CORNERS[list(face)])
        + " endloop\nendfacet\n"
        for face in TRIANGLES
    )
    model = _load("box.stl", f"solid box\n{facets}endsolid box\n".encode())
    assert np.allclose(_corners(model), _expected(CORNERS), atol=1e-6)


def test_a_shape_whose_faces_enclose_nothing_needs_no_volume() -> None:
    inside_out = _obj() + b"".join(
        b"\nf " + b" ".join(b"%d" % (index + 1) for index in reversed(face)) for face in FACES
    )
    assert np.allclose(_corners(_load("box.obj", inside_out)), _expected(CORNERS), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.dae", b"solid", "expected a COLLADA file, got syntax error: line 1, column 0"),
        ("a.dae", b"<mujoco/>", "expected a COLLADA file, got <mujoco>"),
        ("a.dae", b"<!DOCTYPE a><COLLADA/>", "expected a COLLADA file, got a document type"),
        ("a.dae", "<COLLADA/>".encode("utf-16"), "expected a COLLADA file, got text that is not UTF-8"),
        ("a.dae", b"<COLLADA/>", "expected a COLLADA file with triangles, got none"),
        ("a.dae", _collada(PRIMITIVES["triangles"], "<matrix>1 2</matrix>"), "expected a COLLADA file, got"),
        (
            "a.stl",
            b"solid a\nfacet\nvertex 1 2 3\nendsolid",
            "expected an STL file with triangles, got 1 vertices",
        ),
    ],
)
def test_what_is_no_mesh_is_refused_by_name(name: str, data: bytes, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        load_model(URDF.format(name=name, scale="1 1 1"), assets={name: data}, name="r.urdf")
    assert str(caught.value).startswith(f"r.urdf: mesh '{name}': {message}")
    assert str(caught.value).endswith("; convert it to binary STL or OBJ")


def test_a_scene_without_end_is_refused() -> None:
    node = '<instance_node url="#top"/>'
    with pytest.raises(ModelError, match="expected a COLLADA file, got too many nodes"):
        _load("a.dae", _collada(PRIMITIVES["triangles"], node))
    doubled = "".join(
        f'<node id="n{i}"><instance_node url="#n{i + 1}"/><instance_node url="#n{i + 1}"/></node>'
        for i in range(40)
    )
    node = f'{doubled}<node id="n40"><instance_geometry url="#g"/></node>'
    with pytest.raises(ModelError, match="expected a COLLADA file, got too many"):
        _load("a.dae", _collada(PRIMITIVES["triangles"], node))
