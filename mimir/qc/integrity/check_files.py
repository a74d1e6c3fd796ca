"""Files of a check: its tests, and the files that configure their runner. Pure.

A check proves something only as far as it is not the work itself. So its files are part of the run before the work, too: a test that
cannot fail passes there, and is found. `tests` of the plan decide. If they are absent, path arguments of `run` belong to the check if
their name says that they test, and the files that a test runner collects.

Rules and reasons: docs/decisions/0017-write-scope-and-test-owners.md.
"""

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from mimir.domain.globs import is_outside, matches
from mimir.domain.plan import Check, Task
from mimir.qc.integrity import linters, test_runners
from mimir.qc.integrity.command_line import ProgramCall, find_programs

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFiles:
    """Files of a check, as globs; they may match nothing."""

    tests: tuple[str, ...]
    """Its tests; an attempt that changes one makes the evidence self-authored."""
    reached: tuple[str, ...] = ()
    """Further tests that a build tool or script may start (`make test`, `run_tests.sh`)."""
    beside: tuple[str, ...] = ()
    """Files next to its tests; only if they existed before the work."""
    hooks: tuple[str, ...] = ()
    """Files that configure its runner; part of the check if an attempt changes them."""
    settings: tuple[str, ...] = ()
    """The same, but only if the file existed before the work."""
    shadows: tuple[str, ...] = ()
    """The same, but only if the file is new: it would replace a module of the runner."""
    collected: tuple[str, ...] = ()
    """Files that its runners collect below a directory; empty: it has no runner."""
    started_by: tuple[str, ...] = ()
    """Files in which build tools define what they start."""
    rules: tuple[str, ...] = ()
    """Those of its settings that hold rules of linters."""
    judged: tuple[str, ...] = ()
    """Files that its linters judge, or that start them; if none existed, rules are work."""

    @property
    def all_tests(self) -> tuple[str, ...]:
        """Its tests, those that it may start, and the files next to them."""
        return (*self.tests, *self.reached, *self.beside)

    def collects(self, path: str) -> bool:
        """True if its runners collect a file by its own name."""
        # A file that is merely in a folder of tests may be a helper, or data.
        return matches(path, (glob for glob in self.collected if not glob.endswith("/**")))

    def are_tests(self, paths: Iterable[str]) -> bool:
        """True if paths of `all_tests` contain a test, not only data or an `__init__.py`."""
        return any(
            not self.collected or path in self.tests or matches(path, self.collected)
            for path in paths
        )


@lru_cache(maxsize=1024)
def find_check_files(check: Check) -> CheckFiles:
    """Return the files of a check."""
    # Cached: every run asks, and each check is asked for each author of a file.
    started = find_programs(check.argv)
    tests = check.tests
    if tests is None:
        tests = tuple(dict.fromkeys(glob for command in started for glob in _find_tests(command)))
    judging = _globs_of(started, linters.RULES)
    found = CheckFiles(
        tests=tests,
        hooks=(*_globs_of(started, test_runners.HOOKS), *_find_launchers(started)),
        settings=(*_globs_of(started, test_runners.SETTINGS), *judging),
        shadows=_globs_of(started, test_runners.SHADOWS),
        collected=_globs_of(started, test_runners.COLLECTED),
        rules=judging,
        judged=_globs_of(started, linters.JUDGED),
    )
    found = replace(found, beside=_find_companions(found))
    return _add_started_programs(found, [one for one in started if _may_start(one)])


def _find_launchers(started: Iterable[ProgramCall]) -> Iterator[str]:
    """Yield the paths of known programs inside the project: `bin/rspec`, `vendor/bin/phpunit`."""
    for one in started:
        if one.path and one.program in test_runners.KNOWN and not is_outside(one.path):
            yield _join_path(one, one.path)


def _find_companions(found: CheckFiles) -> tuple[str, ...]:
    """Return the files next to tests: anywhere for a runner, otherwise in test folders."""
    if found.tests and found.collected:
        return test_runners.BESIDE
    folders = dict.fromkeys(posixpath.dirname(path) for path in found.tests)
    return tuple(f"{folder}/**" for folder in folders if says_it_tests(folder))


def _add_started_programs(found: CheckFiles, starters: Sequence[ProgramCall]) -> CheckFiles:
    """Add the files of programs that may start any runner or linter."""
    if not starters:
        return found
    started_by = _globs_of(starters, test_runners.SETTINGS)
    found = replace(
        found,
        settings=(*found.settings, *linters.STARTED_RULES),
        rules=(*found.rules, *linters.STARTED_RULES),
        judged=(*found.judged, *started_by, *found.tests),
        started_by=started_by,
    )
    # `make lint` runs no tests, so hooks of runners cannot affect it.
    if all(map(_lints, starters)):
        return found
    found = replace(
        found,
        hooks=(*found.hooks, *test_runners.STARTED_HOOKS),
        settings=(*found.settings, *test_runners.STARTED_SETTINGS),
    )
    if not any(map(_starts_tests, starters)):
        return found
    return replace(
        found,
        reached=(*test_runners.STARTED_TESTS, *test_runners.BESIDE),
        collected=(*found.collected, *test_runners.STARTED_TESTS),
    )


def find_config_changes(
    found: CheckFiles, task: Task, changed: Iterable[str], added: Collection[str]
) -> tuple[str, ...]:
    """Return the changed paths that configure the check's runner and are not declared work.

    `changed` includes deleted paths, and the new ones, `added`.
    """
    return tuple(
        path
        for path in changed
        if (matches(path, found.hooks) or (path not in added and matches(path, found.settings)))
        and not is_declared_file(path, task.files)
    )


def find_new_config(found: CheckFiles, task: Task, added: Iterable[str]) -> tuple[str, ...]:
    """Return new files that may configure the runner and are not declared work."""
    may = (*_anywhere(found.settings), *found.shadows)
    return tuple(
        path for path in added if matches(path, may) and not is_declared_file(path, task.files)
    )


def find_rules(found: CheckFiles, paths: Iterable[str]) -> tuple[str, ...]:
    """Return the paths that hold rules of a check's linters, in any folder."""
    named = _anywhere(found.rules)
    return tuple(path for path in paths if matches(path, named))


def configures_runner(found: CheckFiles, path: str, *, is_new: bool = True) -> bool:
    """True if a change may configure the runner: a hook, or settings (new: in any folder)."""
    return _steers(path, found.hooks, found.settings, found.shadows, is_new)


@lru_cache(maxsize=16_384)
def _steers(
    path: str,
    hooks: tuple[str, ...],
    settings: tuple[str, ...],
    shadows: tuple[str, ...],
    is_new: bool,
) -> bool:
    # Cached: most checks of a plan share their runner, and all are asked of all files.
    may = (*_anywhere(settings), *shadows) if is_new else settings
    return matches(path, hooks) or matches(path, may)


def is_declared_file(path: str, globs: Iterable[str]) -> bool:
    """True if a task's `files` name a file by its own name (`conftest.py`, not `src/**`)."""
    name = posixpath.basename(path)
    return matches(path, (glob for glob in globs if posixpath.basename(glob) == name))


def is_work(argv: Sequence[str], task: Task) -> bool:
    """True if the task is to write a Python module that the command starts with `-m`."""
    names = [one.program.split(".")[0] for one in find_programs(argv) if one.module]
    return any(
        name not in test_runners.TOOLS
        and (not task.files or any(matches(path, task.files) for path in _module_paths(name)))
        for name in names
    )


def _module_paths(name: str) -> Iterator[str]:
    for below in ("", "src/", "lib/"):
        yield from (f"{below}{name}{end}" for end in (".py", "/__init__.py", "/__main__.py"))


def _anywhere(settings: Iterable[str]) -> list[str]:
    return [f"**/{name}" for name in settings]


def _globs_of(
    started: Iterable[ProgramCall], table: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """Return the globs of programs, in the directory of their call and at the top."""
    found = [
        glob
        for one in started
        for name in table.get(one.program, ())
        for glob in (name, _join_path(one, name))
        if not is_outside(glob)
    ]
    return tuple(dict.fromkeys(found))


def _may_start(command: ProgramCall) -> bool:
    """True if a file defines what a program starts: a build tool or a test script."""
    return command.program in test_runners.STARTERS or test_runners.says_it_tests(
        _script_words(command)
    )


def _starts_tests(command: ProgramCall) -> bool:
    """True if it starts tests rather than linters or readers."""
    if command.program in test_runners.STARTERS:
        return not _lints(command)
    return test_runners.says_it_runs_tests(_script_words(command))


def _lints(command: ProgramCall) -> bool:
    """True if a build tool starts linters, and nothing else."""
    if command.program not in test_runners.STARTERS:
        return False
    targets = [_words_of(word) for word in command.arguments if not word.startswith("-")]
    targets = [words for words in targets if words != {"run"}]
    return targets != [] and all(map(test_runners.says_it_lints, targets))


def _script_words(command: ProgramCall) -> set[str]:
    """Return the words of a script's name; empty: the program is not a script."""
    if command.program in test_runners.COLLECTED or command.program in test_runners.READERS:
        return set()
    return _words_of(posixpath.basename(next(_positional(command), "")))


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
    paths = [path for argument in arguments if (path := _path(command, argument))]
    for path in paths or ["."]:
        if says_it_tests(path):
            yield _join_path(command, path)
        else:
            # A directory of sources holds tests and work; for a file, these globs match nothing.
            yield from (_join_path(command, f"{path}/{glob}") for glob in collected)


def _join_path(command: ProgramCall, glob: str) -> str:
    return posixpath.normpath(posixpath.join(command.below, glob))


def _positional(command: ProgramCall) -> Iterator[str]:
    """Yield the arguments that are neither options nor values of known options."""
    valued = test_runners.TAKE_A_VALUE.get(command.program, frozenset[str]())
    skip = False
    for argument in command.arguments:
        if not skip and not argument.startswith("-"):
            yield argument
        skip = not skip and argument in valued


def _path(command: ProgramCall, argument: str) -> str:
    """Return an argument as a relative path or glob; empty: it is neither."""
    # pytest selects with `path::name`; commands may use the absolute path of the sandbox.
    path = argument.split("::", 1)[0].removeprefix("/workspace/")
    # unittest takes dotted names as well as paths.
    if command.program == "unittest" and "/" not in path and not path.endswith(".py"):
        path = _module_file(path)
    if command.program in test_runners.SUBCOMMANDS:
        path = path.removesuffix("...") if "/" in path else ""
    if not path or is_outside(path) or not path.isprintable():
        return ""
    return posixpath.normpath(path)


def _module_file(dotted: str) -> str:
    """Return the file of a dotted test: `tests.test_a.Case.test_x` is in `tests/test_a.py`."""
    parts = dotted.split(".")
    for at, part in enumerate(parts):
        if part.startswith("test_") or part.endswith("_test"):
            return "/".join(parts[: at + 1]) + ".py"
    return "/".join(parts)


def says_it_tests(path: str) -> bool:
    """True if the name of a file, or of a folder above it, says that it tests."""
    return test_runners.says_it_tests(_words_of(path))


def _words_of(path: str) -> set[str]:
    return {word.lower() for part in path.split("/") for word in _WORDS.findall(part)}
