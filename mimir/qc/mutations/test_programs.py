"""Changes that make test programs in C, C++, Go, Rust and Java fail. Pure.

A test program is a file of tests with an entry point. The work is linked into it, and may end it early, or replace its macros or comparisons.
Only its failing end shows that it is reached, and only its failing assertions show that they decide.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping

from mimir.domain.value_class import value_class
from mimir.qc.mutations.code_lexer import Language, MaskedCode, list_arguments, mask_code
from mimir.qc.mutations.lexed_tests import LANGUAGES
from mimir.qc.mutations.mutation import Edit, Place, Step, apply_edits, insert

SUFFIXES: Mapping[str, Language] = {
    **dict.fromkeys(("c", "cc", "cpp", "cxx", "C"), "c"),
    **{suffix: name for suffix, name in LANGUAGES.items() if name in ("go", "rust", "java")},
}
"""Language by the ending of a file."""

_TRAP = "__builtin_trap();"
_GUARDED = "{ volatile int control = 1; if (control) __builtin_trap(); }"
"""The linker leaves out what a plain trap makes unreachable: the work itself."""
_THROW = 'if (true) throw new java.lang.AssertionError("control");'
_MAIN: Mapping[Language, re.Pattern[str]] = {
    "c": re.compile(r"(?<![\w.>:])main\s*\([^;{}]*\)\s*(?=\{)"),
    "go": re.compile(r"(?m)^func\s+(?P<name>main)\s*\(\s*\)\s*(?=\{)"),
    "rust": re.compile(r"(?m)^(?:pub\s+)?fn\s+(?P<name>main)\s*\(\s*\)[^{;]*(?=\{)"),
    "java": re.compile(r"\bstatic\s+void\s+(?P<name>main)\s*\([^;{}]*\)[^;{}]*(?=\{)"),
}
_FRAMEWORK = re.compile(
    r"(?m)^[ \t]*(?!if\b|while\b|for\b|switch\b|else\b|return\b)(?:[\w:*]+[ \t]+)*?\w*(?:TEST|Test|test|SCENARIO)\w*\s*\([^;{}]*\)\s*(?=\{)"
)
"""Test of a C or C++ framework, whose entry point is elsewhere."""
_EXIT: Mapping[Language, re.Pattern[str]] = {
    "c": re.compile(r"(?<![\w.>])(?:std\s*::\s*|::\s*)?(?:exit|_exit|_Exit|quick_exit)\s*(?=\()"),
    "go": re.compile(r"\bos\s*\.\s*Exit\s*(?=\()"),
    "rust": re.compile(r"\bprocess\s*::\s*exit\s*(?=\()"),
    "java": re.compile(r"\bSystem\s*\.\s*exit\s*(?=\()"),
}
_EXIT_VALUE: Mapping[Language, str] = {
    "go": "func(int) int {{ return 1 }}({0})",
    "rust": "{{ let _control: i32 = {0}; 1 }}",
    "java": "({0}) | 1",
}
_CALLERS: Mapping[Language, str] = {
    "go": '; func main() { mimir_main(); panic("control") }',
    "rust": " fn main() { let _ = mimir_main(); std::process::exit(1) }",
    "java": f" public static void main(String[] a) throws Throwable {{ mimir_main(a); {_THROW} }}",
}
"""Entry points that call the one of the program, and fail after it."""
_RETURN = re.compile(r"\breturn\b([^;]*);")
_LAMBDA = re.compile(r"\[[^\[\]{};]*\]\s*(?:\([^{};]*\))?[^(){};\[\]]*(?=\{)")
_IF = re.compile(r"\bif\s*(?=\()")
_BARE_IF = re.compile(r"\bif\b(?!\s+let\b)(?P<head>[^{}\n]*)(?=\{)")
_FAILS = re.compile(
    r"\breturn\s+(?:-\s*)?(?:[1-9]|EXIT_FAILURE|false|FAIL|NULL)|\b_?[eE]x+it\s*\(\s*(?!0\s*\)|EXIT_SUCCESS)"
    r"|\babort\b|\bthrow\b|(?i:\b\w*(?:fail|err|panic|fatal|bad)\w*\s*(?:[(!.]|\+\+|[+|]?=))|\+\+\s*\w+|\b(?:ok|rc|ret|status|result|code)\s*=[^=]"
)
"""Statement of a condition that must not hold."""
_UNEQUAL_VALUE = re.compile(r"\s*[^=!<>&|?]+!=\s*(?P<value>[^=!<>&|?]+?)\s*")
_EQUAL_VALUE = re.compile(r"\s*[^=!<>&|?]+==\s*(?P<value>[^=!<>&|?]+?)\s*")
_STRCMP = r"strcmp\s*\([^;]*,\s*(?P<value>\"[^\"]*\")\s*\)"
_TEXTS = {
    _EQUAL_VALUE: re.compile(rf"\s*(?P<not>!\s*)?{_STRCMP}(?(not)|\s*==\s*0)\s*"),
    _UNEQUAL_VALUE: re.compile(rf"\s*{_STRCMP}\s*(?:!=\s*0\s*)?"),
}
"""Comparisons of texts in C, which work may redefine by a macro."""
_ASSERTION = re.compile(
    r"(?<![\w.>#])(?!static_assert|_Static_assert)(?P<name>\w*(?:(?i:assert|expect|check|require|verify|ensure)\w*|_eq|EQ|\bok))(?P<macro>!?)\s*(?=\()"
)
_BINARY = re.compile(r"(?i)eq(?:ual|uals)?(?:_|\b|[A-Z\d])|equal|same")
_NO_EQUALITY = re.compile(
    r"(?i)not|(?:_|\b)ne(?:_|\b)|_NE$|throw|death|_l[te]$|_g[te]$|near|differ"
)
_STATEMENT = re.compile(r"(?i)throw|fatal_failure|that$")
"""Names of assertions about a statement, or by a matcher: there is no condition to negate."""
_DEFINITION = re.compile(r"[\w\s,.>-]*(?=\{)")
"""What stands between the parameters of a function and its body."""
_TYPE_BEFORE = re.compile(
    r"(?:(?!return\b|else\b|do\b)\b[\w>]+|[*&>])\s+[*&]*$|(?:\bfunc|\bfn)\s+$"
)
_START = (
    "#include <unistd.h>\nstatic void mimir_control(void) { _exit(1); }\n"
    '__attribute__((section(".preinit_array"), used)) static void (*mimir_start)(void) = mimir_control;\n'
    "int main(void) { return 1; }\n"
)
"""Program that fails before the work starts: `.preinit_array` precedes constructors."""
_PACKAGE = re.compile(r"(?m)^\s*package\s+[\w.]+\s*;")


@value_class
class TestProgram:
    """One file of tests whose results are known by an exit code."""

    __test__ = False

    path: str
    has_end: bool
    """True: it has an entry point; otherwise a framework calls its tests."""
    has_expectations: bool


def find_program(path: str, text: str) -> TestProgram | None:
    """Return the test program in a file; None: it has no tests, or cannot be read."""
    code = _read_code(path, text)
    if code is None:
        return None
    # Without an entry point, a framework calls the tests; only those of C and C++ report nothing themselves.
    has_end = _MAIN[code.language].search(code.mask) is not None
    if not has_end and not (code.language == "c" and _FRAMEWORK.search(code.mask)):
        return None
    has_expectations = next(_expectations(code, "expectations"), None) is not None
    return TestProgram(path=path, has_end=has_end, has_expectations=has_expectations)


def mutate_program(path: str, text: str, step: Step) -> str | None:
    """Return a test program that fails; None: this step changes nothing."""
    code = _read_code(path, text)
    if code is None:
        return None
    main = _MAIN[code.language].search(code.mask)
    match step:
        case "end":
            edits = list(_failing_ends(code, main)) if main else []
        case "replaced":
            is_replaced = main or code.language == "c"
            return _replace(path, text, code.language) if is_replaced else None
        case "statements":
            places = () if main else _FRAMEWORK.finditer(code.mask)
            edits = [insert(found.end() + 1, f" {_GUARDED}") for found in places]
        case _:
            edits = list(_expectations(code, step))
    return apply_edits(text, edits) if edits else None


def _read_code(path: str, text: str) -> MaskedCode | None:
    language = SUFFIXES.get(path.rpartition(".")[2])
    return mask_code(text, language) if language else None


def _replace(path: str, text: str, language: Language) -> str:
    match language:
        case "go":
            return 'package main\n\nfunc main() { panic("control") }\n'
        case "rust":
            return 'fn main() { panic!("control"); }\n'
        case "java":
            package = _PACKAGE.search(text)
            name = posixpath.basename(path).partition(".")[0]
            return f"{package[0] if package else ''}\npublic class {name} {{ public static void main(String[] a) {{ {_THROW} }} }}\n"
        case _:
            return _START


def _failing_ends(code: MaskedCode, main: re.Match[str]) -> Iterator[Edit]:
    """Yield edits that fail where a program ends well: exits, returns, its last line."""
    language = code.language
    start, end = main.end() + 1, code.pairs[main.end()]
    for found in _EXIT[language].finditer(code.mask):
        begin, close = found.end(), code.pairs[found.end()]
        value = code.text[begin + 1 : close]
        if language == "c":
            # The value may be the program itself: `exit(run_tests())`.
            text = f"((void)({value}), __builtin_trap())"
            yield Edit((found.start(), close + 1), text)
        elif value.strip():
            yield Edit((begin + 1, close), _EXIT_VALUE[language].format(value))
    if language == "c":
        yield from _failing_returns(code, start, end)
        yield insert(end, f" {_TRAP} ")
    else:
        yield Edit(main.span("name"), "mimir_main")
        yield insert(end + 1, _CALLERS[language])


def _failing_returns(code: MaskedCode, start: int, end: int) -> Iterator[Edit]:
    lambdas = [
        (one.end(), code.pairs[one.end()]) for one in _LAMBDA.finditer(code.mask, start, end)
    ]
    for found in _RETURN.finditer(code.mask, start, end):
        # A lambda needs the type of its result.
        if any(begin < found.start() < close for begin, close in lambdas):
            continue
        value = code.text[found.start(1) : found.end(1)].strip()
        # `return RUN_ALL_TESTS();` runs the tests.
        done = f"(void)({value}); " if value and not value.startswith("{") else ""
        yield Edit(found.span(), f"{{ {done}{_TRAP} }}")


def _expectations(code: MaskedCode, step: Step) -> Iterator[Edit]:
    """Yield edits of all assertions and conditions of failures."""
    if step == "expectations":
        yield from _conditions(code)
    for found in _ASSERTION.finditer(code.mask):
        before, close = (
            code.mask[max(found.start() - 80, 0) : found.start()],
            code.pairs[found.end()],
        )
        # A declaration asserts nothing.
        if _DEFINITION.match(code.mask, close + 1) or _TYPE_BEFORE.search(
            before.rpartition("\n")[2]
        ):
            continue
        if (code.language == "rust") != (found["macro"] == "!"):
            continue
        if edit := _assertion(code, found, step):
            yield edit


def _assertion(code: MaskedCode, found: re.Match[str], step: Step) -> Edit | None:
    name, values = found["name"], list_arguments(code, found.end())
    # `check("adds", value)`: a description first.
    if len(values) > 1 and code.mask[values[0][0]] == '"' and not _BINARY.search(name):
        values = values[1:]
    # Another value may be unequal too.
    if not values or (len(values) > 1 and _NO_EQUALITY.search(name)) or _STATEMENT.search(name):
        return None
    if not _BINARY.search(name):
        place = values[0]
        return _trap(code, place) if step == "strict" else _negate(code, place, _EQUAL_VALUE)
    for place in reversed(values[:2]):
        if edit := code.change_literal(place):
            return _trap(code, place) if step == "strict" else edit
    if code.language == "rust" and name == "assert_eq" and step != "strict":
        return Edit(found.span("name"), "assert_ne")
    return None


def _trap(code: MaskedCode, place: Place) -> Edit | None:
    is_c = code.language == "c"
    return Edit(place, f"(__builtin_trap(), {code.read(place)})") if is_c else None


def _conditions(code: MaskedCode) -> Iterator[Edit]:
    """Yield edits of the conditions under which a program fails."""
    is_bare = code.language in ("go", "rust")
    ends = [code.pairs[found.end()] + 1 for found in _ASSERTION.finditer(code.mask)]
    # Functions that assert for their callers.
    helpers = [(body.end(), code.pairs[body.end()]) for end in ends if (body := _DEFINITION.match(code.mask, end))]  # fmt: skip
    for found in (_BARE_IF if is_bare else _IF).finditer(code.mask):
        if is_bare:
            start, end = found.span("head")
            body = found.end()
        else:
            start, end = found.end() + 1, code.pairs[found.end()]
            body = end + 1 + len(code.mask[end + 1 :]) - len(code.mask[end + 1 :].lstrip())
        # The arguments of its calls change already.
        if any(begin < start < close for begin, close in helpers):
            continue
        # `if got := f(); got != 5`: the condition follows the statement.
        start = max(start, code.mask.rfind(";", start, end) + 1)
        is_block = code.mask[body : body + 1] == "{"
        close = code.pairs[body] if is_block else code.mask.find(";", body)
        if code.mask[start:end].strip() and _FAILS.search(code.mask, body, close + 1):
            yield _negate(code, (start, end), _UNEQUAL_VALUE)


def _negate(code: MaskedCode, place: Place, pattern: re.Pattern[str]) -> Edit:
    """Return the edit that negates a condition.

    Work in C++ may redefine equality, so there another literal replaces the compared one.
    """
    patterns = (_TEXTS[pattern], pattern) if code.language == "c" else ()
    found = next(filter(None, (one.fullmatch(code.mask, *place) for one in patterns)), None)
    edit = code.change_literal(found.span("value")) if found else None
    return edit or Edit(place, f" !({code.read(place).strip()}) ")
