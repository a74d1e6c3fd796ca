"""Files that decide which command a check runs, by the base's build files. Pure.

A build file includes others (`-include local.mk`), names plug-ins (`-p support.plug`), and has targets: `make test` does nothing if a file
`test` exists.
"""

import posixpath
import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

from mimir.domain.globs import matches
from mimir.qc.integrity.check_files import says_it_tests
from mimir.qc.integrity.test_runners import LINTERS

_INCLUDES = re.compile(r"^[ \t]*[-s]?include[ \t]+([^\n#]+)", re.MULTILINE)
_VALUE = r"[\"']?[\s=,]+[\"']?([\w./@{}$()<>*-]+)"
_OPTIONS = re.compile(
    r"(?:^|[\s\"'=\[(,])(?:-p|-r(?=[ =]\.)|--require|--import|--loader|--config|--rcfile|--makefile"
    r"|-c(?=[ =]\S+\.(?:ini|toml|cfg|json|ya?ml|[cm]?[jt]s)\b)|-f(?=[ =]\S*(?:\.mk|akefile)))"
    + _VALUE,
    re.MULTILINE,
)
_SOURCED = re.compile(r"(?:^|[\s;&@\"'])(?:source|\.)[ \t]+([\w./${}()-]+)", re.MULTILINE)
_KEYS = re.compile(
    r"\b(?:setupFiles\w*|global(?:Setup|Teardown)|testRunner|runner|testEnvironment|reporters|resolver|transform"
    r"|preset|require)[\"']?\s*:\s*(\[[^\]]*\]|\{[^}]*\}|[\"'][^\"']*[\"'])"
)
_PLUGINS = re.compile(r"pytest_plugins\s*(?::[^=\n]+)?=\s*([^\n]+(?:\n[ \t)\]][^\n]*)*)")
_QUOTED = re.compile(r"[\"']([^\"'\s]+)[\"']")
_RULE = re.compile(r"^([^\s:#=%$][^:#=%$\n]*?)[ \t]*::?(?!=)([^=\n#;]*)", re.MULTILINE)
_VARIABLE = re.compile(r"\$\([^)]*\)|\$\{[^}]*\}|\$\w|<rootDir>/")
_WORD = re.compile(r"[\w./-]+")
MAKEFILES = ("GNUmakefile", "makefile", "Makefile")


def find_loaded_files(texts: Mapping[str, str], commands: Iterable[str]) -> frozenset[str]:
    """Return globs of the files that build files and commands load; they may match nothing.

    Args:
        texts: Path → text of each build file, runner configuration and script of the base.
        commands: Command lines of checks.
    """
    found: set[str] = set()
    for path, text in texts.items():
        folder = posixpath.dirname(path)
        for value in _values_of(path, text):
            found.update(_paths_of(value, folder))
    for line in commands:
        for value in _OPTIONS.findall(line):
            found.update(_paths_of(value, ""))
    return frozenset(found)


def _values_of(path: str, text: str) -> Iterator[str]:
    if is_makefile(path):
        for names in _INCLUDES.findall(text):
            yield from names.split()
    yield from _OPTIONS.findall(text)
    for value in _PLUGINS.findall(text):
        yield from _QUOTED.findall(value)
    if not says_it_tests(path):
        yield from _SOURCED.findall(text)  # A test sources the work.
    # Runner settings of JavaScript name set-up files, reporters and transformers by relative paths.
    for value in _KEYS.findall(text):
        yield from (one for one in _QUOTED.findall(value) if one.startswith((".", "<rootDir>/")))


def _paths_of(value: str, folder: str) -> Iterator[str]:
    """Yield the globs of the files that a value may name, from its folder and from the top."""
    name = _VARIABLE.sub("*", value.replace("<rootDir>/", "")).strip("\"'")
    forms = [name]
    if re.fullmatch(r"[A-Za-z_][\w.]*", name):
        module = name.replace(".", "/")
        forms += [f"{module}.py", f"{module}/__init__.py"]
    for form in forms:
        # A lone wildcard would cover everything.
        if re.search(r"\w", form):
            yield posixpath.normpath(form)
            yield posixpath.normpath(posixpath.join(folder, form))


def find_named_files(
    texts: Mapping[str, str], commands: Iterable[str], base: Container[str]
) -> frozenset[str]:
    """Return the files of the base that commands and the texts of scripts name."""
    words = [("", line) for line in commands] + [
        (posixpath.dirname(p), t) for p, t in texts.items()
    ]
    paths = {
        posixpath.normpath(posixpath.join(top, word))
        for folder, text in words
        for word in _WORD.findall(text)
        for top in {"", folder}
    }
    return frozenset(path for path in paths if path in base)


def find_linter_rules(
    texts: Mapping[str, str], commands: Iterable[str], base: Collection[str]
) -> tuple[str, ...]:
    """Return globs of the rules of linters that commands and scripts name.

    If the base has no file that a linter judges, its rules are the work.
    """
    words = {word for text in (*commands, *texts.values()) for word in _WORD.findall(text)}
    return tuple(
        f"**/{name}"
        for program, linter in LINTERS.items()
        if words.issuperset(program.split())
        and any(matches(path, (linter.judged,)) for path in base)
        for name in (*linter.own, *linter.shared)
    )


def is_script(path: str) -> bool:
    """True if a shell may read a file as its script, by the name."""
    return path.endswith(".sh") or "." not in posixpath.basename(path)


def is_makefile(path: str) -> bool:
    """True if make reads a file by its name."""
    return posixpath.basename(path) in MAKEFILES or path.endswith(".mk")


def find_targets(texts: Mapping[str, str], commands: Iterable[str]) -> frozenset[str]:
    """Return the paths of targets that commands reach, without phony ones."""
    words = {word for line in commands for word in _WORD.findall(line)}
    found: set[str] = set()
    for path, text in texts.items():
        if not is_makefile(path):
            continue
        rules: dict[str, list[str]] = {}
        for names, needed in _RULE.findall(text.replace("\\\n", " ")):
            for name in names.split():
                rules.setdefault(name, []).extend(needed.split())
        phony = {*rules.pop(".PHONY", ()), *(name for name in rules if name.startswith("."))}
        # Without a name, make builds the first target.
        wanted = [name for name in rules if name in words] or list(rules)[:1]
        reached = _reach(rules, wanted) - phony
        found.update(
            posixpath.normpath(posixpath.join(posixpath.dirname(path), n)) for n in reached
        )
    return frozenset(found)


def _reach(rules: Mapping[str, list[str]], wanted: list[str]) -> set[str]:
    reached: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name in rules and name not in reached:
            reached.add(name)
            wanted += rules[name]
    return reached


def is_loaded(path: str, globs: Iterable[str]) -> bool:
    """True if a file is one of those that build files load."""
    # `*` also matches folders here: it replaces a variable.
    return any(path == glob or ("*" in glob and fnmatchcase(path, glob)) for glob in globs)
