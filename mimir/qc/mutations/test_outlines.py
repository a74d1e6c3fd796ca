"""Outlines of test files: their tests fail, and nothing of the work is loaded. Pure.

Work that a test file imports may hide tests from their runner, or skip them. Without the work, the runner executes these.
"""

import ast
import json
import math
import re
from collections.abc import Collection, Iterable, Iterator

from mimir.domain.python_syntax import parse_module
from mimir.qc.mutations.code_lexer import Language, mask_code
from mimir.qc.mutations.mutation import MARK

_JS_HEAD = re.compile(
    r"(?m)^(?:import\b[^;'\"]*?\bfrom\s*|(?:const|let|var)\b[^;=]*=\s*require\()['\"](?:node:test|vitest|@jest/globals)['\"][^\n]*$"
)
_JS_TEST = re.compile(r"(?m)^[ \t]*(?:(?:await\s+)?\w+\.)?(?:test|it)\s*\(\s*(?=['\"`])")
_TITLE = re.compile(r"(['\"`])([^\\$%\n]*?)\1\s*,")
_JS_GROUP = re.compile(r"\b(?:describe|suite|test|it)\s*\([^{}\n]*$")
_EMPTY_MODULE = """def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (), {})
"""
_GO_HEAD = re.compile(r"(?ms)\A.*?^package[ \t]+\w+[^\n]*\n")
_GO_TEST = re.compile(r"(?m)^func\s+((?:Test|Fuzz)[A-Z0-9_]\w*)\s*\(\s*\w+\s+\*testing\.[TF]\s*\)")
GO_EXAMPLE = re.compile(
    r"(?ms)^func\s+(Example\w*)\s*\(\)\s*\{(?:(?!^\}).)*?^\s*//\s*(?i:unordered )?(?i:output):"
)
_JAVA_HEAD = re.compile(r"(?m)^(?:package\s|import\s+(?:static\s+)?org\.(?:junit|testng)\b)[^\n]*$")
_JAVA_CLASS = re.compile(r"(?m)^(?:public\s+|final\s+)*class\s+(\w+)")
_JAVA_TEST = re.compile(r"(?m)^[ \t]*@Test\s+(?:public\s+)?void\s+(\w+)\s*\(\s*\)")
_SKIPS = re.compile(r"(?i)skip|todo|only|assum|disabled|enabled|ignore|pending|\bx(?:it|test)\b")
_PLAIN_DECORATORS = re.compile(r"pytest\.mark\.parametrize|(?:mock\.)?patch\b|given|settings")


def outline_tests(text: str, suffix: str, names: Collection[str]) -> str:
    """Return a test file with these tests, which fail."""
    tests = "".join(_outline_test(name, suffix) for name in names)
    match suffix:
        case "py":
            return _outline_python(text, names)
        case "go":
            package = empty_work(text, ".go")
            return f'{package}import "testing"\n\nvar _ testing.T\n{tests}' if names else package
        case "java" if found := _JAVA_CLASS.search(text):
            head = "\n".join(one[0] for one in _JAVA_HEAD.finditer(text))
            return f"{head}\npublic class {found[1]} {{\n{tests}}}\n"
        case "rs" | "java":
            return text
        case _:
            head = "\n".join(found[0] for found in _JS_HEAD.finditer(text))
            return f"{head}\n{tests}"


def _outline_test(name: str, suffix: str) -> str:
    match suffix:
        case "go" if name.startswith("Example"):
            return f"func {name}() {{\n// Output: {MARK}\n}}\n"
        case "go":
            kind = "F" if name.startswith("Fuzz") else "T"
            return f'func {name}(t *testing.{kind}) {{ t.Fatal("{MARK}") }}\n'
        case "java":
            return f'@Test public void {name}() {{ throw new AssertionError("{MARK}"); }}\n'
        case _:
            run = 'typeof test === "function" ? test : it'
            return f'({run})({json.dumps(name)}, () => {{ throw new Error("{MARK}"); }});\n'


def list_plain(text: str, suffix: str) -> Iterable[str]:
    """Return the tests of a file that nothing in it excludes on any machine."""
    match suffix:
        case "py":
            # Marks of a whole file or class may deselect its tests.
            tree = None if "pytestmark" in text else parse_module(text)
            return _python_tests(tree.body) if tree else ()
        case "go":
            return (*_GO_TEST.findall(text), *GO_EXAMPLE.findall(text))
        case "java":
            return _JAVA_TEST.findall(text)
        case "rs":
            return ()
        case _:
            return _javascript_tests(text)


def count_parameters(text: str) -> Iterator[tuple[str, int]]:
    """Yield the tests of Python whose parameters are all in the text, with their number."""
    tree = parse_module(text)
    for one in ast.walk(tree) if tree else ():
        if isinstance(one, ast.FunctionDef) and one.decorator_list:
            counts = list(map(_count_literals, one.decorator_list))
            if all(counts):
                yield one.name, math.prod(counts)


def _count_literals(decorator: ast.expr) -> int:
    match decorator:
        case ast.Call(args=[_, ast.List(elts=values) | ast.Tuple(elts=values)]) if (
            ast.unparse(decorator.func) == "pytest.mark.parametrize"
            # Marks of a parameter may deselect it.
            and not any(isinstance(value, ast.Call | ast.Starred) for value in values)
        ):
            return len(values)
        case _:
            return 0


def may_skip(text: str, language: Language) -> bool:
    """True if a file of tests may skip tests itself."""
    code = mask_code(text, language)
    return code is None or _SKIPS.search(code.mask) is not None


def empty_work(text: str, path: str) -> str:
    """Return a file of the work without effect; empty: tests are not loaded with it.

    A package of Go holds its tests and the work; files such as `conftest.py` may import the work.
    """
    head = _GO_HEAD.match(text) if path.endswith(".go") else None
    return _EMPTY_MODULE if path.endswith(".py") else head[0] if head else ""


def _python_tests(body: Iterable[ast.stmt], is_in_class: bool = False) -> Iterator[str]:
    for one in body:
        match one:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                decorators = map(ast.unparse, one.decorator_list)
                if one.name.startswith("test") and all(map(_PLAIN_DECORATORS.match, decorators)):
                    yield one.name
            case ast.ClassDef(decorator_list=[]) if not is_in_class and _is_collected(one):
                yield from _python_tests(one.body, is_in_class=True)
            case _:
                pass


def _is_collected(one: ast.ClassDef) -> bool:
    """True if runners collect a class automatically."""
    own = {node.id for node in ast.walk(one) if isinstance(node, ast.Name)}
    names = {node.name for node in one.body if isinstance(node, ast.FunctionDef)}
    is_case = any(ast.unparse(base).endswith("TestCase") for base in one.bases)
    return (is_case or one.name.startswith("Test")) and not {"__init__", "__test__"} & (own | names)


def _javascript_tests(text: str) -> Iterator[str]:
    code = mask_code(text, "javascript")
    for found in _JS_TEST.finditer(code.mask) if code else ():
        title = _TITLE.match(text, found.end())
        # Only groups of tests may be open there, no conditions or loops.
        if (
            code
            and title
            and all(
                _JS_GROUP.search(code.mask, max(0, at - 200), at)
                for at in code.open_braces(0, found.start())
            )
        ):
            yield title[2]


def _outline_python(text: str, names: Collection[str]) -> str:
    """Return the tests in their own classes: a command may leave them out by these."""
    tree = parse_module(text)
    lines = ["import unittest"]
    for one in tree.body if tree else ():
        if isinstance(one, ast.ClassDef):
            base = "(unittest.TestCase)" if one.bases else ""
            lines += [f"class {one.name}{base}:", "    pass"]
        own = one.body if isinstance(one, ast.ClassDef) else [one]
        indent, argument = ("    ", "self") if isinstance(one, ast.ClassDef) else ("", "")
        lines += [
            f'{indent}def {test.name}({argument}): raise AssertionError("{MARK}")'
            for test in own
            if isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef) and test.name in names
        ]
    return "\n".join((*lines, ""))
