"""The wheel and the site; `test_demo.py` uses the wheel."""

import re
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.wheel import ROOT, build, run


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("dist"))


def test_two_builds_are_equal_byte_for_byte(wheel: Path, tmp_path: Path):
    assert build(tmp_path).read_bytes() == wheel.read_bytes()


def test_every_file_of_the_packages_is_in_the_wheel_and_no_other(wheel: Path):
    words = ("git", "ls-files", "-z", "mimir", "mimir_bench", "preambles")
    listed = run(words, ROOT).stdout.split("\0")
    wanted = {name.replace("preambles/", "mimir/preambles/", 1) if name.startswith("pre") else name
              for name in listed if name}  # fmt: skip
    with zipfile.ZipFile(wheel) as packed:
        packed_names = {name for name in packed.namelist() if ".dist-info/" not in name}
    absent = {name for name in wanted - packed_names if (ROOT / name).exists()}
    assert absent == set()
    assert {name for name in packed_names if name.endswith(".pyc")} == set()


def test_the_site_is_built_and_asks_no_other_server(tmp_path: Path):
    words = (sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", tmp_path)
    done = run(words, ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {path.name for path in tmp_path.glob("*.html")}
    assert {"index.html", "first-run.html", "automation.html"} <= pages
    assert (tmp_path / "search/search_index.json").is_file()
    drawn = (tmp_path / "architecture.html").read_text(encoding="utf-8")
    assert drawn.count("<svg") == 2
    assert "mermaid" not in drawn
    for path in (*tmp_path.rglob("*.html"), *tmp_path.rglob("*.css")):
        text = path.read_text(encoding="utf-8")
        loaded = r"(?:src=|<link[^>]*href=|url\(|@import )[\"']?(?:https?:)?//[^\s\"')]+"
        assert re.findall(loaded, text) == [], path.name
