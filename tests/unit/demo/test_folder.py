"""Reading a folder: what is found, and what is refused with which sentence."""

from pathlib import Path

import pytest

from ramet.demo.errors import FolderRefused
from ramet.demo.folder import Folder
from tests.unit.demo.rig import write_project


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_project(tmp_path / "kettle")


def test_files_are_listed_by_name_without_hidden_and_installed_ones(root: Path) -> None:
    for name in (".git/config", ".venv/x.py", "node_modules/a.js", "src/__pycache__/x.pyc", ".env"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("secret")
    assert [entry.path for entry in Folder(root).list_files()] == [
        "README.md",
        "pyproject.toml",
        "scripts/test",
        "src/kettle/boiler.py",
        "src/kettle/whistle.py",
        "tests/test_boiler.py",
    ]


def test_a_pattern_and_a_limit_narrow_the_list(root: Path) -> None:
    folder = Folder(root)
    assert [e.path for e in folder.list_files("src/**/*.py", limit=1)] == ["src/kettle/boiler.py"]
    assert [e.path for e in folder.list_files("*.md")] == ["README.md"]
    assert [e.path for e in folder.list_files("**/boiler.p?")] == ["src/kettle/boiler.py"]
    assert folder.list_files(limit=0) == []


def test_some_lines_of_a_file_are_read_with_their_numbers(root: Path) -> None:
    read = Folder(root).read_text("src/kettle/boiler.py", 4, 2)
    assert (read.start_line, read.end_line, read.total_lines) == (4, 5, 8)
    assert read.text == 'class Boiler:\n    """Heats until it boils."""'


def test_reading_past_the_end_gives_nothing(root: Path) -> None:
    read = Folder(root).read_text("scripts/test", 50)
    assert (read.text, read.start_line, read.end_line, read.total_lines) == ("", 50, 49, 1)


@pytest.mark.parametrize(
    "path", ["../secret", "src/../../secret", "/etc/passwd", "..", "a\\..\\..\\b"]
)
def test_a_path_that_leads_out_is_refused(root: Path, path: str) -> None:
    with pytest.raises(FolderRefused, match=r"leads out of the folder; give a path inside it"):
        Folder(root).read_text(path)


def test_a_link_that_leads_out_is_neither_listed_nor_followed(root: Path) -> None:
    outside = root.parent / "secret.txt"
    outside.write_text("secret kettle")
    (root / "link.txt").symlink_to(outside)
    (root / "away").symlink_to(root.parent)
    folder = Folder(root)
    for path in ("link.txt", "away/secret.txt"):
        with pytest.raises(FolderRefused, match="is a link that leads out of the folder"):
            folder.read_text(path)
    assert not [entry for entry in folder.list_files() if "secret" in entry.path]
    assert not [entry for entry in folder.list_files() if entry.path.startswith(("link", "away"))]
    assert folder.search_text("secret") == []


def test_a_link_to_a_hidden_file_is_not_followed(root: Path) -> None:
    (root / ".env").write_text("KEY=1")
    (root / "env.txt").symlink_to(root / ".env")
    with pytest.raises(FolderRefused):
        Folder(root).read_text("env.txt")
    assert Folder(root).search_text("KEY") == []


def test_a_link_that_stays_inside_is_read(root: Path) -> None:
    (root / "also.md").symlink_to(root / "README.md")
    assert Folder(root).read_text("also.md").text.startswith("# Kettle")


def test_a_link_to_itself_is_refused(root: Path) -> None:
    (root / "loop").symlink_to(root / "loop")
    with pytest.raises(FolderRefused):
        Folder(root).read_text("loop")
    assert Folder(root).describe().files == 6


def test_hidden_files_are_refused(root: Path) -> None:
    (root / ".env").write_text("KEY=1")
    with pytest.raises(FolderRefused, match="is hidden or installed"):
        Folder(root).read_text(".env")


def test_a_missing_file_and_a_folder_are_refused(root: Path) -> None:
    for path in ("nope.py", "src", ""):
        with pytest.raises(FolderRefused, match="There is no file"):
            Folder(root).read_text(path)


def test_a_path_that_is_none_is_refused(root: Path) -> None:
    with pytest.raises(FolderRefused, match="is not a path"):
        Folder(root).read_text("a\0b")


def test_binary_and_huge_files_are_named_not_read(root: Path) -> None:
    (root / "image.png").write_bytes(b"\x89PNG\0\0kettle")
    (root / "big.txt").write_text("kettle\n" * 200_000)
    folder = Folder(root)
    with pytest.raises(FolderRefused, match=r"'image.png' is a binary file of 12 bytes"):
        folder.read_text("image.png")
    with pytest.raises(FolderRefused, match=r"'big.txt' has 1,400,000 bytes and is not read"):
        folder.read_text("big.txt")
    assert {match.path for match in folder.search_text("kettle")}.isdisjoint(
        {"image.png", "big.txt"}
    )
    assert folder.describe().largest[0].path == "big.txt"


def test_a_search_gives_lines_with_the_most_words_first_and_counts_the_path(root: Path) -> None:
    found = Folder(root).search_text("boiler import")
    assert [(match.path, match.line, match.words) for match in found[:2]] == [
        ("tests/test_boiler.py", 1, ("boiler", "import")),
        ("src/kettle/boiler.py", 4, ("boiler",)),
    ]


def test_a_search_shows_three_lines_of_each_file_before_more_of_any(root: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (root / name).write_text("tea\n" * 9)
    found = Folder(root).search_text("tea", limit=8)
    assert [match.path for match in found] == ["a.txt"] * 3 + ["b.txt"] * 3 + ["a.txt"] * 2


def test_a_search_finds_where_words_begin(root: Path) -> None:
    folder = Folder(root)
    (root / "x.py").write_text("class HotWater: ...\nshorewater = 1\n")
    assert [m.text for m in folder.search_text("water") if m.path == "x.py"] == [
        "class HotWater: ..."
    ]


def test_a_search_takes_words_as_they_are_and_keeps_its_limits(root: Path) -> None:
    (root / "many.txt").write_text("tea.*\n" * 100)
    folder = Folder(root)
    assert len(folder.search_text("tea")) == 12
    assert len(folder.search_text("tea", limit=3)) == 3
    assert folder.search_text(".*(") == []
    assert folder.search_text("") == []


def test_a_folder_is_described_in_numbers(root: Path) -> None:
    described = Folder(root).describe()
    assert (described.name, described.files) == ("kettle", 6)
    assert next(iter(described.languages.items())) == ("Python", 3)
    assert described.paths[:2] == ("README.md", "pyproject.toml")
    assert described.to_json()["files"] == 6


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FolderRefused, match=r"There is no folder .*nope"):
        Folder(tmp_path / "nope")
