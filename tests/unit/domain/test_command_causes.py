"""Each cause of a failed command gets its advice."""

import pytest

from mimir.domain.command_causes import (
    HIDDEN_PATH,
    explain_failure,
    missing_packages,
    missing_paths,
)


@pytest.mark.parametrize(
    ("output", "advice"),
    [
        ("curl: (6) Could not resolve host: x", "no network"),
        ("go: x: dial tcp: lookup proxy.golang.org: no such host", "no network"),
        ("npm error code ENOTCACHED", "no network"),
        ("hint: Packages were unavailable because the network was disabled.", "no network"),
        ("pip: Temporary failure in name resolution", "no network"),
        ("Error: EROFS: open '/usr/x'", "sandbox.share"),
        ("sh: 1: cannot create /usr/x: Read-only file system", "sandbox.share"),
        ("MemoryError\n", "sandbox.memory_mb"),
        ("FATAL ERROR: JavaScript heap out of memory", "sandbox.memory_mb"),
        ("write: No space left on device", "sandbox.memory_mb"),
        ("Error: Snapshot `a > b 1` mismatched\n ❯ test/a.test.ts:2:3", "vitest run -u"),
        ("New snapshot was not written. The update flag must be passed", "jest --ci=false"),
        ("FAIL Required test coverage of 90% not reached. Total coverage: 86.67%", "--no-cov"),
        ('Jest: "global" coverage threshold for lines (100%) not met: 12%', "--coverage=false"),
        (
            "ERROR: Coverage for lines (12%) does not meet global threshold (90%)",
            "--coverage=false",
        ),
    ],
)
def test_known_cause_in_the_output_has_advice(output: str, advice: str):
    assert advice in explain_failure(output)


@pytest.mark.parametrize(
    ("reason", "advice"),
    [("timeout", "timeout_seconds"), ("memory", "memory_mb"), ("processes", "sandbox.processes")],
)
def test_ended_command_names_its_limit(reason: str, advice: str):
    assert advice in explain_failure("", stop_reason=reason)


@pytest.mark.parametrize(
    ("output", "path"),
    [
        ("ModuleNotFoundError: No module named 'pkg.local'", "src/pkg/local.py"),
        ("ImportError: cannot import name 'local' from 'pkg' (x)", "src/pkg/local.py"),
        ("Error: Cannot find module './gen/client'", "gen/"),
        ("Error: Cannot find module '../config.js'", "config.js"),
    ],
)
def test_missing_module_that_git_ignores_names_the_file_and_the_setting(output: str, path: str):
    ignored = ("other.txt", "src/pkg/local.py", "gen/", "config.js")
    said = explain_failure(output, ignored=ignored)
    assert repr(path) in said
    assert "sandbox.share" in said


def test_module_that_is_yet_to_be_written_has_no_advice():
    ignored = ("node_modules/", ".env", ".mimir/.gitignore")
    for output in ("No module named 'calc'", "cannot import name 'add' from 'calc' (x)"):
        assert explain_failure(output, ignored=ignored) == ""


@pytest.mark.parametrize(
    "output",
    [
        "java.nio.file.NoSuchFileException: /etc/tool/tool.conf",
        "cat: /etc/tool/tool.conf: No such file or directory",
        "FileNotFoundError: [Errno 2] No such file or directory: '/etc/tool/tool.conf'",
        "Error: ENOENT: no such file or directory, open '/etc/tool/tool.conf'",
        "open /etc/tool/tool.conf: no such file or directory",
        "The file /etc/tool/tool.conf does not exist.",
    ],
)
def test_system_path_that_commands_do_not_see_is_named_with_the_setting(output: str):
    assert missing_paths(output) == ["/etc/tool/tool.conf"]
    explained = explain_failure(output, hidden=missing_paths(output))
    assert HIDDEN_PATH in explained
    assert 'sandbox.share = ["/etc/tool/tool.conf"]' in explained


def test_paths_of_a_user_and_those_that_are_not_missing_are_not_looked_up():
    output = "cat: /home/user/.ssh/id: No such file or directory\nread /etc/passwd: done\n"
    assert missing_paths(output) == []


@pytest.mark.parametrize(
    ("output", "python", "node"),
    [
        ("ModuleNotFoundError: No module named 'simplejson'", ["simplejson"], []),
        ("/usr/bin/python3: No module named pytest", ["pytest"], []),
        ("ModuleNotFoundError: No module named 'app.new'", [], []),
        ("Error: Cannot find module 'chai'\nRequire stack:", [], ["chai"]),
        ("Error [ERR_MODULE_NOT_FOUND]: Cannot find package '@a/b' imported from x", [], ["@a/b"]),
        ("error TS2307: Cannot find module 'zod/v4' or its types", [], ["zod"]),
        ("Error: Cannot find module './new'", [], []),
        ("Error: Cannot find module '/workspace/src/new.js'", [], []),
    ],
)
def test_missing_packages_are_those_that_an_installation_provides(
    output: str, python: list[str], node: list[str]
):
    assert missing_packages(output) == (python, node)
