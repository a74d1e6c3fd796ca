"""Ignore rules of a whole tree as one list mean the same."""

import subprocess
from pathlib import Path

import pytest

from mimir.workspace.git import user_ignores
from tests.support.projects import git, write_files

FILES = {
    "": "# comment\n\n*.log\n!kept.log\n/top\nbuild/\ndocs/*.txt\n**/deep/x\ntrailing \\ \n\\#hash\n\\!mark\na[0-9]\ncr\r\n",
    "sub": "*.tmp\n/here\n!important.log\nx/y\n!/build/\nonly/\n",
    "sub/in [ner]": "local\n/rooted*\n",
}
PATHS = [
    "a.log", "kept.log", "top", "sub/top", "build/o", "sub/build/o", "sub/x/build/o", "docs/a.txt", "docs/b/a.txt",
    "deep/x", "q/deep/x", "trailing  ", "#hash", "!mark", "a1", "ab", "cr", "sub/a.tmp", "a.tmp", "sub/q/a.tmp",
    "sub/here", "sub/q/here", "sub/important.log", "sub/q/important.log", "sub/x/y", "sub/q/x/y", "sub/only/f",
    "sub/q/only/f", "sub/in [ner]/local", "sub/in [ner]/q/local", "local", "sub/in [ner]/rooted1",
    "sub/in [ner]/q/rooted1", "sub/in n/local", "plain",
]  # fmt: skip


def untracked(repository: Path, *arguments: str) -> set[str]:
    done = subprocess.run(
        ["git", "-C", str(repository), "ls-files", "-z", "-o", *arguments],
        capture_output=True,
        check=True,
    )
    return {name for name in done.stdout.decode().split("\0") if name}


def test_combined_ignore_list_equals_the_ignore_files(tmp_path: Path) -> None:
    project = tmp_path / "project"
    write_files(project, dict.fromkeys(PATHS, "x"))
    git(tmp_path, "init", "--quiet", str(project))
    flat = tmp_path / "flat"
    flat.write_text("\n".join(user_ignores.flatten_rules(FILES.items())) + "\n")
    by_one_list = untracked(project, f"--exclude-from={flat}")
    write_files(project, {f"{name}/.gitignore".lstrip("/"): text for name, text in FILES.items()})
    by_files = {
        name for name in untracked(project, "--exclude-standard") if ".gitignore" not in name
    }
    assert by_one_list == by_files
    assert {"kept.log", "plain", "sub/top", "ab"} <= by_files
    assert "a.log" not in by_files


def test_directory_with_a_line_end_in_its_name_has_no_rules() -> None:
    assert user_ignores.flatten_rules([("a\nb", "*\n")]) == []


@pytest.mark.parametrize(
    ("rule", "prefix", "moved"),
    [
        ("*.log", "pkg", ["*.log"]),
        ("/pkg/build/", "pkg", ["/build/"]),
        ("!pkg/build/x", "pkg", ["!/build/x"]),
        ("/other/build", "pkg", []),
        ("/pkg", "pkg", []),
        ("/pkg/", "pkg", []),
        ("**/x", "pkg", ["**/x"]),
        ("/a/**/x", "a/b", ["**/x"]),
        ("/a/b/c", "a/b", ["/c"]),
        ("/a/c", "a/b", []),
        ("a/b", "", ["a/b"]),
    ],
)
def test_rules_from_above_hold_in_a_part(rule: str, prefix: str, moved: list[str]) -> None:
    assert user_ignores.push_rules_down([rule], prefix) == moved
