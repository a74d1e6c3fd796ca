"""A project with a plan, and a mimir with the answers of the test."""

import sys
from pathlib import Path

import pytest

import mimir.bootstrap as mimir_bootstrap
from mimir.cli.main import run
from tests.support.fake_app import PLAN, FakeMimir, Mimir, Said, fakes


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own directory with the plan `limiter` where mimir was used before, entered; a model can be asked."""
    (tmp_path / ".mimir").mkdir()
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    folder = tmp_path / "chains" / "limiter"
    folder.mkdir(parents=True)
    (folder / "chain-output.md").write_text(PLAN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeMimir:
    """The stand-in for mimir behind the commands."""
    mimir = FakeMimir()
    for name, module in fakes(mimir).items():
        # Both, because `from mimir.bootstrap import app` reads the attribute first.
        monkeypatch.setitem(sys.modules, f"mimir.bootstrap.{name}", module)
        monkeypatch.setattr(mimir_bootstrap, name, module, raising=False)
    return mimir


@pytest.fixture
def mimir(project: Path, fake: FakeMimir, capsys: pytest.CaptureFixture[str]) -> Mimir:
    """Run a command line in the project."""

    def called(*arguments: str) -> Said:
        code = run(arguments)
        said = capsys.readouterr()
        return Said(code=code, out=said.out, err=said.err)

    return called
