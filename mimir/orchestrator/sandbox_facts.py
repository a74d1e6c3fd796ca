"""Facts about the sandbox for the PM: programs, shared folders, test command, limits.

The page is made once, and kept with the PM's brief: a resume or a replay does not look at the machine again.
"""

import asyncio
import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from mimir.domain.agent import ROLES
from mimir.domain.broken_pipes import forgive_broken_pipes
from mimir.domain.json_value import as_object, as_text
from mimir.domain.plan import DEFAULT_TIMEOUT_SECONDS
from mimir.domain.value_class import value_class
from mimir.errors import ConfigurationError, SandboxError, ToolError, WorkspaceError
from mimir.orchestrator.services import ProjectServices
from mimir.workspace.sandbox.sandbox import CommandResult
from mimir.workspace.tree_removal import remove_tree

TEST_SECONDS = 60.0
"""Longest run of the test command; planning waits for it."""
_VERSION_SECONDS = 20.0
_MOST_LINE = 120
_MOST_FAILURES = 8
"""Lines of a failed run that are shown."""
_TEST_TARGET = re.compile(r"^(test|check)\s*:", re.MULTILINE)
_ALWAYS = ("bash", "git", "python")


@value_class
class _Toolchain:
    """Programs of projects that have one of these files at the top."""

    files: tuple[str, ...]
    programs: tuple[str, ...]
    test: str = ""
    """Usual test command; empty: none is tried."""


_TOOLCHAINS = (
    _Toolchain(
        files=("pyproject.toml", "setup.py", "setup.cfg", "pytest.ini", "tox.ini"),
        programs=("pytest",),
        test="python -m pytest -q",
    ),
    _Toolchain(files=("uv.lock",), programs=("uv",)),
    _Toolchain(files=("poetry.lock",), programs=("poetry",)),
    _Toolchain(files=("pdm.lock",), programs=("pdm",)),
    _Toolchain(files=("Pipfile",), programs=("pipenv",)),
    _Toolchain(files=("package.json",), programs=("node", "npm")),
    _Toolchain(files=("go.mod",), programs=("go",), test="go test ./..."),
    _Toolchain(files=("Cargo.toml",), programs=("cargo", "rustc"), test="cargo test --offline"),
    _Toolchain(files=("pom.xml",), programs=("java", "mvn"), test="mvn -o -q test"),
    _Toolchain(
        files=("build.gradle", "build.gradle.kts"),
        programs=("java", "gradle"),
        test="gradle --offline test",
    ),
    _Toolchain(
        files=("CMakeLists.txt",),
        programs=("cmake", "ctest"),
        test="cmake -B build && cmake --build build && ctest --test-dir build",
    ),
    _Toolchain(
        files=("meson.build",),
        programs=("meson", "ninja"),
        test="meson setup build && meson test -C build",
    ),
    _Toolchain(
        files=("Makefile.PL", "Build.PL", "cpanfile"),
        programs=("perl", "prove"),
        test="prove -lr t",
    ),
    _Toolchain(files=("Gemfile",), programs=("ruby", "bundle", "rake")),
    _Toolchain(files=("composer.json",), programs=("php", "composer")),
    _Toolchain(files=("Makefile", "GNUmakefile", "configure"), programs=("make",)),
)
_COMPILERS: Mapping[str, str] = {".c": "cc", ".cc": "c++", ".cpp": "c++", ".cxx": "c++"}
_INTEGRATION = re.compile(
    r"\.github/workflows/[^/]+\.ya?ml|\.gitlab-ci\.yml|\.circleci/config\.yml|\.travis\.yml|"
    r"azure-pipelines\.yml|Jenkinsfile"
)
"""Files with the commands of continuous integration."""
_MOST_INTEGRATION = 5
_MANAGERS: Mapping[str, str] = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun"}


def find_programs(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the programs to look for, by files at the top and suffixes anywhere. Pure."""
    names = frozenset(paths)
    found = [p for one in _TOOLCHAINS if names.intersection(one.files) for p in one.programs]
    managers = [program for file, program in _MANAGERS.items() if file in names]
    suffixes = {PurePosixPath(name).suffix for name in names}
    compilers = [program for suffix, program in _COMPILERS.items() if suffix in suffixes]
    return tuple(dict.fromkeys((*_ALWAYS, *found, *compilers, *managers)))


def find_test_command(paths: Iterable[str], read: Callable[[str], str]) -> str:
    """Return the usual test command of a project; empty: none is known. Pure."""
    paths = frozenset(paths)
    manifest = _parse_object(read("package.json") if "package.json" in paths else "{}")
    if as_text(as_object(manifest.get("scripts")).get("test")):
        manager = next((program for file, program in _MANAGERS.items() if file in paths), "npm")
        return f"{manager} test"
    for one in _TOOLCHAINS:
        if one.test and paths.intersection(one.files):
            return one.test
    for file in ("Makefile", "GNUmakefile"):
        if file in paths and (target := _TEST_TARGET.search(read(file))):
            return f"make {target[1]}"
    is_tested = any(re.fullmatch(r"(?:.*/)?(?:test_\w+|\w+_test)\.py", path) for path in paths)
    return "python -m pytest -q" if is_tested else ""


async def describe_sandbox(
    services: ProjectServices, checkout: Path, paths: Sequence[str]
) -> tuple[str, ...]:
    """Return the facts as lines; commands run on a copy of the checkout, which is removed.

    Raises:
        OSError: The copy cannot be written.
    """

    def read(path: str) -> str:
        try:
            return (checkout / path).read_text(encoding="utf-8", errors="replace")
        except OSError:  # a link that leads nowhere
            return ""

    programs = find_programs(paths)
    command = services.test_command or find_test_command(paths, read)
    copy = checkout.with_name(f"{checkout.name}-facts")
    await asyncio.to_thread(shutil.copytree, checkout, copy, symlinks=True)

    async def run(line: str, seconds: float) -> CommandResult:
        return await services.sandbox.run(
            forgive_broken_pipes(("bash", "-o", "pipefail", "-c", line)),
            workspace=copy,
            seconds=seconds,
            project=services.project,
        )

    try:
        await services.history.make_repository(copy)
        versions = await run(_ask_versions(programs), _VERSION_SECONDS)
        with services.progress.show(f"running {command}, at most {TEST_SECONDS:g} s"):
            tests = await run(command, TEST_SECONDS) if command else None
        view = await services.sandbox.shared_view(services.project)
    except (SandboxError, ToolError, ConfigurationError, WorkspaceError) as error:
        return (f"The sandbox could not be tried: {error}",)
    finally:
        await asyncio.to_thread(remove_tree, copy)
    found = dict(_read_versions(services.redact(versions.output)))
    return tuple(
        _list_facts(
            [f"{name} ({found[name]})" if found[name] else name for name in found],
            [name for name in programs if name not in found],
            view.describe(),
            _describe_tests(command, tests, services.redact) if tests else "",
            [] if tests and tests.exit_code == 0 else list(filter(_INTEGRATION.fullmatch, paths)),
        )
    )


def _list_facts(
    there: Sequence[str],
    missing: Sequence[str],
    shared: Sequence[str],
    tests: str,
    integration: Sequence[str],
) -> Iterator[str]:
    yield (
        "Commands of workers, of QC and of checks run in a sandbox: the workspace at /workspace, no network, no home, "
        "no other process. Files outside of the workspace are deleted afterwards. For git, a check runs on "
        "committed files: `git diff` shows the changes of the check itself."
    )
    yield f"Programs: {', '.join(there) or 'none was found'}."
    if missing:
        yield f"Not there: {', '.join(missing)}."
    if shared:
        yield f"Shared from the user's machine, read and write, for one command each: {'; '.join(shared)}."
    yield (
        f"A check may take {DEFAULT_TIMEOUT_SECONDS:g} seconds unless it sets `timeout_seconds`. "
        "A command line runs in bash with pipefail; of several lines, each must succeed."
    )
    yield tests or "No test command was found."
    if integration:
        names = ", ".join(integration[:_MOST_INTEGRATION])
        yield f"Continuous integration runs the project's own test commands: {names}."
    yield f"Workers have these tools: {', '.join(ROLES['worker'].tools)}."


def _ask_versions(programs: Sequence[str]) -> str:
    # `go` alone has no `--version`.
    return "; ".join(
        f"command -v {name} > /dev/null && echo {name}: "
        f'"$({name} {"version" if name == "go" else "--version"} < /dev/null 2>&1 | sed -n 1p)"'
        for name in programs
    )


def _read_versions(output: str) -> Iterator[tuple[str, str]]:
    for line in output.splitlines():
        name, colon, version = line.partition(":")
        if colon and name in _KNOWN:
            yield name, " ".join(version.split())[:_MOST_LINE]


_KNOWN = frozenset(
    (
        *_ALWAYS,
        *_COMPILERS.values(),
        *_MANAGERS.values(),
        *(name for one in _TOOLCHAINS for name in one.programs),
    )
)


def _describe_tests(command: str, ran: CommandResult, redact: Callable[[str], str]) -> str:
    lines = [line for line in redact(ran.output).splitlines() if line.strip()]
    # Runners name the failed tests before they count them, and a check may leave these out.
    shown = lines[-1:] if ran.exit_code == 0 else lines[-_MOST_FAILURES:]
    quoted = ", ".join(shlex.quote(line[:_MOST_LINE]) for line in shown)
    last = f"; the end of its output: {quoted}" if quoted else ""
    if ran.timed_out:
        end = f"did not end within {TEST_SECONDS:g} s"
    elif ran.exit_code is None:
        end = "could not be run"
    else:
        end = f"ended with exit code {ran.exit_code} after {ran.seconds:.1f} s"
    advice = f" {ran.advice}" if ran.advice else ""
    return f"The project's tests, on its files as they are: `{command}` {end}{last}.{advice}"


def _parse_object(text: str) -> Mapping[str, object]:
    try:
        return as_object(json.loads(text))
    except ValueError:
        return {}
