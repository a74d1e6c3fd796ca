"""Which files make up a check: its tests, and what steers the program that runs them. Pure.

A check proves something of the work only as far as it is not the work itself. What belongs to it goes into the run before, too: a
test that cannot fail passes there, and is found.

`tests` of the plan decide. Left out, they are the path arguments of `run` that belong to the check rather than to the work:
- an argument whose name says that it tests (`tests/test_a.py::test_x`, `check.sh`, `spec/`), with everything below it;
- for a test runner, what it collects below any other directory, or everywhere if it is given no path at all;
- nothing for programs that only look at a file (`grep`, `test -f`, linters …): what they look at is the work, and so is a script
  whose name does not say that it tests.

What lies *beside* tests are the data and the helpers by which they judge: an expected result that was rewritten passes any work.

The *harness* are files that steer a runner without being tests: one planted `conftest.py` can make every test pass. What an attempt
changed of it counts as part of the check, unless the task's own `files` name that very file: then it is the work. The *rules* of a linter
are to it what tests are to a runner: one new `ruff.toml` can leave out whatever is wrong.
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
    """The files of a check, as globs; they may name files that are not there."""

    tests: tuple[str, ...]
    """Its tests; a change to one makes the evidence self-authored."""
    reached: tuple[str, ...] = ()
    """Tests that it may start besides, by a program that says in a file of its own what it starts (`make test`, `run_tests.sh`)."""
    beside: tuple[str, ...] = ()
    """What lies with its tests; only where the file was there before the work."""
    hooks: tuple[str, ...] = ()
    """What steers its runner; part of the check when an attempt changes it."""
    settings: tuple[str, ...] = ()
    """The same, but only where the file was there before the work."""
    shadows: tuple[str, ...] = ()
    """The same, but only where the file is new: it would be taken for a module of the runner."""
    collected: tuple[str, ...] = ()
    """What its runners take for a test below a directory; empty: it has none."""
    started_by: tuple[str, ...] = ()
    """The file in which such a program says what it starts."""
    rules: tuple[str, ...] = ()
    """Those of its settings by which linters judge."""
    judged: tuple[str, ...] = ()
    """What its linters look at, or whatever says that they are started: where nothing of it was there, rules come with the work."""

    @property
    def all_tests(self) -> tuple[str, ...]:
        """Its tests, those that it may start, and what lies with them."""
        return (*self.tests, *self.reached, *self.beside)

    def collects(self, path: str) -> bool:
        """True if its runners take a file for a test by its own name: what merely lies in a folder of tests may be a helper, or data."""
        return matches(path, (glob for glob in self.collected if not glob.endswith("/**")))

    def are_tests(self, paths: Iterable[str]) -> bool:
        """True if there is anything to run among paths that `all_tests` name: not only data, or an `__init__.py`."""
        return any(
            not self.collected or path in self.tests or matches(path, self.collected)
            for path in paths
        )


@lru_cache(maxsize=1024)
def find_check_files(check: Check) -> CheckFiles:
    """Return which files make up a check."""
    # Kept, since it is asked wherever a check runs, and of each check for each author of a file.
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
    """Yield the paths of known programs that lie in the project themselves: `bin/rspec`, `vendor/bin/phpunit`."""
    for one in started:
        if one.path and one.program in test_runners.KNOWN and not is_outside(one.path):
            yield _below(one, one.path)


def _find_companions(found: CheckFiles) -> tuple[str, ...]:
    """Return what lies with tests: anywhere for a test runner, else in their own folder if that says that it tests."""
    if found.tests and found.collected:
        return test_runners.BESIDE
    folders = dict.fromkeys(posixpath.dirname(path) for path in found.tests)
    return tuple(f"{folder}/**" for folder in folders if says_it_tests(folder))


def _add_started_programs(found: CheckFiles, starters: Sequence[ProgramCall]) -> CheckFiles:
    """Add what belongs to programs that start others: any runner, any linter."""
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
    """Return the changed paths that steer the check's runner and are not declared work, also among its tests.

    Args:
        found: Of the check.
        task: Whose attempt it is; a file that its `files` name by its own name is work (`conftest.py`, not `src/**`).
        changed: Paths that the attempt changed, added or deleted.
        added: Those of them that were not there before.
    """
    return tuple(
        path
        for path in changed
        if (matches(path, found.hooks) or (path not in added and matches(path, found.settings)))
        and not is_declared_file(path, task.files)
    )


def find_new_config(found: CheckFiles, task: Task, added: Iterable[str]) -> tuple[str, ...]:
    """Return the new files that may set a check's runner, or stand before a module of its own, and are not declared work.

    Args:
        found: Of the check.
        task: As in `find_config_changes`.
        added: Paths that were not there before.
    """
    may = (*_anywhere(found.settings), *found.shadows)
    return tuple(
        path for path in added if matches(path, may) and not is_declared_file(path, task.files)
    )


def find_rules(found: CheckFiles, paths: Iterable[str]) -> tuple[str, ...]:
    """Return the paths that hold rules of a check's linters, wherever they lie."""
    named = _anywhere(found.rules)
    return tuple(path for path in paths if matches(path, named))


def configures_runner(found: CheckFiles, path: str, *, is_new: bool = True) -> bool:
    """True if a changed path may steer the check's runner: as a hook, or by settings; new ones wherever they lie."""
    return _steers(path, found.hooks, found.settings, found.shadows, is_new)


@lru_cache(maxsize=16_384)
def _steers(
    path: str,
    hooks: tuple[str, ...],
    settings: tuple[str, ...],
    shadows: tuple[str, ...],
    is_new: bool,
) -> bool:
    # Kept, since most checks of a plan share their runner, and all are asked of all files.
    may = (*_anywhere(settings), *shadows) if is_new else settings
    return matches(path, hooks) or matches(path, may)


def is_declared_file(path: str, globs: Iterable[str]) -> bool:
    """True if a task's `files` name a file by its own name (`conftest.py`, not `src/**`)."""
    name = posixpath.basename(path)
    return matches(path, (glob for glob in globs if posixpath.basename(glob) == name))


def is_work(argv: Sequence[str], task: Task) -> bool:
    """True if a Python module that the command starts with `-m` is what the task is to write: then it is not a program that is missing."""
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
    """Return the globs of programs, in the directory that they are started in and at the top."""
    found = [
        glob
        for one in started
        for name in table.get(one.program, ())
        for glob in (name, _below(one, name))
        if not is_outside(glob)
    ]
    return tuple(dict.fromkeys(found))


def _may_start(command: ProgramCall) -> bool:
    """True if a program says in a file what it starts: a build tool, or a script whose name says that it tests."""
    return command.program in test_runners.STARTERS or test_runners.says_it_tests(
        _script_words(command)
    )


def _starts_tests(command: ProgramCall) -> bool:
    """True if what it starts are tests rather than linters, or a look at something."""
    if command.program in test_runners.STARTERS:
        return not _lints(command)
    return test_runners.says_it_runs_tests(_script_words(command))


def _lints(command: ProgramCall) -> bool:
    """True if a build tool is told to start linters, and nothing else."""
    told = [_words_of(argument) for argument in command.arguments if not argument.startswith("-")]
    told = [words for words in told if words != {"run"}]
    is_told = command.program in test_runners.STARTERS and told != []
    return is_told and all(map(test_runners.says_it_lints, told))


def _script_words(command: ProgramCall) -> set[str]:
    """Return the words of a script's name; none: the program is no script's."""
    if command.program in test_runners.COLLECTED or command.program in test_runners.READERS:
        return set()
    return _words_of(posixpath.basename(next(_positional(command), "")))


def _find_tests(command: ProgramCall) -> Iterator[str]:
    """Yield the globs of one program's tests."""
    if command.program in test_runners.READERS - test_runners.COMPARERS or is_outside(
        command.below
    ):
        return
    collected = test_runners.COLLECTED.get(command.program, ())
    arguments = list(_positional(command))
    if collected and arguments and posixpath.basename(arguments[0]) == command.program:
        del arguments[0]  # the runner itself, named by its path (`node_modules/.bin/jest`)
    paths = [path for argument in arguments if (path := _path(command, argument))]
    for path in paths or ["."]:
        if says_it_tests(path):
            yield _below(command, path)
        else:
            # Below a directory of sources lie tests and work; where it is a file, this names nothing.
            yield from (_below(command, f"{path}/{glob}") for glob in collected)


def _below(command: ProgramCall, glob: str) -> str:
    return posixpath.normpath(posixpath.join(command.below, glob))


def _positional(command: ProgramCall) -> Iterator[str]:
    """Yield the arguments that are no options and no values of options that are known to take one."""
    valued = test_runners.TAKE_A_VALUE.get(command.program, frozenset[str]())
    skip = False
    for argument in command.arguments:
        if not skip and not argument.startswith("-"):
            yield argument
        skip = not skip and argument in valued


def _path(command: ProgramCall, argument: str) -> str:
    """Return an argument as a relative path or glob; empty: it is none."""
    path = argument.split("::", 1)[0].removeprefix("/workspace/")
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
