"""Programs and test commands, by the files of a project."""

from collections.abc import Mapping

import pytest

from mimir.orchestrator.sandbox_facts import find_programs, find_test_command

SCRIPT = '{"scripts": {"test": "vitest"}}'


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"pyproject.toml": ""}, "python -m pytest -q"),
        ({"src/x.py": "", "tests/test_x.py": ""}, "python -m pytest -q"),
        ({"package.json": SCRIPT}, "npm test"),
        ({"package.json": SCRIPT, "pnpm-lock.yaml": ""}, "pnpm test"),
        ({"package.json": "[broken", "go.mod": ""}, "go test ./..."),
        ({"Cargo.toml": ""}, "cargo test --offline"),
        ({"Makefile": "all:\n\ntest: all\n"}, "make test"),
        ({"Makefile": "all:\n\ncheck: all\n"}, "make check"),
        ({"Makefile": "all:\n"}, ""),
        ({"cpanfile": "", "t/a.t": ""}, "prove -lr t"),
        ({"README.md": ""}, ""),
    ],
)
def test_test_command_follows_from_the_files(files: Mapping[str, str], command: str):
    assert find_test_command(files, files.__getitem__) == command


def test_programs_follow_from_the_files():
    assert find_programs(["README.md"]) == ("bash", "git", "python")
    assert find_programs(["package.json", "yarn.lock"])[3:] == ("node", "npm", "yarn")
    assert find_programs(["docs/package.json", "src/a.c", "src/b.cpp"])[3:] == ("cc", "c++")
