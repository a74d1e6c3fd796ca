"""The oracles are asked without the engine: right work is right, every wrong one is wrong."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from mimir.domain.agent import ALL_TOOLS
from mimir.domain.globs import matches
from mimir.domain.plan import Plan
from mimir.planning.lint.plan_check import check
from mimir_bench.faults.attacks.attacked_case import make_attacked_case
from mimir_bench.faults.attacks.runner_project import versions
from mimir_bench.faults.benchmark import ATTACKED, FAMILIES, UNCHECKED
from mimir_bench.faults.fault_case import FaultCase, Files, ProjectCase
from mimir_bench.faults.hidden_tests import PLACE, RIGHT
from mimir_bench.faults.operators import OPERATORS, clean, usable
from mimir_bench.seeded_random import SeededRandom
from tests.support.projects import write_files

SEEDS = range(1, 21)


ASK = """
import contextlib, datetime, hashlib, io, json, os, runpy, socket, sys, time, urllib.request
for room in sys.argv[2:]:
    if not os.fork():
        os.chdir(room)
        os.dup2(os.open(room + ".said", os.O_CREAT | os.O_WRONLY), 1)
        os.dup2(1, 2)
        exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"))
        sys.stdout.flush()
        os._exit(0)
    with open(room + ".ended", "w") as file:
        file.write(str(os.wait()[1]))
"""
"""Asks an oracle about many trees; its imports are loaded once."""


def right_ones(room: Path, case: ProjectCase, works: Sequence[tuple[str, Files]]) -> list[str]:
    """Return the names of the works that the oracle calls right."""
    trees = [room / str(number) for number in range(len(works))]
    for tree, (_, work) in zip(trees, works, strict=True):
        for files in (case.files, *case.earlier.values(), work):
            write_files(tree, files)
        (tree / PLACE).write_text(case.oracle, encoding="utf-8")
    subprocess.run([sys.executable, "-I", "-c", ASK, PLACE, *map(str, trees)], check=True)
    return [
        name
        for tree, (name, _) in zip(trees, works, strict=True)
        if Path(f"{tree}.ended").read_text(encoding="utf-8") == "0"
        and Path(f"{tree}.said").read_text(encoding="utf-8").endswith(f"{RIGHT}\n")
    ]


def wrong(case: FaultCase) -> Iterator[tuple[str, Files]]:
    yield "nothing", {}
    yield "stub", case.stub
    yield "loud", case.loud
    yield "misread", case.misread.files
    for kind in (case.subtle, case.partial, case.stale, case.hidden, case.obeyed):
        yield from ((version.name, version.files) for version in kind)


@pytest.mark.parametrize("family", FAMILIES)
def test_right_work_is_right_and_every_wrong_one_is_wrong(family: str, tmp_path: Path):
    case = FAMILIES[family](3)
    works = [("right", case.right), *wrong(case)]
    assert right_ones(tmp_path, case, works) == ["right"]


@pytest.mark.parametrize("family", ATTACKED)
def test_only_unattacked_work_on_an_attacked_project_is_right(family: str, tmp_path: Path):
    case = make_attacked_case(family, 1)
    made = {
        is_right: [
            (f"{number} {one.name}", one.changes)
            for cause in case.causes
            for number, one in enumerate(versions(case.project, cause, is_right=is_right))
        ]
        for is_right in (True, False)
    }
    works = [*made[True], *made[False]]
    assert right_ones(tmp_path, case, works) == [name for name, _ in made[True]]
    assert all(versions(case.project, cause, is_right=True) for cause in case.causes)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_seed_draws_another_case_with_a_plan_that_is_accepted(family: str):
    cases = [FAMILIES[family](seed) for seed in SEEDS]
    assert len({case.oracle for case in cases}) == len(cases)
    for case in cases:
        plan = Plan(title="A case", tasks=case.tasks, request="Do it.", goal="Done.")
        assert [f for f in check(plan, tools=ALL_TOOLS) if f.severity == "error"] == []
        assert case.misread.said in case.files[case.misread.path]
        assert case.instructions in case.files
        assert bool(case.tests) == (family not in UNCHECKED)
        for path in case.right:
            assert not case.target.files or matches(path, case.target.files)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_operator_plants_more_than_one_variant(family: str):
    cases = [FAMILIES[family](seed) for seed in SEEDS]
    for name in usable(cases[0]):
        made = [OPERATORS[name](case, SeededRandom(family, case.seed, name)) for case in cases]
        assert len({str(script.turns) for script in made}) > 1, name
    assert all(clean(case, SeededRandom(case.seed)).version == "right work" for case in cases)


@pytest.mark.parametrize("family", [name for name in FAMILIES if name not in UNCHECKED])
def test_visible_tests_fail_loud_faults_and_pass_right_work(family: str, tmp_path: Path):
    case = FAMILIES[family](2)
    for name, work in (("right", case.right), ("loud", case.loud), ("nothing", {})):
        room = tmp_path / name
        for files in (case.files, *case.earlier.values(), work):
            write_files(room, files)
        codes = [
            subprocess.run(one.argv, cwd=room, capture_output=True, check=False).returncode
            for one in case.target.checks
        ]
        assert any(codes) == (name != "right"), (name, codes)
