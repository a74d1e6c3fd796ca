"""Changed expectations of Python tests, by the syntax tree. Pure.

Only literals, displays of literals and operands of `==` that are a whole compared value change, never arguments of other calls: a changed
`range(10)` may take all memory. Edits keep the lines, so that reports name the same ones.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from mimir.domain.python_syntax import parse_module
from mimir.qc.mutations.mutation import (
    MARK,
    OFFSET,
    SUFFIX,
    Edit,
    Place,
    Step,
    apply_edits,
    apply_inside,
    insert,
)
from mimir.qc.mutations.python_assertions import (
    DETACHED,
    METHODS,
    RELATIONS,
    Comparison,
    always_asserts,
    fails_by_name,
    find_comparison,
    find_expected_error,
    is_display,
    is_equality_method,
    list_expected,
    name_of,
)

_TestDef = ast.FunctionDef | ast.AsyncFunctionDef
_FAIL = f'raise AssertionError("{MARK}")'
_THROW = f'(_ for _ in ()).throw(AssertionError("{MARK}"))'
_SKIP = f'(_ for _ in ()).throw(__import__("unittest").SkipTest("{MARK}"))'
_COMPARE = '__import__("mimir_compare")'
"""The reporter `mimir_compare.py`."""
_LEAVE = '__import__("os")._exit(0)'
_EXIT = "raise SystemExit(1)"
_EXITS = ("exit", "quit", "_exit", "SystemExit")
_NOT_EMPTY = {"[": f"[{OFFSET}]", "(": f"({OFFSET},)", "{": f"{{{OFFSET}: {OFFSET}}}"}
_COMPOUND = (
    *(ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar),
    *(ast.Match, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
)


def mutate_tests(text: str, step: Step) -> str | None:
    """Return a test file with failing tests; None: this step changes nothing.

    A file that this Python cannot parse fails as a whole: that of the project may understand it.
    """
    source = _parse(text)
    if source is None:
        return None if step == "strict" else f"{_FAIL}\n{text}"
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
        for helper in _functions(source.tree.body):
            edits += source.expectations(helper.body).edits if helper not in tests else []
    other = apply_edits(text, edits) if edits else None
    return other if other and _parse(other) else None


def list_tests(text: str) -> Mapping[str, bool]:
    """Return the names of the tests of a file; True: the test always reaches an equality."""
    source = _parse(text)
    found: dict[str, bool] = {}
    for test in _tests(source.tree) if source else ():
        is_strict = always_asserts(test.body)
        found[test.name] = is_strict and found.get(test.name, True)
    return found


def mutate_script(text: str, step: Step) -> str | None:
    """Return a Python program that fails; None: this step changes nothing, or it is no Python."""
    source = _parse(text)
    if source is None:
        return None
    found = source.expectations(source.tree.body, ends_program=True)
    if step in ("expectations", "strict"):
        edits = found.edits if step == "expectations" else found.strict
        return apply_edits(text, edits) if edits else None
    if step in ("replaced", "detached"):
        return f"{_EXIT}\n" if step == "replaced" else f"{DETACHED}{text}"
    exits = [edit for call in ast.walk(source.tree) for edit in source.failing_exit(call)]
    other = f"{apply_edits(text, exits).rstrip()}\n{_EXIT}\n"
    return other if _parse(other) else None


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
        self._starts = list(accumulate(map(len, self._lines), initial=0))

    def expectations(
        self, body: Sequence[ast.stmt], *, ends_program: bool = False
    ) -> _Expectations:
        """Return the edits of all assertions of a body; `ends_program`: it is a script."""
        found = _Expectations()
        checked = [one for one in body if find_comparison(one) or find_expected_error(one)]
        for statement in body:
            if statement in checked[:-1]:
                found.edits.append(self._reveal(statement, _LEAVE if ends_program else _SKIP))
                continue
            for node in ast.walk(statement):
                found.add(self._assertion(node))
        return found

    def _reveal(self, statement: ast.stmt, action: str) -> Edit:
        """Return the edit that ends the test if an assertion holds with another value.

        Right work passes it, so that the next assertion of the test is tried too.
        """
        if expected := find_expected_error(statement):
            return self._before(expected[0], f"not {self._ignores(expected[1])} or {action}")
        one = find_comparison(statement)
        if one is None:
            raise AssertionError("only assertions are revealed")
        if isinstance(one.node, ast.Call):
            values = self._inside(one.node.args[0], one.node.args[1], self._in_call(one))
            text = f"{_COMPARE}.passes({self._segment(one.node.func)}, {values})"
        else:
            text = self._inside(one.node, one.node, self._in_expression(one))
        return self._replacement(one.node, f"not ({text}) or {action}")

    def _ignores(self, context: ast.expr) -> str:
        values = map(self._segment, (context, *list_expected(context)))
        return f"{_COMPARE}.ignores(lambda: {', '.join(values)})"

    def _before(self, statement: ast.stmt, text: str) -> Edit:
        """Return the edit that puts another statement before one."""
        decorators = getattr(statement, "decorator_list", [])
        start = self._offset((decorators or [statement])[0].lineno, statement.col_offset)
        indent = self.text[self.text.rfind("\n", 0, start) + 1 : start]
        is_compound = isinstance(statement, _COMPOUND)
        return insert(start, f"{text}\n{indent}" if is_compound else f"{text}; ")

    def _inside(self, first: ast.expr, last: ast.expr, edits: Sequence[Edit]) -> str:
        """Return the text from one node to another with the edits applied."""
        return apply_inside(self.text, (self._place(first)[0], self._place(last)[1]), edits)

    def first_statement(self, test: _TestDef) -> Edit:
        """Return the edit that puts a failing statement first."""
        return self._before(test.body[0], _FAIL)

    def failing_exit(self, node: ast.AST) -> Iterator[Edit]:
        """Yield the edit of `exit(0)`, `sys.exit()`, `raise SystemExit` or `unittest.main()`."""
        match node:
            case ast.Raise(exc=ast.Name(id="SystemExit") as raised):
                yield self._replacement(raised, "SystemExit(1)")
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="unittest"), attr="main"), keywords=named
            ) if not any(one.arg == "exit" for one in named):
                # It ends the program itself.
                end = self._place(node)[1] - 1
                is_first = self.text[:end].rstrip().endswith(("(", ","))
                yield insert(end, "exit=False" if is_first else ", exit=False")
            case ast.Call(func=function, args=[]) if name_of(function) in _EXITS:
                yield insert(self._place(node)[1] - 1, "1")
            case ast.Call(func=function, args=[value, *_]) if name_of(function) in _EXITS:
                if not isinstance(value, ast.Constant | ast.Starred):
                    # The value is still computed: it may be the program itself, as in sys.exit(main()).
                    yield self._replacement(value, f"[{self._segment(value)}, 1][1]")
                elif isinstance(value, ast.Constant) and value.value in (0, None, False):
                    yield self._replacement(value, "1")
            case _:
                pass

    def _assertion(self, node: ast.AST) -> _Expectations:
        """Return the edits of an assertion."""
        if expected := find_expected_error(node):
            block, context = expected
            tried = self._before(block, f"{self._ignores(context)} or {_THROW}")
            return _Expectations([tried], [self._before(block, _FAIL)])
        match node:
            case ast.Call(func=ast.Attribute(attr="assertRaises"), args=[_, called, *_] as values):
                place = (self._place(called)[0], self._place(values[-1])[1])
                edits = [Edit(place, text) for text in ("int", _THROW)]
                return _Expectations(edits[:1], edits[1:])
            case ast.Assert(test=test):
                return self._condition(test)
            case ast.If(test=test, body=body) if any(map(fails_by_name, body)):
                return self._condition(test, is_negated=True)
            case ast.Match(subject=subject, cases=cases):
                return self._matched(subject, cases)
            case ast.Call(
                func=ast.Attribute(attr="assertTrue" | "assertFalse" as name), args=[test, *_]
            ):
                return self._condition(test, is_negated=name == "assertFalse")
            case ast.Call(func=ast.Attribute(attr=name), args=[*_, last]) if name.startswith(
                "assert_"
            ) and name.endswith(("_with", "_call")):
                thrown = self._replacement(last, f"({self._segment(last)}, {_THROW})")
                edits = self._changed(last)
                return _Expectations(edits, [thrown] if edits else [])
            case ast.Call(func=ast.Attribute(attr=name), args=[left, right, *_]) if name.startswith(
                "assert"
            ):
                relation = "==" if is_equality_method(name) else METHODS.get(name, "")
                one = Comparison(node=node, left=left, relation=relation, right=right)
                edits = self._in_call(one) if relation else self._literal(one, OFFSET)
                return _Expectations(edits, self._strict(one) if relation else [])
            case _:
                return _Expectations()

    def _matched(self, subject: ast.expr, cases: Sequence[ast.match_case]) -> _Expectations:
        """Return the edits of a `match` of which one case fails."""
        passing = [case for case in cases if not any(map(fails_by_name, case.body))]
        found = _Expectations()
        for case in passing if len(passing) < len(cases) else ():
            values = [
                one.value for one in ast.walk(case.pattern) if isinstance(one, ast.MatchValue)
            ]
            found.edits += [edit for value in values for edit in self._changed(value)]
            if case.guard:
                found.edits += self._condition(case.guard).edits
        if found.edits:
            changed = f"({self._segment(subject)}, {_THROW})"
            found.strict.append(self._replacement(subject, changed))
        return found

    def _condition(self, test: ast.expr, *, is_negated: bool = False) -> _Expectations:
        """Return the edits of a condition that must hold, or must not."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return self._condition(inner, is_negated=not is_negated)
            case ast.BoolOp():
                return self._combined(test, is_negated)
            case ast.Call(
                func=ast.Name(id="all" | "any"),
                args=[ast.GeneratorExp(elt=inner) | ast.ListComp(elt=inner)],
            ) if not is_negated:
                return self._condition(inner)
            case (
                ast.Call(func=ast.Name(id="bool"), args=[inner])
                | ast.Compare(
                    left=ast.Compare() | ast.BoolOp() as inner,
                    ops=[ast.Is() | ast.Eq()],
                    comparators=[ast.Constant(value=True)],
                )
            ):
                return self._condition(inner, is_negated=is_negated)
            case ast.Call(func=function, args=[left, right, *_]) if (
                name_of(function) in ("isclose", "allclose") and not is_negated
            ):
                one = Comparison(node=test, left=left, relation="", right=right)
                return _Expectations(self._literal(one, OFFSET), self._strict(one))
            case ast.Call(func=ast.Attribute(attr="startswith" | "endswith"), args=[right]) if (
                not is_negated
            ):
                one = Comparison(node=test, left=test.func, relation="", right=right)
                edits = self._changed(right)
                return _Expectations(edits, self._strict(one) if edits else [])
            case ast.Compare():
                return self._compared(test, is_negated)
            case _:
                return _Expectations()

    def _compared(self, test: ast.Compare, is_negated: bool) -> _Expectations:
        op, right = test.ops[-1], test.comparators[-1]
        relation = "==" if is_negated else RELATIONS.get(type(op), "")
        one = Comparison(node=test, left=test.left, relation=relation, right=right)
        if is_negated and not (isinstance(op, ast.NotEq) and len(test.ops) == 1):
            return _Expectations()
        if not relation:
            return _Expectations(
                [edit for value in test.comparators for edit in self._changed(value)]
                or self._changed(test.left)
            )
        if len(test.ops) == 1:
            return _Expectations(self._in_expression(one, is_negated), self._strict(one))
        changed = f'({self._segment(right)}, "{MARK}")'
        return _Expectations([self._replacement(right, changed)], self._strict(one))

    def _combined(self, test: ast.BoolOp, is_negated: bool) -> _Expectations:
        found = _Expectations()
        parts = [self._condition(value, is_negated=is_negated) for value in test.values]
        for part in parts:
            found.add(part)
        # Of alternatives, another one may hold.
        if isinstance(test.op, ast.And) == is_negated and not all(part.strict for part in parts):
            found.strict.clear()
        return found

    def _literal(self, one: Comparison, distance: int = 1) -> list[Edit]:
        """Change one of two compared values, if it is a literal."""
        return self._changed(one.right, distance) or self._changed(one.left, distance)

    def _in_expression(self, one: Comparison, is_negated: bool = False) -> list[Edit]:
        """Change a comparison so that it holds only if it decides nothing."""
        # Of several values in a container, one that equals everything decides nothing.
        is_plain = one.relation == "==" and not (_holds_many(one.left) or _holds_many(one.right))
        if is_plain and (edits := self._literal(one)):
            return edits
        values = [self._segment(value) for value in (one.left, one.right)]
        lines = self._segment(one.node).count("\n") - sum(value.count("\n") for value in values)
        ends = "\n" * lines
        text = f'{_COMPARE}.holds(({values[0]}), "{one.relation}", ({values[1]}){ends})'
        return [self._replacement(one.node, f"not {text}" if is_negated else text)]

    def _in_call(self, one: Comparison) -> list[Edit]:
        """Change the values of a call so that it accepts them only if it decides nothing."""
        left, right = one.left, one.right
        if isinstance(right, ast.Starred) or isinstance(left, ast.Starred):
            return []
        if one.relation == "==":
            is_plain = not (_holds_many(left) or _holds_many(right))
            # A tolerance may accept a neighbour.
            is_near = isinstance(one.node, ast.Call) and "Almost" not in name_of(one.node.func)
            if is_plain and (edits := self._literal(one, 1 if is_near else OFFSET)):
                return edits
            start, (middle, end) = self._place(left)[0], self._place(right)
            return [insert(start, f"*{_COMPARE}.pick("), insert(end, ")")] if start < middle else []
        changed = left if one.relation == "in" or self._changed(left) else right
        return [self._replacement(changed, f'({self._segment(changed)}, "{MARK}")')]

    def _strict(self, one: Comparison) -> list[Edit]:
        """Return the edit that fails where a comparison is reached."""
        # Both values are computed first: a test may expect that one of them fails.
        return [self._replacement(one.right, f"({self._segment(one.right)}, {_THROW})")]

    def _changed(self, node: ast.expr, distance: int = 1) -> list[Edit]:
        """Return edits of a literal; empty: it is none, or has no other value of its type.

        `distance` is that of the other number: an equality that accepts a neighbour decides nothing.
        """
        match node:
            case ast.Constant() | ast.JoinedStr():
                text = self._other(node, distance)
                return [self._replacement(node, text)] if text else []
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant() as inner):
                return self._changed(inner, distance)
            case ast.Call(func=function, args=[ast.expr() as inner, *_]) if (
                name_of(function) == "approx"
            ):
                return self._changed(inner, OFFSET)
            case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]):
                return [self._replacement(node, _NOT_EMPTY[self._segment(node)[0]])]
            case ast.List() | ast.Tuple() | ast.Set() | ast.Dict() if is_display(node):
                values = node.values if isinstance(node, ast.Dict) else node.elts
                return [edit for value in values for edit in self._changed(value, distance)]
            case _:
                return []

    def _other(self, node: ast.Constant | ast.JoinedStr, distance: int) -> str:
        """Return the source of another value of a literal's type; empty: there is none."""
        if isinstance(node, ast.JoinedStr):
            return f'({self._segment(node)} "{SUFFIX}")'
        match node.value:
            case bool():
                return str(not node.value)
            case int() | float() if node.value == node.value and abs(node.value) < 1e300:
                other = node.value + distance
                return repr(other if other != node.value else 2 * node.value)
            case str():
                return f'({self._segment(node)} "{SUFFIX}")'
            case bytes():
                return f'({self._segment(node)} b"{SUFFIX}")'
            case _:
                return ""

    def _replacement(self, node: ast.expr, text: str) -> Edit:
        return Edit(self._place(node), text)

    def _segment(self, node: ast.expr) -> str:
        return self.text[slice(*self._place(node))]

    def _place(self, node: ast.expr | ast.stmt) -> Place:
        end = self._offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
        return self._offset(node.lineno, node.col_offset), end

    def _offset(self, line: int, column: int) -> int:
        """Return the place of a line and a column, which the tree counts in bytes."""
        text = self._lines[line - 1]
        if not text.isascii():
            column = len(text.encode()[:column].decode(errors="ignore"))
        return self._starts[line - 1] + column


def _holds_many(node: ast.expr) -> bool:
    """True for a display of several values."""
    values = node.values if isinstance(node, ast.Dict) else getattr(node, "elts", ())
    return isinstance(node, ast.List | ast.Tuple | ast.Dict) and len(values) > 1


def _parse(text: str) -> _Source | None:
    # Form feeds and other separators end lines for `splitlines`, but not for the tree.
    text_lines = text.splitlines()
    tree = parse_module(text)
    if tree is None:
        return None
    is_plain = len(text_lines) == len(text.removesuffix("\n").split("\n")) or not text
    return _Source(text, tree) if is_plain else None


def _tests(tree: ast.Module) -> Iterator[_TestDef]:
    functions = _functions(tree.body)
    return (one for one in functions if one.name.startswith("test") or one.name == "runTest")


def _functions(body: Iterable[ast.stmt]) -> Iterator[_TestDef]:
    """Yield the functions of a module and of its classes."""
    for one in body:
        if isinstance(one, _TestDef):
            yield one
        elif isinstance(one, ast.ClassDef | ast.If | ast.With | ast.Try):
            yield from _functions(one.body)
