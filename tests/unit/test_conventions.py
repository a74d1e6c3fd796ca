"""Conventions that no linter checks: names, prose, file sizes, folders and import contracts.

docs/architecture.md gives the reasons. Each failure names file, line and the replacement.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from mimir.store import records
from mimir.store.records import record_codec

ROOT = Path(__file__).resolve().parents[2]
SHIPPED_PROJECT = ROOT / "mimir" / "demo" / "project"
"""Data of the demo, not code."""
MAX_LINES = 450
MAX_DOCSTRING_LINE = 88
MAX_FILES = 12
LARGE_FOLDERS = {
    *("mimir/domain", "mimir/workspace/git", "mimir/planning/reader", "mimir/store/neo4j"),
    "mimir_bench/faults",
}
JSON_READERS = (
    *("mimir/qc/judgement/", "mimir/recordings/", "mimir/cli/live/"),
    "mimir_bench/engine/",
)
"""Read model answers, recordings and event data, whose members share names with properties."""
JSON_MEMBERS: dict[str, frozenset[str]] = {
    "mimir/cli/output/processes.py": frozenset({"seenAt", "taskId", "expiresAt", "lockedAt"}),
    "mimir/reporting/audit/attempt_audit.py": frozenset({"answerHash"}),
    "mimir/scheduling/completion/attempt_outcome.py": frozenset({"baseTree"}),
}
"""Members of the output of `status --json`, of sealed payloads and of the retry context."""
MAX_PROTOCOLS = 22
CONCRETE = ("llm.langchain", "llm.scripted", "store.neo4j", "store.sqlite", "tools.builtin")
"""Adapters that only `bootstrap` may name."""
MAY_SKIP = ("tests/support/neo4j_servers.py", "tests/support/compiled_projects.py")
"""They skip with one line where a server or program is missing; in CI they fail instead."""
SKIPS = re.compile(r"pytest\.(mark\.)?(skip|skipif|xfail|importorskip)|unittest\.skip\w*")

DENIED = {
    "nobody": "no process, no user",
    "somebody": "a user, another process",
    "whoever": "the user, the caller",
    "the person": "the user",
    "a person": "a user",
    "anew": "again",
    "comes to": "is, results in",
    "came to": "was, resulted in",
    "told": "reported, printed",
    "meanwhile": "during",
    "lest": "so that not",
    "thereof": "of it",
    "it is said": "the report states",
    "is said": "is printed",
    "goes on": "continues",
    "went on": "continued",
    "mend": "fix",
    "mends": "fixes",
    "mended": "fixed",
    "in vain": "without effect",
    "unsaid": "without a message",
    "stands in": "is in",
    "lies in": "is in",
    "lies with": "is next to",
    "has in hand": "holds",
    "of its own accord": "automatically",
}
"""Private dialect and archaic words in prose → plain words."""
_DENIED_PATTERN = re.compile(
    r"(?<![\w-])("
    + "|".join(word.replace(" ", r"\s+") for word in sorted(DENIED, key=len, reverse=True))
    + r")(?![\w-])",
    re.IGNORECASE,
)

_PREPOSITIONS = re.compile(
    "about|above|across|after|against|along|among|around|as|at|before|behind|below|"
    "beside|between|beyond|by|down|during|except|for|from|in|inside|into|like|near|of|"
    "off|on|onto|out|outside|over|past|per|round|since|through|to|toward|towards|under|"
    "until|up|upon|via|with|within|without|here|there|now|then|again"
)
_PARTICIPLES = re.compile(
    "told|kept|made|shown|said|given|taken|held|found|left|built|sent|begun|done|gone|"
    "known|seen|written|drawn|broken|chosen|hidden|bound|brought|caught|cut|heard|led|"
    "lost|meant|met|paid|sold|spent|taught|torn|worn|put|fallen|grown"
)
_NOUNS_AND_VERBS = re.compile(
    "need|feed|seed|speed|embed|red|shed|exceed|proceed|succeed|string|thing|bring|ring|"
    "king|spring|being|ceiling|morning|evening|nothing|something|anything|everything|"
    "sibling"
)
"""Words that end like a participle and are none."""


@dataclass(frozen=True)
class Source:
    """A parsed file."""

    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        return tuple(ast.walk(self.tree))

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def module(self) -> str:
        return self.name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def at(self, line: int) -> str:
        return f"{self.name}:{line}"


@cache
def sources(*folders: str) -> tuple[Source, ...]:
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    texts = {p: p.read_text(encoding="utf-8") for p in paths if SHIPPED_PROJECT not in p.parents}
    return tuple(Source(path, text) for path, text in texts.items())


def product() -> tuple[Source, ...]:
    return sources("mimir", "mimir_bench")


def is_package(source: Source) -> bool:
    return source.path.name == "__init__.py"


def check(violations: Iterable[str]) -> None:
    """Fail with all violations, one a line."""
    found = sorted(set(violations))
    assert not found, f"{len(found)} violations:\n" + "\n".join(found)


def docstrings(source: Source) -> Iterator[tuple[int, str]]:
    """Yield the docstrings, and the strings below fields and constants."""
    for node in source.nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for part in node.body[1:] if text else node.body:
                    if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant):
                        yield part.lineno, str(part.value.value)


def messages(source: Source) -> Iterator[tuple[int, str]]:
    """Yield the texts of raised errors and of next steps."""
    for node in source.nodes:
        is_step = isinstance(node, ast.keyword) and node.arg in ("next_step", "suggestion", "help")
        if isinstance(node, ast.Raise) or is_step:
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value


def without_code(text: str) -> str:
    """Return markdown without fenced blocks, code marks and link targets."""
    text = re.sub(r"^```.*?^```", lambda m: "\n" * m[0].count("\n"), text, flags=re.M | re.S)
    text = re.sub(r"`[^`\n]*`", "", text)
    return re.sub(r"\]\([^)\n]*\)", "]", text)


def denied_words(text: str) -> Iterator[tuple[int, str]]:
    """Yield the 0-based line of each denied word, with its replacement."""
    prose = without_code(text)
    for match in _DENIED_PATTERN.finditer(prose):
        word = " ".join(match[0].split()).lower()
        yield prose.count("\n", 0, match.start()), f"{word!r}: write {DENIED[word]!r}"


# Names.


def test_class_names_are_unique():
    places: dict[str, list[str]] = defaultdict(list)
    for source in product():
        for node in source.nodes:
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].append(source.at(node.lineno))
    check(
        f"{found[0]}: class {name} exists also in {', '.join(found[1:])}: give one another name"
        for name, found in places.items()
        if len(found) > 1
    )


def test_protocols_are_few():
    """A protocol needs two implementations, or layers that forbid the import."""
    found = [
        f"{source.at(node.lineno)}: {node.name}"
        for source in product()
        for node in source.nodes
        if isinstance(node, ast.ClassDef)
        and any(re.match(r"(\w+\.)?Protocol\b", ast.unparse(base)) for base in node.bases)
    ]
    assert len(found) <= MAX_PROTOCOLS, "\n".join(found)


def is_bare(name: str) -> bool:
    """Return whether a name is one word, and that a participle or a preposition."""
    word = name.strip("_").lower()
    if "_" in word or _NOUNS_AND_VERBS.fullmatch(word):
        return False
    if _PREPOSITIONS.fullmatch(word) or _PARTICIPLES.fullmatch(word):
        return True
    return len(word) > 4 and word.endswith(("ed", "ing"))


def test_functions_are_named_by_a_verb_and_an_object():
    check(
        f"{source.at(node.lineno)}: function {node.name}: name it by a verb and an object"
        for source in product()
        for node in source.tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_bare(node.name)
    )


def stored_names() -> set[str]:
    """Return the stored names of record fields that are not Python names."""
    for path in Path(records.__file__).parent.glob("*.py"):
        __import__(f"mimir.store.records.{path.stem}")
    found: set[str] = set()
    waiting = [record_codec.StoredRecord]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        for name in getattr(kind, "__dataclass_fields__", {}):
            words = name.split("_")
            found.add(words[0] + "".join(word.capitalize() for word in words[1:]))
    return {name for name in found if name.lower() != name}


def key_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the constant keys of subscripts and of `get` calls."""
    for node in ast.walk(tree):
        key = node.slice if isinstance(node, ast.Subscript) else None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            key = node.args[0] if node.func.attr == "get" else key
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            yield key.lineno, key.value


def test_only_the_store_uses_rows_and_stored_names():
    names = stored_names()
    outside = [s for s in product() if not f"{s.module}.".startswith("mimir.store.")]
    rows = (
        f"{source.at(node.lineno)}: Row: load a record with mimir.store.operations"
        for source in outside
        for node in source.nodes
        if isinstance(node, ast.Name) and node.id == "Row"
    )
    keys = (
        f"{source.at(line)}: stored property {key!r}: read the field of a record"
        for source in outside
        if not source.name.startswith(JSON_READERS)
        for line, key in key_names(source.tree)
        if key in names and key not in JSON_MEMBERS.get(source.name, ())
    )
    check([*rows, *keys])


# Prose.


def test_the_first_line_of_a_docstring_is_short():
    check(
        f"{source.at(line)}: {len(text.splitlines()[0])} characters:"
        f" write a complete phrase of at most {MAX_DOCSTRING_LINE}"
        for source in product()
        for line, text in docstrings(source)
        if text.strip() and len(text.splitlines()[0]) > MAX_DOCSTRING_LINE
    )


def test_docstrings_and_messages_use_plain_words():
    check(
        f"{source.at(line)}: {advice}"
        for source in product()
        for line, text in (*docstrings(source), *messages(source))
        for _, advice in denied_words(text)
    )


def test_documents_use_plain_words():
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    check(
        f"{page.relative_to(ROOT).as_posix()}:{line + 1}: {advice}"
        for page in pages
        if page.name != "glossary.md"  # it names the words that are not used
        for line, advice in denied_words(page.read_text(encoding="utf-8"))
    )


# Files and folders.


def test_files_are_short():
    check(
        f"{source.name}: {lines} lines: split it, the limit is {MAX_LINES}"
        for source in sources("mimir", "mimir_bench", "tests", "scripts")
        if (lines := len(source.text.splitlines())) > MAX_LINES
    )


def test_folders_are_small():
    sizes = Counter(
        s.path.parent.relative_to(ROOT).as_posix() for s in product() if not is_package(s)
    )
    check(
        f"{folder}: {size} files: make a package below it, the limit is {MAX_FILES}"
        for folder, size in sizes.items()
        if size > MAX_FILES and folder not in LARGE_FOLDERS
    )


def test_every_package_has_a_docstring_and_nothing_else_in_its_init_file():
    inits = {source.path.parent: source for source in product() if is_package(source)}
    folders = {source.path.parent for source in product()}
    missing = (f"{f.relative_to(ROOT).as_posix()}: add __init__.py" for f in folders - {*inits})
    wrong = (
        f"{source.name}: keep only a docstring: purpose, promise, importers"
        for folder, source in inits.items()
        if not ast.get_docstring(source.tree)
        or (len(source.tree.body) > 1 and folder != ROOT / "mimir")
    )
    check([*missing, *wrong])


def test_nothing_is_left_to_do():
    words = r"\b(TODO|FIXME|XXX|NotImplementedError)\b"
    check(
        f"{source.at(number)}: {match[0]}: do it or remove it"
        for source in product()
        for number, line in enumerate(source.text.splitlines(), start=1)
        if (match := re.search(words, line))
    )


def test_comments_are_common_enough():
    """Reasons belong to the line that they explain: at least 2.5 % of the lines have a comment."""
    orders = re.compile(r"#!|#\s*(noqa|type:|pyright:|pragma|ruff|fmt)")
    commented = {
        (source.name, token.start[0])
        for source in product()
        for token in tokenize.generate_tokens(io.StringIO(source.text).readline)
        if token.type == tokenize.COMMENT and not orders.match(token.string)
    }
    lines = sum(len(source.text.splitlines()) for source in product())
    assert len(commented) >= 0.025 * lines, f"{len(commented)} of {lines} lines have a comment"


# Tests.


def test_no_test_is_skipped():
    check(
        f"{source.at(node.lineno)}: {ast.unparse(node)}: run the test, or delete it"
        for source in sources("tests")
        if source.name not in MAY_SKIP and re.search("skip|xfail", source.text)
        for node in source.nodes
        if isinstance(node, ast.Attribute)
        and node.attr.startswith(("skip", "xfail", "importorskip"))
        and SKIPS.fullmatch(ast.unparse(node))
    )


def test_test_folders_are_not_packages():
    """With `--import-mode=importlib`, `__init__.py` would let tests of one name collide."""
    check(f"{source.name}: delete it" for source in sources("tests") if is_package(source))


# Import contracts.


@cache
def contracts() -> dict[str, dict[str, list[str]]]:
    configured = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {one["name"]: one for one in configured["tool"]["importlinter"]["contracts"]}


def test_exactly_the_modules_under_the_contract_are_called_pure():
    deciding = contracts()["Deciding needs no I/O"]["source_modules"]
    violations: list[str] = []
    for source in product():
        # The claim is a sentence of its own; "Pure rules decide" is only a part of one.
        says = re.search(r"\bPure[.,]", ast.get_docstring(source.tree) or "") is not None
        under = any(f"{source.module}.".startswith(f"{name}.") for name in deciding)
        if says and not under:
            violations.append(f"{source.at(1)}: add it to 'Deciding needs no I/O', or drop 'Pure'")
        if under and not says:
            violations.append(f"{source.at(1)}: end the first line with 'Pure.'")
    check(violations)


def test_adapters_are_under_the_contract_that_hides_them():
    contract = contracts()["Only bootstrap names a concrete store, model or tool"]
    check(
        f"pyproject.toml:1: add mimir.{name} to the contract of adapters"
        for name in CONCRETE
        if f"mimir.{name}" not in contract["forbidden_modules"]
    )


def test_the_drawing_of_the_layers_equals_the_contract():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    drawn = re.search(r"^```\n(cli\n.*?\nerrors)\n```$", page, flags=re.M | re.S)
    assert drawn, "docs/architecture.md: draw the layers in a fence, from cli to errors"
    # Packages in parentheses come next; they join the contract with their first file.
    rows = [re.sub(r"\s*\|?\s*\(\w+\)", "", row).strip() for row in drawn[1].splitlines()]
    layers = contracts()["Floors: imports only go down"]["layers"]
    assert [row for row in rows if row] == layers, "docs/architecture.md: draw these layers"


def test_imports_only_go_down():
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_bare_names_are_recognised():
    bare = ("told", "_kept", "of", "beside", "planning", "made")
    other = ("load_attempts", "seed", "is_red", "string", "check", "feed")
    assert [name for name in (*bare, *other) if is_bare(name)] == [*bare]
