"""A reader that ends first makes no pipeline fail; every other failure stays one."""

import subprocess

import pytest

from mimir.domain.broken_pipes import early_readers, forgive_broken_pipes

ENDS = {
    "yes | head -1": 0,
    "yes | grep -q y && true": 0,
    "seq 3 | yes 2>/dev/null | head -1": 0,
    "for i in 1 2; do yes | head -1; done | cat": 0,
    "if ! yes | head -1; then exit 7; fi": 0,
    "set -e; yes | head -1; exit 3": 3,
    "false | head -1": 1,
    "exit 5 | cat": 5,
    "no-such-program | cat": 127,
    "bash -c 'kill -PIPE $$' | cat": 141,
    "(exit 4) | cat": 4,
    "yes | head -1 | grep n": 1,
}


@pytest.mark.parametrize("script", ENDS)
def test_broken_pipe_is_accepted_only_after_the_end_of_its_reader(script: str):
    argv = forgive_broken_pipes(("bash", "-o", "pipefail", "-c", script))

    assert subprocess.run(argv, capture_output=True).returncode == ENDS[script]


def test_other_commands_stay_as_they_are():
    for argv in (("pytest", "-q"), ("bash", "-c", "yes | head -1"), ("bash", "-o", "pipefail")):
        assert forgive_broken_pipes(argv) == argv


def test_readers_that_may_end_first_are_found():
    assert list(early_readers("a | grep -q x && b | head -3; grep -q y f; c | tail")) == [
        "grep -q",
        "head -3",
    ]
