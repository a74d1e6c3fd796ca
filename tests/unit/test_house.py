"""Rules of the house that no linter knows: AGENTS.md says why each is there."""

import ast
import re
import subprocess
import sys
import tokenize
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHIPPED_PROJECT = ROOT / "mimir" / "demo" / "project"
"""Data: the small project that the demo works on, copied out before use."""
MAX_LINES = 450
DECIDING = (
    "domain",
    "agents.circuit_breaker",
    "agents.context",
    "planning.parser",
    "planning.lint",
    "planning.renderer",
    "qc.judgement.verdict_parser",
    "qc.judgement.quotes",
    "qc.checks.decision_table",
    "qc.judgement.score",
    "qc.evidence",
    "reporting.summary.metrics",
    "reporting.summary.summary",
    "scheduling.decide",
    "scheduling.priority",
    "scheduling.retry",
)
"""Modules that decide; each that exists must stand in the contract "Deciding needs no I/O"."""
CONCRETE = (
    "llm.langchain",
    "llm.scripted",
    "store.neo4j",
    "store.sqlite",
    "tools.builtin",
)
"""Adapters; each that exists must stand in the contract "Only bootstrap names a concrete store, model or tool"."""
MAY_SKIP = ("tests/support/neo4j_servers.py",)
"""Says in one line what is missing where no server can be had; in CI it fails instead."""
SKIPS = re.compile(r"pytest\.(mark\.)?(skip|skipif|xfail|importorskip)|unittest\.skip\w*")


def sources(*folders: str) -> list[Path]:
    found = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return [path for path in found if SHIPPED_PROJECT not in path.parents]


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", sources("mimir", "tests", "scripts"), ids=named)
def test_a_file_holds_one_idea_and_stays_short(path: Path):
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MAX_LINES


@pytest.mark.parametrize(
    "path", [path for path in sources("mimir") if path.name == "__init__.py"], ids=named
)
def test_an_init_file_holds_a_docstring_and_nothing_else(path: Path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)
    if path.parent != ROOT / "mimir":
        assert len(tree.body) == 1


def test_every_room_has_its_docstring():
    rooms = {path.parent for path in sources("mimir")}
    assert [named(room) for room in rooms if not (room / "__init__.py").is_file()] == []


@pytest.mark.parametrize("path", sources("mimir"), ids=named)
def test_nothing_is_left_to_do(path: Path):
    with tokenize.open(path) as file:
        words = re.findall(r"\b(TODO|FIXME|XXX|NotImplementedError)\b", file.read())
    assert words == []


@pytest.mark.parametrize(
    "path", [path for path in sources("tests") if named(path) not in MAY_SKIP], ids=named
)
def test_no_test_is_skipped(path: Path):
    calls = [
        ast.unparse(node)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
    ]
    assert [call for call in calls if SKIPS.fullmatch(call)] == []


def test_tests_are_no_packages():
    """With `--import-mode=importlib` an `__init__.py` would let two tests of one name meet."""
    assert [named(path) for path in sources("tests") if path.name == "__init__.py"] == []


def contract(name: str) -> dict[str, list[str]]:
    configured = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = configured["tool"]["importlinter"]["contracts"]
    return next(found for found in contracts if found["name"] == name)


def existing(modules: tuple[str, ...]) -> set[str]:
    paths = {f"mimir.{name}": ROOT / "mimir" / name.replace(".", "/") for name in modules}
    return {
        name for name, path in paths.items() if path.is_dir() or path.with_suffix(".py").exists()
    }


def test_what_decides_is_under_the_contract_that_forbids_effects():
    assert existing(DECIDING) - set(contract("Deciding needs no I/O")["source_modules"]) == set()


def test_what_is_concrete_is_under_the_contract_that_hides_it():
    hidden = contract("Only bootstrap names a concrete store, model or tool")["forbidden_modules"]
    assert existing(CONCRETE) - set(hidden) == set()


def test_imports_only_go_down():
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
