"""The XML tree: what it keeps, and what it refuses."""

import mujoco
import pytest

from revolute.contract.errors import ModelError
from revolute_engine._xml import MAX_DEPTH, parse, write

TEXT = """<?xml version="1.0"?>
<!-- a comment -->
<robot name="a &amp; b">

  <link name="x"/>
  <link
     name="y"><inertial/></link>
</robot>"""


def test_written_text_has_the_same_elements_on_the_same_lines() -> None:
    root = parse("a.urdf", TEXT)
    again = parse("a.urdf", write(root))
    described = [(element.tag, element.attributes, element.line) for element in root.walk()]
    assert described == [(element.tag, element.attributes, element.line) for element in again.walk()]
    assert described[0] == ("robot", {"name": "a & b"}, 3)
    assert described[2] == ("link", {"name": "y"}, 6)


def test_leading_blank_lines_keep_their_numbers() -> None:
    assert parse("a.xml", "\n\n  <mujoco/>").line == 3
    assert parse("a.xml", "\ufeff<mujoco/>").line == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
def test_bytes_are_read_in_the_encoding_they_declare(encoding: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?><robot name="Größe"/>'
    assert parse("a.urdf", text.encode(encoding)).attributes == {"name": "Größe"}
    assert parse("a.urdf", text).attributes == {"name": "Größe"}


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ("", "no element found at line 1, column 1; give an MJCF or URDF file"),
        ("no xml", "syntax error at line 1, column 1; give an MJCF or URDF file"),
        ("<a>\n<b></a>", "mismatched tag at line 2, column 6; give an MJCF or URDF file"),
        (b"solid foot", "syntax error at line 1, column 1; give an MJCF or URDF file"),
        (
            b'<?xml version="1.0" encoding="klingon"?><a/>',
            "unknown encoding: klingon; save the file as UTF-8",
        ),
    ],
)
def test_what_is_not_xml_is_refused_in_one_line(text: str | bytes, got: str) -> None:
    with pytest.raises(ModelError) as caught:
        parse("a.xml", text)
    assert str(caught.value) == f"a.xml: expected XML, got {got}"


def test_document_types_are_refused_before_any_entity_expands() -> None:
    bomb = '<!DOCTYPE a [<!ENTITY x "xxxxxxxx"><!ENTITY y "&x;&x;&x;&x;">]><mujoco model="&y;"/>'
    with pytest.raises(ModelError, match="document type 'a' is not supported"):
        parse("a.xml", bomb)


def test_deep_nesting_is_refused() -> None:
    deep = "<a>" * (MAX_DEPTH + 1) + "</a>" * (MAX_DEPTH + 1)
    with pytest.raises(ModelError, match=f"at most {MAX_DEPTH} nested elements, as MuJoCo's reader takes"):
        parse("a.xml", deep)


def test_nesting_is_read_as_deep_as_mujoco_reads_it() -> None:
    frames = MAX_DEPTH - 3
    deepest = f"{'<frame>' * frames}<geom size='1'/>{'</frame>' * frames}"
    text = f"<mujoco><worldbody>{deepest}</worldbody></mujoco>"
    parse("a.xml", text)
    mujoco.MjModel.from_xml_string(text)
    with pytest.raises(ValueError, match="XML_ELEMENT_DEPTH_EXCEEDED"):
        mujoco.MjModel.from_xml_string(text.replace(deepest, f"<frame>{deepest}</frame>"))


def test_a_comment_may_hold_anything() -> None:
    root = parse("a.urdf", "<robot>\n<!-- a -- b\n <link> & -->\n<link name='x'/><!----></robot>")
    assert [(element.tag, element.line) for element in root.walk()] == [("robot", 1), ("link", 4)]


@pytest.mark.parametrize("stray", [b"\x00\x00", b"\n\x00garbage", b"\xff"])
def test_stray_bytes_after_the_document_are_no_part_of_it(stray: bytes) -> None:
    assert parse("a.urdf", b"<robot name='a'><link/></robot>\n" + stray).attributes == {"name": "a"}


@pytest.mark.parametrize("text", ["<robot/><robot/>", "<robot/>\x00<link/>", "<!-- <robot/>"])
def test_a_second_document_is_refused(text: str) -> None:
    with pytest.raises(ModelError, match=r"a\.urdf: expected XML, got"):
        parse("a.urdf", text)
