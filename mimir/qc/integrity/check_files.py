"""Files of a check: its tests, and the files next to them. Pure.

A check proves something only as far as it is not the work itself. So its tests are part of the run before the work, too: a test that
cannot fail passes there, and is found. `tests` of the plan decide. If they are absent, path arguments of `run` belong to the check if
their name says that they test, and the files that a test runner collects.

Rules and reasons: docs/decisions/0017-write-scope-and-test-owners.md.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from mimir.domain.globs import has_wildcard, is_outside, matches
from mimir.domain.plan import Check, Task
from mimir.domain.value_class import value_class
from mimir.qc.integrity import test_runners
from mimir.qc.integrity.command_line import SHELLS, ProgramCall, find_programs

_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+")
_SNAPSHOTS = ("__snapshots__", "snapshots")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


@value_class
class CheckFiles:
    """Files of a check, as globs; they may match nothing."""

    tests: tuple[str, ...]
    """Its tests; an attempt that changes one makes the evidence self-authored."""
    reached: tuple[str, ...] = ()
    """Further tests that a build tool or script may start (`make test`, `run_tests.sh`)."""
    beside: tuple[str, ...] = ()
    """Files next to its tests; only if they existed before the work."""
    collected: tuple[str, ...] = ()
    """Files that its runners collect below a directory; empty: it has no runner."""
    tools: tuple[str, ...] = ()
    """Launchers and settings of its tools whose names say so only together with the command."""
    only_reads: bool = False
    """True: its programs read files and start none of them."""

    @property
    def all_tests(self) -> tuple[str, ...]:
        """Its tests, those that it may start, and the files next to them."""
        return (*self.tests, *self.reached, *self.beside)

    def collects(self, path: str) -> bool:
        """True if its runners collect a file by its own name."""
        # A file that is merely in a folder of tests may be a helper, or data.
        return matches(path, (glob for glob in self.collected if not glob.endswith("/**")))


@lru_cache(maxsize=1024)
def find_check_files(check: Check) -> CheckFiles:
    """Return the files of a check."""
    # Cached: every run asks, and each check is asked for each author of a file.
    started = find_programs(check.argv)
    tests = check.tests
    if tests is None:
        tests = tuple(dict.fromkeys(glob for command in started for glob in _find_tests(command)))
    collected = [
        glob
        for one in started
        for name in test_runners.COLLECTED.get(one.program, ())
        for glob in (name, one.locate(name))
        if not is_outside(glob)
    ]
    starts_tests = any(map(_starts_tests, started))
    if starts_tests:
        collected += test_runners.STARTED_TESTS
    collected = list(dict.fromkeys(collected))
    return CheckFiles(
        tests=tests,
        reached=(*test_runners.STARTED_TESTS, *test_runners.BESIDE) if starts_tests else (),
        beside=_find_companions(tests, collected),
        collected=tuple(collected),
        tools=tuple(dict.fromkeys(glob for one in started for glob in _find_tools(one))),
        only_reads=all(one.program in test_runners.READERS for one in started),
    )


def _find_tools(command: ProgramCall) -> Iterator[str]:
    """Yield the paths of known programs inside the project: `bin/rspec`, `vendor/bin/phpunit`."""
    path = command.path
    if path and command.program in test_runners.KNOWN and not is_outside(path):
        yield command.locate(path)
    for name in test_runners.AMBIGUOUS.get(command.program, ()):
        yield command.locate(name)


def _find_companions(tests: Sequence[str], collected: Sequence[str]) -> tuple[str, ...]:
    """Return the files next to tests: anywhere for a runner, otherwise in test folders."""
    if tests and collected:
        return test_runners.BESIDE
    folders = dict.fromkeys(posixpath.dirname(path) for path in tests)
    return tuple(f"{folder}/**" for folder in folders if says_it_tests(folder))


def is_named(path: str, files: tuple[str, ...]) -> bool:
    """True if `files` name the very path, or the test of which it is a stored snapshot."""
    return path in map(posixpath.normpath, files) or matches(path, find_snapshots(files))


@lru_cache(maxsize=256)
def find_snapshots(files: tuple[str, ...]) -> tuple[str, ...]:
    """Return globs of the stored snapshots of tests that `files` name by their paths."""
    globs: list[str] = []
    for path in (posixpath.normpath(one) for one in files if not has_wildcard(one)):
        name = posixpath.basename(path)
        stem, at = posixpath.splitext(name)[0], path.removesuffix(name)
        # jest, vitest and ava; syrupy; insta for tests and for units; tap
        globs += [f"{at}{folder}/{name}.{end}" for folder in _SNAPSHOTS for end in ("snap", "md")]
        globs += [f"{at}__snapshots__/{stem}.ambr", f"tap-snapshots/{path}.test.cjs"]
        globs += [f"{at}snapshots/{stem}__*.snap", f"{at}snapshots/*__{stem}__*.snap"]
    return tuple(globs)


def is_declared_file(path: str, globs: Iterable[str]) -> bool:
    """True if a task's `files` name a file by its own name (`conftest.py`, not `src/**`)."""
    name = posixpath.basename(path)
    return matches(path, (glob for glob in globs if posixpath.basename(glob) == name))


def is_work(argv: Sequence[str], task: Task) -> bool:
    """True if the task is to write a Python module that the command starts with `-m`."""
    names = {one.program.split(".")[0] for one in find_programs(argv) if one.module}
    ends = (".py", "/__init__.py", "/__main__.py")
    files = task.files or ("**",)
    return any(
        matches(f"{below}{name}{end}", files)
        for name in names - test_runners.TOOLS
        for below in ("", "src/", "lib/")
        for end in ends
    )


def _starts_tests(command: ProgramCall) -> bool:
    """True if a build tool or script starts tests that the command does not name."""
    if command.program in test_runners.STARTERS:
        return not _lints(command)
    is_script = command.path != "" and not is_outside(command.path)
    is_script &= command.program not in test_runners.KNOWN | test_runners.READERS
    if is_script or command.program in SHELLS:
        return True
    if command.program in test_runners.COLLECTED or command.program in test_runners.READERS:
        return False
    script = posixpath.basename(next(_positional(command), ""))
    return not test_runners.RUNS_TESTS.isdisjoint(_words_of(script))


def _lints(command: ProgramCall) -> bool:
    """True if a build tool starts linters, and nothing else."""
    targets = [_words_of(word) for word in command.arguments if not word.startswith("-")]
    targets = [words for words in targets if words != {"run"}]
    return targets != [] and all(
        words & test_runners.LINTS and not words & test_runners.RUNS_TESTS for words in targets
    )


def _find_tests(command: ProgramCall) -> Iterator[str]:
    """Yield the globs of one program's tests."""
    # Programs that only read a file (`grep`, `test -f`, linters) read the work.
    if command.program in test_runners.READERS - test_runners.COMPARERS or is_outside(
        command.below
    ):
        return
    collected = test_runners.COLLECTED.get(command.program, ())
    arguments = list(_positional(command))
    if collected and arguments and posixpath.basename(arguments[0]) == command.program:
        del arguments[0]  # the runner itself, by its path (`node_modules/.bin/jest`)
    paths = [path for argument in arguments for path in _paths(command, argument)]
    for path in paths or ["."]:
        if says_it_tests(path):
            yield command.locate(path)
        else:
            # A directory of sources holds tests and work; for a file, these globs match nothing.
            yield from (command.locate(f"{path}/{glob}") for glob in collected)


def _positional(command: ProgramCall) -> Iterator[str]:
    """Yield the arguments that are neither options nor values of known options."""
    valued = test_runners.TAKE_A_VALUE.get(command.program, frozenset[str]())
    skip = False
    for argument in command.arguments:
        if not skip and not argument.startswith("-"):
            yield argument
        skip = not skip and argument in valued


def _paths(command: ProgramCall, argument: str) -> list[str]:
    """Return an argument as relative paths or globs; empty: it is none."""
    # pytest selects with `path::name`; commands may use the absolute path of the sandbox.
    path = argument.split("::", 1)[0].removeprefix("/workspace/")
    paths = [path]
    # Runners of unittest, such as those of Django, take dotted names as well as paths.
    if command.program == "unittest" and "/" not in path and not path.endswith(".py"):
        paths = _module_files(path)
    elif command.module or command.program == "manage.py test":
        paths += _module_files(path) if _DOTTED.fullmatch(path) else []
    if command.program in test_runners.SUBCOMMANDS:
        paths = [path.removesuffix("...") for path in paths if "/" in path]
    return [
        posixpath.normpath(path)
        for path in paths
        if path and not is_outside(path) and path.isprintable()
    ]


def _module_files(dotted: str) -> list[str]:
    """Return the places of a dotted test: `tests.test_a.Case.test_x` is in `tests/test_a.py`."""
    parts = dotted.split(".")
    for at, part in enumerate(parts):
        if part.startswith("test_") or part.endswith("_test"):
            return ["/".join(parts[: at + 1]) + ".py"]
    folder = "/".join(parts)
    return [folder, f"{folder}.py"] if parts[1:] and parts[-1] in ("test", "tests") else [folder]


def says_it_tests(path: str) -> bool:
    """True if the name of a file, or of a folder above it, says that it tests."""
    return not test_runners.TESTING.isdisjoint(_words_of(path))


def _words_of(path: str) -> set[str]:
    return {word.lower() for part in path.split("/") for word in _WORDS.findall(part)}
