"""Check surface: the files of a base tree that decide what the checks of a run mean. Pure."""

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from mimir.domain.globs import has_wildcard, matches
from mimir.domain.plan import Check
from mimir.domain.value_class import value_class
from mimir.qc.integrity import test_runners
from mimir.qc.integrity.check_files import find_check_files, says_it_tests
from mimir.qc.integrity.command_line import PYTHON, find_programs
from mimir.qc.integrity.test_runners import LINTERS
from mimir.qc.scope.loaded_files import (
    find_linter_rules,
    find_loaded_files,
    find_named_files,
    find_targets,
    is_makefile,
)
from mimir.qc.scope.module_shadows import ImportRoots, find_import_roots
from mimir.qc.scope.test_owners import FileOwners


def _list_config() -> tuple[str, ...]:
    names = [glob.removeprefix("**/") for all in test_runners.CONFIG.values() for glob in all]
    names += [name for linter in LINTERS.values() for name in linter.own]
    names += ["*.mk", "*.dist-info/**", "*.egg-info/**", "*.pth"]
    return tuple(dict.fromkeys(f"**/{name}" for name in names))


_CONFIG = _list_config()
_CONFIG_NAMES = frozenset(
    name
    for glob in _CONFIG
    if not has_wildcard(name := glob.removeprefix("**/")) and "/" not in name
)
_CONFIG_GLOBS = tuple(glob for glob in _CONFIG if glob.removeprefix("**/") not in _CONFIG_NAMES)
_BUILD_NAMES = frozenset(
    name
    for tool in sorted(test_runners.STARTERS - {"tox", "nox", "inv", "invoke"})
    for name in test_runners.CONFIG.get(tool, ())
)
_DOT_SETTING = re.compile(r"\.\w+rc(?:\.\w+)?")
_SETTING = re.compile(r"[\w-]+\.(?:config|workspace)\.(?:[cm]?[jt]s|json)")
_ANY_TESTS = tuple(g for g in test_runners.STARTED_TESTS if g.startswith("**/") and g[-3:] != "/**")
"""Tests by their own names, for checks that start an unknown runner."""


@value_class
class CheckSurface:
    """Files of one base tree that decide what the checks of a run mean."""

    owners: FileOwners
    paths: frozenset[str]
    """All paths of the base."""
    folders: frozenset[str]
    test_globs: tuple[str, ...]
    tools: tuple[str, ...]
    """Globs of launchers and ambiguous settings of the tools that checks start."""
    rules: tuple[str, ...]
    """Globs of rules by which linters judge files of the base."""
    beside: tuple[str, ...]
    """Globs of files next to tests."""
    tests: frozenset[str]
    """Tests of the base."""
    test_folders: frozenset[str]
    """Folders with tests in them or below."""
    loaded: frozenset[str]
    """Globs of files that build files load."""
    targets: frozenset[str]
    """Targets of make that checks reach."""
    roots: ImportRoots

    def is_test(self, path: str) -> bool:
        """True for a test or protected file of a check, and for files that its runner collects."""
        return path in self.tests or matches(path, self.test_globs)

    def is_beside_tests(self, path: str) -> bool:
        """True for data and helpers of tests."""
        return bool(self.tests) and matches(path, (*test_runners.BESIDE, *self.beside))

    def configures(self, path: str) -> bool:
        """True for a file that configures a test runner, build tool, linter or package manager."""
        return (
            is_config(path)
            or matches(path, (*self.tools, *self.rules))
            or self._configures_package(path)
        )

    def _configures_package(self, path: str) -> bool:
        """True for a setting of a tool of a JavaScript package, such as the compiler of its tests."""
        folder, name = posixpath.split(path)
        places = {folder} if _SETTING.fullmatch(name) else set[str]()
        if _DOT_SETTING.fullmatch(name):
            places = {folder, ""}  # Compilers read these in each folder below their package.
        return any(posixpath.join(one, "package.json") in self.paths for one in places)

    def is_beside_build_file(self, path: str) -> bool:
        """True for a build file next to another one; it may replace it (`GNUmakefile`)."""
        folder, name = posixpath.split(path)
        return name in _BUILD_NAMES and any(
            posixpath.join(folder, other) in self.paths for other in _BUILD_NAMES
        )


@lru_cache(maxsize=16_384)  # all files are asked for, for each task
def is_config(path: str) -> bool:
    """True if a file configures a tool by its name."""
    return posixpath.basename(path) in _CONFIG_NAMES or matches(path, _CONFIG_GLOBS)


def is_build_file(path: str) -> bool:
    """True if the text of a file may name files that a tool loads."""
    return is_makefile(path) or is_config(path)


def find_surface(
    owners: FileOwners,
    checks: Sequence[Check],
    paths: Iterable[str],
    texts: Mapping[str, str],
) -> CheckSurface:
    """Return the surface of the tree with these paths, for all checks of the run.

    `texts`: path → text of those that `is_build_file` names, and of the scripts of checks.
    """
    base = frozenset(paths)
    found = [find_check_files(check) for check in checks]
    collected = [glob for one in found for glob in one.collected]
    if not all(one.only_reads for one in found):
        collected += _ANY_TESTS
    # A whole folder of tests also has helpers and data: these are files next to tests.
    by_name = [glob for glob in collected if not glob.endswith("/**")]
    test_globs = tuple(dict.fromkeys((*owners.globs, *by_name)))
    commands = [" ".join(check.argv) for check in checks]
    called = {p: text for p, text in texts.items() if is_makefile(p) or not is_config(p)}
    named = {path for path in find_named_files(called, (), base) if says_it_tests(path)}
    tests = named | {path for path in base if matches(path, (*test_globs, *collected))}
    scripts = [script for check in checks for script in _scripts(check)]
    return CheckSurface(
        owners=owners,
        paths=base,
        folders=_folders_of(base),
        test_globs=test_globs,
        tools=tuple(dict.fromkeys(glob for one in found for glob in one.tools)),
        rules=find_linter_rules(called, commands, base),
        beside=tuple(dict.fromkeys(glob for one in found for glob in one.beside)),
        tests=frozenset(tests),
        # A folder with a package file alone has no tests yet.
        test_folders=_folders_of(p for p in tests if posixpath.basename(p) != "__init__.py"),
        loaded=find_loaded_files(texts, commands),
        targets=find_targets(texts, commands),
        roots=find_import_roots(base, tests, scripts),
    )


def _folders_of(paths: Iterable[str]) -> frozenset[str]:
    folders: set[str] = set()
    for path in paths:
        folder = posixpath.dirname(path)
        while folder and folder not in folders:
            folders.add(folder)
            folder = posixpath.dirname(folder)
        folders.add("")
    return frozenset(folders)


def _scripts(check: Check) -> Iterable[str]:
    """Return the Python scripts that a command starts by their path."""
    for one in find_programs(check.argv):
        words = [one.path] if one.path else list(one.arguments[:1])
        if one.path or PYTHON.fullmatch(one.program):
            yield from (one.locate(word) for word in words if word.endswith(".py"))
