"""One meaning of a glob for the gateway, the commit and the checks."""

import pytest

from mimir.domain.globs import has_wildcard, is_outside, matches


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("a.py", "a.py"),
        ("./a.py", "a.py"),
        ("*.py", "a.py"),
        ("src/*.py", "src/a.py"),
        ("**/*.py", "a.py"),
        ("**/*.py", "src/deep/a.py"),
        ("src/**", "src/a/b.txt"),
        ("src/**/b.txt", "src/b.txt"),
        ("src/**/b.txt", "src/x/y/b.txt"),
        ("src", "src/a.py"),
        ("src", "src"),
        ("src/", "src/x/y"),
        ("s*/", "src/x/y"),
        (".", "anything/at.all"),
        ("./", "anything"),
        ("**", "a/b/c"),
        ("**/**/**", "a"),
        ("test_?.py", "test_1.py"),
        ("[ab].txt", "b.txt"),
        ("[!a].txt", "b.txt"),
        ("[a-c]x", "bx"),
        ("[]]x", "]x"),
        ("pages/[id].tsx", "pages/[id].tsx"),
        ("pages/[id].tsx", "pages/i.tsx"),
        ("a[b", "a[b"),
        ("weird name\n.txt", "weird name\n.txt"),
        ("*.txt", "line\nbreak.txt"),
        ("*.txt", "\udcff.txt"),
        ("src//a.py", "src/a.py"),
        ("**a", "xa"),
    ],
)
def test_glob_names_the_path(glob: str, path: str) -> None:
    assert matches(path, [glob])


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*.py", "src/a.py"),
        ("*", "src/a.py"),
        ("src/*.py", "src/deep/a.py"),
        ("src", "srcs/a.py"),
        ("src", "lib/src"),
        ("src/**", "src"),
        ("a.py", "A.py"),
        ("", "a"),
        ("/etc/passwd", "etc/passwd"),
        ("../x", "x"),
        ("src/../x", "x"),
        ("test_?.py", "test_.py"),
        ("[!a].txt", "a.txt"),
        ("a?b", "a/b"),
        ("**a", "x/a"),
        ("s*", "src/a"),
    ],
)
def test_glob_does_not_name_the_path(glob: str, path: str) -> None:
    assert not matches(path, [glob])


def test_no_globs_name_nothing() -> None:
    assert not matches("a.py", [])


def test_any_of_several_globs_is_enough() -> None:
    assert matches("b.py", ["a.py", "b.py"])


def test_hostile_glob_takes_no_exponential_time() -> None:
    # A backtracking matcher would not end within the life of the universe.
    assert not matches("a" * 200, ["*a" * 60 + "b"])
    assert not matches("a/" * 200 + "a", ["**/a/" * 60 + "b"])


@pytest.mark.parametrize("glob", ["/abs", "../up", "a/../b", "~/x", "a\0b"])
def test_glob_out_of_the_workspace_is_recognised(glob: str) -> None:
    assert is_outside(glob)


def test_only_wildcards_count_as_wildcards() -> None:
    assert has_wildcard("a*")
    assert has_wildcard("[ab]")
    assert not has_wildcard("src/a.py")
