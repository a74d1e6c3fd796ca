"""The write scope, path by path: a file that decides a check must be in `files` by its path, the work need not."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from mimir.domain.plan import Check, Plan, Task
from mimir.qc.scope.check_surface import CheckSurface, find_surface, is_build_file
from mimir.qc.scope.loaded_files import find_loaded_files
from mimir.qc.scope.test_owners import find_pending_tests, find_test_owners
from mimir.qc.scope.write_scope import refuse_write

PYTEST = ("python", "-m", "pytest", "-q", "tests/test_calc.py")
BASE: Mapping[str, str] = {
    "calc.py": "",
    "app/__init__.py": "",
    "app/main.py": "",
    "docs/guide.md": "",
    "tests/test_calc.py": "",
    "tests/data.json": "",
    "tests/unit/test_more.py": "",
    "tests/helper/index.js": "",
    "web/expected/page.html": "",
    "node_modules/kit/index.js": "",
    "Makefile": "-include local.mk extra/*.mk\n.PHONY: check\ntest: prepare\n\tpytest\nprepare:\n\ttrue\ncheck: test\n",
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-p support.plug'\n",
    "web/package.json": '{"scripts": {"test": "node --require ./setup.js --test"}}',
    "web/jest.config.js": "module.exports = {setupFiles: ['<rootDir>/boot.js'], roots: ['./src']}",
    "web/swc.config.ts": "",
    "web/src/app.config.ts": "",
    "web/src/app.test.ts": "",
    "web/src/page.ts": "",
    "native/CMakeLists.txt": "",
    "conftest.py": "pytest_plugins = ['helpers.fixtures']\n",
}


def task(
    id: str = "a", *needs: str, files: Sequence[str] = (), run: Sequence[str] = PYTEST
) -> Task:
    one = Check(id="unit", criteria=("c1",), run=tuple(run), protect=("tests/test_calc.py",))
    return Task(
        id=id,
        title=id,
        prompt=id,
        worker_role="R",
        checks=(one,),
        files=tuple(files),
        dependencies=needs,
    )


def surface(plan: Plan, base: Mapping[str, str] = BASE) -> CheckSurface:
    checks = [check for one in plan.tasks for check in one.checks]
    texts = {path: text for path, text in base.items() if is_build_file(path)}
    found = find_surface(find_test_owners(plan), checks, base, texts)
    return replace(found, roots=replace(found.roots, installed={"pluggy", "_pytest"}))


def rule_of(path: str, one: Task, *more: Task, base: Mapping[str, str] = BASE) -> str:
    refusal = refuse_write(path, one, surface(Plan(title="P", tasks=(one, *more)), base))
    return refusal.rule if refusal else ""


REFUSED = {
    "tests/test_calc.py": "test",
    "tests/data.json": "test",
    "Makefile": "config",
    "pyproject.toml": "config",
    "web/package.json": "config",
    "web/swc.config.ts": "config",
    "conftest.py": "config",
    "GNUmakefile": "config",
    "tests/conftest.py": "config",
    "pytest.ini": "config",
    "web/.npmrc": "config",
    "web/babel.config.js": "config",
    "web/vitest.workspace.js": "config",
    "web/src/page.js": "shadow",
    "web/.babelrc": "config",
    "web/.swcrc.json": "config",
    "native/CMakeLists.txt": "config",
    "src/main/resources/junit-platform.properties": "config",
    "src/main/resources/META-INF/services/org.junit.jupiter.api.extension.Extension": "config",
    "local.mk": "loaded",
    "extra/rules.mk": "loaded",
    "support/plug.py": "loaded",
    "support/plug/__init__.py": "loaded",
    "web/setup.js": "loaded",
    "web/boot.js": "loaded",
    "helpers/fixtures.py": "loaded",
    "src/main/java/org/junit/jupiter/api/Assertions.java": "config",
    "test": "target",
    "Makefile.sh": "target",
    "prepare/x.txt": "target",
    "tests/__init__.py": "package",
    "tests/unit/__init__.py": "package",
    "json.py": "shadow",
    "src/dataclasses/__init__.py": "shadow",
    "tests/random.py": "shadow",
    "pluggy.py": "shadow",
    "_pytest/__init__.py": "shadow",
    "calc/__init__.py": "shadow",
    "calc.cpython-311-x86_64-linux-gnu.so": "shadow",
    "tests/calc.py": "shadow",
    "tests/test_calc/__init__.py": "shadow",
    "sitecustomize.py": "config",
    "lib/usercustomize.pyc": "shadow",
    "plug-1.dist-info/entry_points.txt": "shadow",
    "app/main.py/x": "shadow",
    "tests/helper.js": "shadow",
    "tests/data.js": "shadow",
    "web/expected/page.html": "test",
    "node_modules/kit/index.js": "config",
    "node_modules/kit/package.json": "config",
}
PERMITTED = (
    *("calc.py", "app/main.py", "docs/guide.md", "README.md", "new.py", "web/src/index.js"),
    *("web/src/app.config.ts", "web/src/page.ts", "web/src/page.json", ".bashrc"),
    *("new/__init__.py", "app/json.py", "app/new/__init__.py", "tests/test_new.py", "check"),
    *("tests/data.md", "tests/helpers.js", "calc.js", "node_modules/new/index.js"),
    *("tests/golden/new.json", "other/Makefile.txt", "data/tests.csv"),
)


@pytest.mark.parametrize(("path", "rule"), REFUSED.items())
def test_file_that_decides_a_check_must_be_named_by_its_path(path: str, rule: str):
    made = task(run=("make", "check", "test"))

    assert rule_of(path, made) == rule
    assert rule_of(path, task(files=(path,))) == ""


@pytest.mark.parametrize("path", PERMITTED)
def test_the_work_needs_no_files(path: str):
    assert rule_of(path, task(run=("make", "check", "test"))) == ""


def test_a_test_may_source_the_work():
    texts = {"tests/check.sh": ". ./lib.sh\n", "scripts/build.sh": "source ./env.sh\n"}

    assert find_loaded_files(texts, ()) == {"env.sh", "scripts/env.sh"}


def test_glob_does_not_allow_an_existing_test():
    assert rule_of("tests/test_calc.py", task(files=("tests/**",))) == "test"
    assert rule_of("tests/test_new.py", task(files=("tests/**",))) == ""
    assert rule_of("calc.py", task(files=("tests/**",))) == "files"


@pytest.mark.parametrize(
    ("test", "snapshot"),
    [
        ("web/src/app.test.ts", "web/src/__snapshots__/app.test.ts.snap"),
        ("tests/test_calc.py", "tests/__snapshots__/test_calc.ambr"),
        ("tests/calc.rs", "tests/snapshots/calc__adds.snap"),
        ("src/calc.rs", "src/snapshots/kit__calc__tests__adds.snap"),
        ("test.js", "snapshots/test.js.md"),
        ("test/calc.js", "tap-snapshots/test/calc.js.test.cjs"),
    ],
)
def test_a_stored_snapshot_belongs_to_its_test(test: str, snapshot: str):
    base = {test: "", snapshot: ""}
    other = test.replace("c", "x").replace("test.", "other.").replace("app", "page")

    assert rule_of(snapshot, task(files=(test,)), base=base) == ""
    assert rule_of(snapshot, task(files=(f"./{test}",)), base={}) == ""
    assert rule_of(snapshot, task(files=(other,)), base=base) == "files"
    assert rule_of(snapshot, task(files=(f"deep/{test}",)), base=base) == "files"


def test_a_new_project_chooses_its_own_tools():
    base = {"README.md": ""}
    for path in ("Makefile", "pyproject.toml", "conftest.py", "tests/__init__.py"):
        assert rule_of(path, task(), base=base) == ""


def test_a_test_belongs_to_the_task_that_names_it():
    first = task("a", files=("tests/test_calc.py",))
    second = task("b", "a")

    assert rule_of("tests/test_calc.py", first, second) == ""
    assert rule_of("tests/test_calc.py", second, first) == "owner"
    assert rule_of("tests/test_calc.py", second, first, base={}) == "owner"


def test_a_new_test_belongs_to_the_first_task_whose_check_names_it():
    run = ("pytest", "tests/test_new.py")
    before, first, second = task("a", run=("true",)), task("b", "a", run=run), task("c", run=run)

    assert rule_of("tests/test_new.py", first, before) == ""
    assert rule_of("tests/test_new.py", before, first) == ""
    assert rule_of("tests/test_new.py", task("d"), before, first) == "owner"
    assert rule_of("tests/test_new.py", second, replace(first, dependencies=())) == ""
    assert rule_of("tests/test_new.py", replace(first, dependencies=("c",)), second) == "owner"


def test_a_deleted_module_may_become_a_package():
    one = task()
    refusal = refuse_write(
        "calc/__init__.py", one, surface(Plan(title="P", tasks=(one,))), {"calc.py"}
    )

    assert refusal is None


def test_pending_tests_are_those_of_unfinished_tasks():
    made = task("b", run=("pytest", "tests/test_new.py"))
    other = task("c", run=("pytest", "-q"))
    plan = Plan(title="P", tasks=(made, other))

    assert "tests/test_new.py" in find_pending_tests(plan, other, (), "tree").paths
    assert "tests/test_new.py" not in find_pending_tests(plan, other, ("b",), "tree").paths
    assert find_pending_tests(plan, made, (), "tree").paths == ()
