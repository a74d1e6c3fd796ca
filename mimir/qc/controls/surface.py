"""Files of a checkout that a control changes: tests, scripts, and the work itself."""

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from mimir.domain.globs import matches
from mimir.domain.value_class import value_class
from mimir.qc.controls.decision import WHOLE, TestNames
from mimir.qc.controls.inline_programs import mutate_command
from mimir.qc.controls.scripts import Script, mutate_text
from mimir.qc.integrity.check_files import says_it_tests
from mimir.qc.mutations import (
    doctests,
    lexed_tests,
    python_tests,
    test_outlines,
    test_programs,
)
from mimir.qc.mutations.mutation import MARK, ChangedTests, Step
from mimir.qc.mutations.scripts import interpreter_of
from mimir.qc.mutations.test_programs import TestProgram

_TESTING = re.compile(
    r"(?:^|[/_.\-])(?:tests?|specs?|testing|__tests__)(?:[/_.\-]|$)|(?:^|/)test|Tests?\.\w+$|Spec\.\w+$",
)
_RUST_MODULE = re.compile(
    r"\bmod\s+(?P<inline>\w+)\s*\{|#\[path\b[^\]]*\]\s*(?:pub\b[^;]*?)?mod\s+(?P<elsewhere>\w+)\s*;"
)
_WORDS = re.compile(r"\w+")
_PARTS = re.compile(r"[\w-]+")
_LOADED_FIRST = frozenset(("__init__", "conftest", "index", "lib", "main", "mod"))
"""Names of files that are loaded although nothing names them."""
_SKIPPED = frozenset((".git", "node_modules", ".venv", "vendor", "target", "__pycache__"))
_MOST_FILES = 20_000
_MOST_BYTES = 1_000_000
_UNPARSABLE = f"<<<<<<< {MARK} ((([[[{{{{{{ \"'\n"


@value_class
class TrustedFiles:
    """Rule of which files of a tree may hold the expectations of a check."""

    named: Sequence[str]
    """Globs of the plan: the check's `tests` and `protect`."""
    work: Collection[str]
    """Paths that the attempt changed; those count only by their own names."""

    def is_named(self, path: str) -> bool:
        """True if the plan names a file as part of the check."""
        return matches(path, self.named)

    def may_test(self, path: str) -> bool:
        """True if a file may hold expectations."""
        # Rust keeps unit tests in the file of the work; only test functions change there. Perl's tests end with `.t`.
        is_by_ending = path.endswith((".rs", ".t"))
        return self.is_named(path) or is_by_ending or _TESTING.search(path) is not None


def mutate_tests(
    checkout: Path, trusted: TrustedFiles, step: Step, counted: frozenset[str] = WHOLE
) -> ChangedTests:
    """Change all tests of a checkout; return the tests of each changed path.

    Files that are compiled together may hold tests that are not `counted`: they stay, since a change that does not compile would hide
    the results of all.
    """
    changed: dict[str, Mapping[str, bool]] = {}
    files = {test.partition("::")[0] for test in counted}
    words = {word for test in counted for word in _WORDS.findall(test)}
    replacing = trusted.work if _replaces_modules(checkout, trusted.work) else ()
    for path in _files(checkout):
        suffix = path.rpartition(".")[2]
        is_code = suffix in lexed_tests.CODE
        is_test = is_code and trusted.may_test(path)
        # Examples have no other variant, so they change with the last one.
        may_hold = suffix in doctests.SUFFIXES or (path in files and not is_code)
        has_examples = step == "statements" and may_hold
        text = read_text(checkout, path) if is_test or has_examples else None
        # Without this change, tests that stand in for those of another file stay green.
        if text is None or (path in replacing and suffix == "rs"):
            continue
        other, tests = _mutate_file(text, suffix, step) if is_test else (None, dict[str, bool]())
        if has_examples:
            other = doctests.fail_examples(other or text, suffix) or other
        if other is not None:
            names = {*tests, path.rpartition("/")[2].partition(".")[0]}
            is_free = suffix not in ("go", "java") or counted == WHOLE or not tests
            if is_free or not names.isdisjoint(words):
                write_text(checkout, path, other)
            changed[path] = tests
    return changed


def _replaces_modules(checkout: Path, work: Collection[str]) -> bool:
    """True if Rust work gives a module other tests than those of its file."""
    for path in work:
        folder, _, name = path.rpartition("/")
        stem, text = name.removesuffix(".rs"), read_text(checkout, path)
        if text is None or stem == name:
            continue
        below = folder if stem in ("lib", "main", "mod") else f"{folder}/{stem}"
        for found in _RUST_MODULE.finditer(text):
            module = found["inline"] or found["elsewhere"]
            for end in (".rs", "/mod.rs"):
                file = f"{below}/{module}{end}".lstrip("/")
                other = None if file in work else read_text(checkout, file)
                if other and lexed_tests.list_tests(other, "rust"):
                    return True
    return False


def outline_tests(
    checkout: Path,
    trusted: TrustedFiles,
    listed: Collection[str],
    absent: TestNames,
    skipped: TestNames,
) -> set[str]:
    """Reduce files to tests that fail; return those of `absent` and `skipped` among them."""
    found: set[str] = set()
    outlines: dict[str, str] = {}
    for path in listed:
        suffix = path.rpartition(".")[2]
        text = read_text(checkout, path) or ""
        names = set(test_outlines.list_plain(text, suffix))
        outlines[path] = test_outlines.outline_tests(text, suffix, names)
        wanted = set(absent.get(path, ()))
        if path in skipped and not _may_skip_near(checkout, path, suffix, trusted):
            wanted |= skipped[path]
        found |= names & wanted
    for path in trusted.work:
        text = None if path in listed else read_text(checkout, path)
        if text is not None and (other := test_outlines.empty_work(text, path)):
            outlines[path] = other
    for path, other in outlines.items():
        write_text(checkout, path, other)
    return found


def count_parameters(checkout: Path, paths: Iterable[str]) -> Mapping[tuple[str, str], int]:
    """Return the number of parameters that tests of Python name: (path, test) → number."""
    return {
        (path, test): count
        for path in paths
        if path.endswith(".py")
        for test, count in test_outlines.count_parameters(read_text(checkout, path) or "")
    }


def _may_skip_near(checkout: Path, path: str, suffix: str, trusted: TrustedFiles) -> bool:
    """True if a test, or a file of the base next to it, may skip tests."""
    near = {path} | {f"{path.rpartition('/')[0]}/{one.name}".lstrip("/") for one in (checkout / path).parent.iterdir()}  # fmt: skip
    texts = [
        read_text(checkout, one)
        for one in near
        if one.endswith(f".{suffix}") and (one == path or one not in trusted.work)
    ]
    language = lexed_tests.LANGUAGES.get(suffix)
    return language is None or any(test_outlines.may_skip(one, language) for one in texts if one)


def _mutate_file(text: str, suffix: str, step: Step) -> tuple[str | None, Mapping[str, bool]]:
    """Return the changed text of a test file, and its tests."""
    if suffix == "py":
        return python_tests.mutate_tests(text, step), python_tests.list_tests(text)
    language = lexed_tests.LANGUAGES[suffix]
    return lexed_tests.mutate_tests(text, language, step), lexed_tests.list_tests(text, language)


def mutate_started(
    checkout: Path, script: Script, argv: Sequence[str], step: Step
) -> Sequence[str] | None:
    """Change a script, or a program in the command; return the command, None: nothing changed."""
    if not script.path:
        return mutate_command(argv, script.number, step)
    return (
        argv if _rewrite(checkout, script.path, partial(mutate_text, script, step=step)) else None
    )


def find_programs(checkout: Path, trusted: TrustedFiles) -> Iterator[TestProgram]:
    """Yield the test programs of a checkout."""
    for path in _files(checkout):
        is_test = trusted.is_named(path) or _TESTING.search(path) or says_it_tests(path)
        if is_test and path.rpartition(".")[2] in test_programs.SUFFIXES:
            text = read_text(checkout, path)
            if text and (found := test_programs.find_program(path, text)):
                yield found


def mutate_programs(checkout: Path, programs: Collection[TestProgram], step: Step) -> bool:
    """Change test programs; return whether any changed."""
    mutate = test_programs.mutate_program
    changed = [one for one in programs if _rewrite(checkout, one.path, partial(mutate, one.path, step=step))]  # fmt: skip
    return bool(changed)


def break_work(checkout: Path, paths: Collection[str]) -> tuple[str, ...]:
    """Replace files by unparsable ones; return the paths of those that exist."""
    present = [path for path in sorted(paths) if _is_plain(checkout / path)]
    for path in present:
        write_text(checkout, path, _UNPARSABLE)
    return tuple(present)


def read_text(checkout: Path, path: str) -> str | None:
    """Return the text of a small file; None: it is absent, a link, or no text."""
    file = checkout / path
    if not _is_plain(file) or file.stat().st_size > _MOST_BYTES:
        return None
    try:
        return file.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return None


def loads_code(checkout: Path, tests: Sequence[str], changed: Collection[str]) -> bool:
    """True if tests may load one of the changed files, by the names in the files on the way.

    Also if no file of the tests is found.
    """
    named: dict[str, list[str]] = {}
    pending: list[str] = []
    is_known = False
    for path in _files(checkout):
        folder, _, file = path.rpartition("/")
        name, suffix = file.partition(".")[0], file.rpartition(".")[2]
        if suffix not in lexed_tests.CODE:
            continue
        # A package of Go is loaded as a whole.
        key = folder.rpartition("/")[2] if suffix == "go" else name
        named.setdefault(key, []).append(path)
        is_test = matches(path, tests)
        is_known |= is_test
        if name in _LOADED_FIRST or is_test:
            pending.append(path)
    reached: set[str] = set()
    while pending:
        path = pending.pop()
        if path in reached:
            continue
        reached.add(path)
        words = {*_WORDS.findall(text := read_text(checkout, path) or ""), *_PARTS.findall(text)}
        if path.endswith(".go"):
            words.add(path.rpartition("/")[0].rpartition("/")[2])
        pending += [one for word in words & named.keys() for one in named[word]]
    # The store keeps no half surrogates, so such a name matches no file.
    is_named = not any("\ufffd" in path for path in changed)
    return not (is_known and is_named) or not reached.isdisjoint(changed)


def find_scripts(checkout: Path, trusted: TrustedFiles) -> Iterator[Script]:
    """Yield the test scripts of a checkout."""
    for path in _files(checkout):
        text = read_text(checkout, path) if trusted.may_test(path) else None
        if text and (interpreter := interpreter_of(path, text)):
            yield Script(path=path, interpreter=interpreter, is_unnamed=True)


def _rewrite(checkout: Path, path: str, mutate: Callable[[str], str | None]) -> bool:
    """Replace the text of a file by its mutation; return False if there is none."""
    text = read_text(checkout, path)
    other = None if text is None else mutate(text)
    if other is not None:
        write_text(checkout, path, other)
    return other is not None


def _is_plain(file: Path) -> bool:
    # A link in the path may lead out of the checkout.
    return file.is_file() and not file.is_symlink() and file.resolve() == file.absolute()


def write_text(checkout: Path, path: str, text: str) -> None:
    """Replace the text of a file that `read_text` returned: no link leads to it."""
    (checkout / path).write_bytes(text.encode())


def _files(checkout: Path) -> Iterator[str]:
    """Yield the paths of a checkout in order, up to a limit."""
    count = 0
    for folder, folders, names in os.walk(checkout):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        for name in sorted(names):
            count += 1
            if count > _MOST_FILES:
                return
            yield Path(folder, name).relative_to(checkout).as_posix()
