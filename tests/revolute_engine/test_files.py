"""Where the files that a model names are found."""

from pathlib import Path

import pytest

from revolute_engine._files import FileFinder


def _finder(
    assets: dict[str, bytes] | None = None, folder: Path | None = None, **options: object
) -> FileFinder:
    settings: dict = {"mesh_paths": (), "package_paths": {}, "allow_files": folder is not None, **options}
    return FileFinder(assets or {}, folder, **settings)


@pytest.mark.parametrize(
    ("asset", "reference"),
    [
        ("foot.stl", "foot.stl"),
        ("meshes/foot.stl", "./meshes/foot.stl"),
        ("meshes/foot.stl", "meshes\\foot.stl"),
        ("foot.stl", "meshes/foot.stl"),
        ("models/foot.stl", "foot.stl"),
        ("package://dog/meshes/foot.stl", "package://dog/meshes/foot.stl"),
        ("dog/meshes/foot.stl", "package://dog/meshes/foot.stl"),
        ("meshes/foot.stl", "package://dog/meshes/foot.stl"),
    ],
)
def test_assets_are_found_under_the_names_people_give_them(asset: str, reference: str) -> None:
    assert _finder({asset: b"data"}).find(reference, "models") == b"data"


def test_the_exact_asset_wins() -> None:
    assets = {"foot.stl": b"wrong", "left/foot.stl": b"right"}
    assert _finder(assets).find("left/foot.stl") == b"right"


def test_files_are_found_by_folder_meshdir_and_paths(tmp_path: Path) -> None:
    (tmp_path / "robot" / "meshes").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "robot" / "a.stl").write_bytes(b"a")
    (tmp_path / "robot" / "meshes" / "b.stl").write_bytes(b"b")
    (tmp_path / "elsewhere" / "c.stl").write_bytes(b"c")
    finder = _finder(folder=tmp_path / "robot", mesh_paths=[tmp_path / "elsewhere"])
    assert finder.find("a.stl", "meshes") == b"a"
    assert finder.find("b.stl", "meshes") == b"b"
    assert finder.find("old/place/c.stl") == b"c"
    assert finder.find(str(tmp_path / "robot" / "a.stl")) == b"a"
    assert finder.find("file://" + str(tmp_path / "robot" / "a.stl")) == b"a"
    assert finder.find("d.stl") is None


def test_packages_are_found_by_map_or_above_the_file(tmp_path: Path) -> None:
    (tmp_path / "dog" / "urdf").mkdir(parents=True)
    (tmp_path / "dog" / "a.stl").write_bytes(b"above")
    (tmp_path / "mapped").mkdir()
    (tmp_path / "mapped" / "a.stl").write_bytes(b"mapped")
    folder = tmp_path / "dog" / "urdf"
    assert _finder(folder=folder).find("package://dog/a.stl") == b"above"
    mapped = _finder(folder=folder, package_paths={"dog": tmp_path / "mapped"})
    assert mapped.find("package://dog/a.stl") == b"mapped"


def test_without_allow_files_nothing_on_disk_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.stl"
    path.write_bytes(b"secret")
    finder = _finder(
        folder=tmp_path, allow_files=False, mesh_paths=[tmp_path], package_paths={"dog": tmp_path}
    )
    for reference in (
        "a.stl",
        str(path),
        f"file://{path}",
        "package://dog/a.stl",
        f"../{tmp_path.name}/a.stl",
    ):
        assert finder.find(reference, str(tmp_path)) is None
