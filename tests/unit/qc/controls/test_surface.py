"""Which files of a checkout a control changes, and literals that still compile."""

from pathlib import Path

import pytest

from mimir.qc.controls.surface import TrustedFiles, loads_code, mutate_tests
from mimir.qc.controls.variants import continue_after_failures
from mimir.qc.mutations.mutation import other_literal
from tests.support.projects import write_files

NO_WORK = TrustedFiles(named=(), work=())


@pytest.mark.parametrize(
    ("literal", "other"),
    [
        ("1.7976931348623157E308", "2.7976931348623157"),
        ("4.9E-324", "5.9"),
        ("-0.0", "-1.0"),
        ("12345678901234567.5f64", "1.5f64"),
        ("2147483647", "2147483646"),
    ],
)
def test_another_number_is_in_the_range_of_its_type(literal: str, other: str):
    assert other_literal(literal, literal) == other


def test_a_file_without_counted_tests_stays_where_files_are_compiled_together(tmp_path: Path):
    test = "class {0} {{\n  @Test void {1}() {{ assertEquals(5, f()); }}\n}}\n"
    files = {
        "src/test/ATest.java": test.format("ATest", "adds"),
        "src/test/BTest.java": test.format("BTest", "subtracts"),
        "src/test/BaseTest.java": test.format("BaseTest", "inherited"),
    }
    write_files(tmp_path, files)

    listed = mutate_tests(
        tmp_path, NO_WORK, "statements", frozenset(("p.ATest::adds[1]", "p.CTest::inherited"))
    )

    assert listed.keys() == files.keys()
    assert {path for path, text in files.items() if (tmp_path / path).read_text() == text} == {
        "src/test/BTest.java"
    }


def test_examples_in_any_text_change_if_they_are_counted(tmp_path: Path):
    """As with `--doctest-glob=*.doctest`."""
    write_files(tmp_path, dict.fromkeys(("a.doctest", "b.doctest", "c.rst"), ">>> 1 + 1\n2\n"))
    counted = frozenset(("a.doctest::a.doctest",))

    assert mutate_tests(tmp_path, NO_WORK, "statements", counted).keys() == {"a.doctest", "c.rst"}


@pytest.mark.parametrize(
    ("module", "is_changed"),
    [("mod tests {", False), ('#[path = "b.rs"] mod tests; mod c {', False), ("mod other {", True)],
)
def test_rust_tests_in_place_of_others_stay(tmp_path: Path, module: str, is_changed: bool):
    """Their results have the names of the tests in the file, which turn red only where it is read."""
    tests = "#[test]\nfn a() { assert_eq!(f(), 5); }\n"
    work = {"src/lib.rs": f"{module}\n{tests}}}\n", "src/b.rs": tests}
    write_files(tmp_path, {**work, "src/tests.rs": tests})

    changed = mutate_tests(tmp_path, TrustedFiles(named=(), work=tuple(work)), "expectations")

    assert (work.keys() <= changed.keys(), work.keys().isdisjoint(changed)) == (
        is_changed,
        not is_changed,
    )
    assert "src/tests.rs" in changed


def test_a_continuation_changes_no_file_outside_of_the_checkout(tmp_path: Path):
    scripts = {"package.json": '{"scripts": {"test": "a && b"}}', "run.sh": "a && b\n"}
    write_files(tmp_path / "outside", scripts)
    checkout = tmp_path / "checkout"
    write_files(checkout, {"own.sh": "a && b\n"})
    (checkout / "below").symlink_to(tmp_path / "outside")
    for name in scripts:
        (checkout / name).symlink_to(tmp_path / "outside" / name)

    direct = continue_after_failures(lambda _: ("make",))(checkout)
    by_shell = continue_after_failures(lambda _: ("bash", "-c", "a && mvn test"))(checkout)

    skipped = "-Dcheckstyle.skip=true -Dspotless.check.skip=true "
    assert direct is not None
    assert direct[:2] == ("env", "MAKEFLAGS=i")
    assert direct[2].startswith(f"MAVEN_OPTS={skipped}")
    assert by_shell is not None
    assert by_shell[2].startswith(f"export MAKEFLAGS=i MAVEN_OPTS='{skipped}")
    assert by_shell[2].endswith("; a ; mvn test")
    assert (checkout / "own.sh").read_text() == "a ; b\n"
    assert {name: (tmp_path / "outside" / name).read_text() for name in scripts} == scripts


def test_code_that_tests_load_is_found_by_the_names_on_the_way(tmp_path: Path):
    files = {
        "tests/test_a.py": "from pkg import a\n",
        "pkg/__init__.py": "",
        "pkg/a.py": "from pkg.helper import one\n",
        "pkg/helper.py": "",
        "pkg/other.py": "",
        "go/a_test.go": "package calc\n",
        "go/b.go": "package calc\n",
        "go/c.pb.go": "package calc\n",
        "web/x.test.ts": "import { y } from './my-part.js'\n",
        "web/my-part.ts": "",
    }
    write_files(tmp_path, files)
    for tests, loaded, free in (
        ("tests/test_a.py", "pkg/helper.py", "pkg/other.py"),
        ("tests/test_a.py", "pkg/__init__.py", "web/my-part.ts"),
        ("go/a_test.go", "go/b.go", "pkg/a.py"),
        ("go/a_test.go", "go/c.pb.go", "pkg/a.py"),
        ("web/x.test.ts", "web/my-part.ts", "go/b.go"),
    ):
        assert loads_code(tmp_path, [tests], [loaded])
        assert not loads_code(tmp_path, [tests], [free, "README.md"])
    assert loads_code(tmp_path, ["unknown"], ["pkg/other.py"])
