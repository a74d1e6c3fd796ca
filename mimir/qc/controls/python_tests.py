"""Changed expectations of Python tests, by the syntax tree. Pure.

Only literals, displays of literals and operands of `==` that are a whole compared value change, never arguments of other calls: a changed
`range(10)` may take all memory. Edits keep the lines, so that reports name the same ones.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mimir.qc.controls.mutation import MARK, OFFSET, SUFFIX, Edit, Step, apply_edits

_TestDef = ast.FunctionDef | ast.AsyncFunctionDef
_Equality = tuple[ast.expr, ast.expr, ast.expr]
"""A comparison, or a call that compares, and its two values."""
FAIL = f'raise AssertionError("{MARK}")'
_THROW = f'(_ for _ in ()).throw(AssertionError("{MARK}"))'
_SKIP = f'(_ for _ in ()).throw(__import__("unittest").SkipTest("{MARK}"))'
_LEAVE = '__import__("os")._exit(0)'
_EXIT = "raise SystemExit(1)"
_COMPOUND = (
    *(ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar),
    *(ast.Match, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
)


def mutate_tests(text: str, step: Step) -> str | None:
    """Return a test file with failing tests; None: it contains none, or cannot be parsed."""
    source = _parse(text)
    if source is None:
        return None
    tests = list(_tests(source.tree))
    edits: list[Edit] = []
    for test in tests:
        found = source.expectations(test.body)
        match step:
            case "expectations":
                edits += found.edits or [source.first_statement(test)]
            case "strict":
                edits += found.strict
            case _:
                edits.append(source.first_statement(test))
    if step == "expectations" and tests:
        for helper in _helpers(source.tree):
            edits += source.expectations(helper.body).edits
    other = apply_edits(text, edits) if edits else None
    return other if other and is_parsable(other) else None


def list_tests(text: str) -> Mapping[str, bool]:
    """Return the names of the tests of a file; True: the test always reaches an equality."""
    source = _parse(text)
    found: dict[str, bool] = {}
    for test in _tests(source.tree) if source else ():
        is_strict = any(_equality(statement) for statement in test.body)
        found[test.name] = is_strict and found.get(test.name, True)
    return found


def is_parsable(text: str) -> bool:
    """True if this Python can parse a text."""
    return _parse(text) is not None


def mutate_script(text: str, step: Step) -> str | None:
    """Return a Python program that fails; None: this step changes nothing, or it is no Python."""
    source = _parse(text)
    if source is None:
        return None
    found = source.expectations(source.tree.body, ends_program=True)
    if step == "expectations":
        return apply_edits(text, found.edits) if found.edits else None
    if step == "strict":
        return apply_edits(text, found.strict) if found.strict else None
    if step == "replaced":
        return f"{_EXIT}\n"
    exits = [edit for call in ast.walk(source.tree) for edit in source.failing_exit(call)]
    return f"{apply_edits(text, exits).rstrip()}\n{_EXIT}\n"


@dataclass(slots=True)
class _Expectations:
    """Edits of the assertions of one body."""

    edits: list[Edit] = field(default_factory=list[Edit])
    strict: list[Edit] = field(default_factory=list[Edit])
    """Edits that fail where an equality is reached, which must fail by `edits` too."""

    def add(self, other: "_Expectations") -> None:
        """Add the edits of another assertion."""
        self.edits += other.edits
        self.strict += other.strict


class _Source:
    """Parsed text with the offsets of its lines."""

    def __init__(self, text: str, tree: ast.Module) -> None:
        self.text = text
        self.tree = tree
        self._lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def expectations(
        self, body: Sequence[ast.stmt], *, ends_program: bool = False
    ) -> _Expectations:
        """Return the edits of all assertions of a body; `ends_program`: it is a script."""
        found = _Expectations()
        equalities = [(statement, one) for statement in body if (one := _equality(statement))]
        revealed = {id(statement): one for statement, one in equalities[:-1]}
        for statement in body:
            if one := revealed.get(id(statement)):
                found.edits.append(self._reveal(one, ends_program=ends_program))
                continue
            for node in ast.walk(statement):
                found.add(self._assertion(node))
        return found

    def _reveal(self, equality: _Equality, *, ends_program: bool) -> Edit:
        """Return the edit that skips the test if an equality holds with another value.

        Right work passes it, so that the next equality of the test is tried too.
        """
        node, left, right = equality
        edits = self._pair(left, right, True).edits
        values = [
            apply_edits(self._segment(one), self._inside(one, edits)) for one in (left, right)
        ]
        action = _LEAVE if ends_program else _SKIP
        return self._replacement(node, f"not (({values[0]}) == ({values[1]})) or {action}")

    def _inside(self, node: ast.expr, edits: Iterable[Edit]) -> Iterator[Edit]:
        """Yield the edits inside a node, by their places in its text."""
        start, end = self._offset(node.lineno, node.col_offset), self._end(node)
        for edit in edits:
            if start <= edit.start and edit.end <= end:
                yield replace(edit, start=edit.start - start, end=edit.end - start)

    def first_statement(self, test: _TestDef) -> Edit:
        """Return the edit that puts a failing statement first."""
        first = test.body[0]
        decorators = getattr(first, "decorator_list", [])
        start = self._offset(*((decorators[0].lineno, first.col_offset) if decorators else (first.lineno, first.col_offset)))  # fmt: skip
        between = "; "
        if isinstance(first, _COMPOUND):
            indent = self.text[self.text.rfind("\n", 0, start) + 1 : start]
            between = f"\n{indent}"
        return Edit(start=start, end=start, text=f"{FAIL}{between}")

    def failing_exit(self, node: ast.AST) -> Iterator[Edit]:
        """Yield the edit of `exit(0)`, `sys.exit()` or `raise SystemExit`."""
        match node:
            case ast.Raise(exc=ast.Name(id="SystemExit") as raised):
                yield self._replacement(raised, "SystemExit(1)")
            case _:
                pass
        if isinstance(node, ast.Call) and _name(node.func) in ("exit", "quit", "_exit", "SystemExit"):  # fmt: skip
            if not node.args:
                end = self._end(node)
                yield Edit(start=end - 1, end=end - 1, text="1")
            elif not isinstance(node.args[0], ast.Constant | ast.Starred):
                # The value is still computed: it may be the program itself, as in sys.exit(main()).
                yield self._replacement(node.args[0], f"[{self._segment(node.args[0])}, 1][1]")
            elif isinstance(node.args[0], ast.Constant) and node.args[0].value in (0, None, False):
                yield self._replacement(node.args[0], "1")

    def _assertion(self, node: ast.AST) -> _Expectations:
        """Return the edits of an assertion."""
        if isinstance(node, ast.Assert):
            return self._condition(node.test)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name.startswith("assert") and len(node.args) > 1:
                return self._pair(node.args[0], node.args[1], _is_equality_method(name))
        return _Expectations()

    def _condition(self, test: ast.expr) -> _Expectations:
        found = _Expectations()
        if isinstance(test, ast.BoolOp):
            for value in test.values:
                found.add(self._condition(value))
            if not isinstance(test.op, ast.And):
                found.strict.clear()
        elif isinstance(test, ast.Compare) and len(test.ops) == 1:
            is_equality = isinstance(test.ops[0], ast.Eq)
            return self._pair(test.left, test.comparators[0], is_equality)
        elif isinstance(test, ast.Compare):
            found.edits += [edit for one in test.comparators for edit in self._changed(one)]
        return found

    def _pair(self, left: ast.expr, right: ast.expr, is_equality: bool) -> _Expectations:
        """Change one of two compared values: a literal, else the right one of an equality."""
        edits = self._changed(right) or self._changed(left)
        if isinstance(right, ast.Starred) or not is_equality:
            return _Expectations(edits)
        value = self._segment(right)
        edits = edits or [self._replacement(right, f'({value}, "{MARK}")')]
        # Both values are computed first: a test may expect that one of them fails.
        return _Expectations(edits, [self._replacement(right, f"({value}, {_THROW})")])

    def _changed(self, node: ast.expr) -> list[Edit]:
        """Return edits of a literal; empty: it is none, or has no other value of its type."""
        match node:
            case ast.Constant() | ast.JoinedStr():
                text = self._other(node)
                return [self._replacement(node, text)] if text else []
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant() as inner):
                return self._changed(inner)
            case ast.List(elts=[]):
                return [self._replacement(node, f"[{OFFSET}]")]
            case ast.Tuple(elts=[]):
                return [self._replacement(node, f"({OFFSET},)")]
            case ast.Dict(keys=[]):
                return [self._replacement(node, f"{{{OFFSET}: {OFFSET}}}")]
            case ast.List() | ast.Tuple() | ast.Set() | ast.Dict() if _is_display(node):
                values = node.values if isinstance(node, ast.Dict) else node.elts
                return [edit for value in values for edit in self._changed(value)]
            case _:
                return []

    def _other(self, node: ast.Constant | ast.JoinedStr) -> str:
        """Return the source of another value of a literal's type; empty: there is none."""
        if isinstance(node, ast.JoinedStr):
            return f'({self._segment(node)} "{SUFFIX}")'
        match node.value:
            case bool():
                return str(not node.value)
            case int() | float() if node.value == node.value and abs(node.value) < 1e300:
                return repr(node.value + OFFSET)
            case str():
                return f'({self._segment(node)} "{SUFFIX}")'
            case bytes():
                return f'({self._segment(node)} b"{SUFFIX}")'
            case _:
                return ""

    def _replacement(self, node: ast.expr, text: str) -> Edit:
        start = self._offset(node.lineno, node.col_offset)
        return Edit(start=start, end=self._end(node), text=text)

    def _segment(self, node: ast.expr) -> str:
        return self.text[self._offset(node.lineno, node.col_offset) : self._end(node)]

    def _end(self, node: ast.expr) -> int:
        return self._offset(node.end_lineno or node.lineno, node.end_col_offset or 0)

    def _offset(self, line: int, column: int) -> int:
        """Return the place of a line and a column, which the tree counts in bytes."""
        text = self._lines[line - 1]
        if not text.isascii():
            column = len(text.encode()[:column].decode(errors="ignore"))
        return self._starts[line - 1] + column


def _parse(text: str) -> _Source | None:
    # Form feeds and other separators end lines for `splitlines`, but not for the tree.
    text_lines = text.splitlines()
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    is_plain = len(text_lines) == len(text.removesuffix("\n").split("\n")) or not text
    return _Source(text, tree) if is_plain else None


def _equality(statement: ast.stmt) -> _Equality | None:
    """Return a statement's comparison with its two values; None: it is no such assertion."""
    match statement:
        case ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]) as node):
            return node, left, right
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(attr="assertEqual"), args=[left, right], keywords=[]
            ) as node
        ) if not isinstance(left, ast.Starred) and not isinstance(right, ast.Starred):
            return node, left, right
        case _:
            return None


def _tests(tree: ast.Module) -> Iterator[_TestDef]:
    return (one for one in _functions(tree.body) if _is_test(one))


def _helpers(tree: ast.Module) -> Iterator[_TestDef]:
    return (one for one in _functions(tree.body) if not _is_test(one))


def _is_test(one: _TestDef) -> bool:
    return one.name.startswith("test") or one.name == "runTest"


def _functions(body: Iterable[ast.stmt]) -> Iterator[_TestDef]:
    """Yield the functions of a module and of its classes."""
    for one in body:
        if isinstance(one, _TestDef):
            yield one
        elif isinstance(one, ast.ClassDef | ast.If | ast.With | ast.Try):
            yield from _functions(one.body)


def _is_display(node: ast.expr) -> bool:
    """True if a node consists of literals alone."""
    allowed = (
        *(ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict),
        *(ast.UnaryOp, ast.USub, ast.UAdd, ast.Load),
    )
    return all(isinstance(one, allowed) for one in ast.walk(node))


def _is_equality_method(name: str) -> bool:
    return name.endswith(("Equal", "Equals")) and not any(
        word in name for word in ("Not", "Less", "Greater")
    )


def _name(function: ast.expr) -> str:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""
