"""Assertions of Python tests: comparisons, expected errors, failing statements. Pure."""

import ast
from collections.abc import Mapping, Sequence

from mimir.domain.value_class import value_class

RELATIONS: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.In: "in",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
METHODS = {"assertIn": "in"} | {
    f"assert{name}": sign
    for name, sign in (("Less", "<"), ("LessEqual", "<="), ("Greater", ">"), ("GreaterEqual", ">="))
}
DETACHED = "import os; (control := os.fork()) and (os.waitpid(control, 0), os._exit(1))\n"
"""Start of a program that runs in a child; only its exit code fails, in each case."""


@value_class
class Comparison:
    """A comparison, or a call that compares."""

    node: ast.expr
    left: ast.expr
    relation: str
    """Sign of the comparison."""
    right: ast.expr


def find_comparison(statement: ast.stmt) -> Comparison | None:
    """Return the comparison that a statement asserts; None: it is no such assertion."""
    match statement:
        case ast.Assert(test=ast.Compare(left=left, ops=[op], comparators=[right]) as node) if type(
            op
        ) in RELATIONS and not isinstance(left, ast.Compare | ast.BoolOp):
            return Comparison(node=node, left=left, relation=RELATIONS[type(op)], right=right)
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(attr=name), args=[left, right], keywords=[]) as node
        ) if not isinstance(left, ast.Starred) and not isinstance(right, ast.Starred):
            relation = "==" if name == "assertEqual" else METHODS.get(name, "")
            return Comparison(node=node, left=left, relation=relation, right=right) if relation else None  # fmt: skip
        case _:
            return None


def _asserts_all(statement: ast.stmt) -> bool:
    """True if a statement asserts a condition of all values of a sequence."""
    match statement:
        case ast.Assert(
            test=ast.Call(func=ast.Name(id="all"), args=[ast.GeneratorExp() | ast.ListComp() as of])
        ):
            return isinstance(of.elt, ast.Compare)
        case _:
            return False


_RAISING = frozenset(
    ("raises", "warns", "assertRaises", "assertRaisesRegex", "assertWarns", "assertWarnsRegex")
)


def find_expected_error(block: ast.AST) -> tuple[ast.With, ast.expr] | None:
    """Return a block that expects an error, with its context; None: it is no such block."""
    if isinstance(block, ast.With):
        for call in (item.context_expr for item in block.items):
            if isinstance(call, ast.Call) and name_of(call.func) in _RAISING:
                return block, call
    return None


def list_expected(context: ast.expr) -> Sequence[ast.expr]:
    """Return the class of an expected error and the pattern of its text, if they are named."""
    if not isinstance(context, ast.Call) or "raises" not in name_of(context.func).lower():
        return ()
    named = [one.value for one in context.keywords if one.arg == "match"]
    return (*context.args[:2], *named)[:2] if context.args else ()


def always_asserts(body: Sequence[ast.stmt]) -> bool:
    """True if a body always asserts; a loop without a turn asserts nothing."""
    blocks = (ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar)
    for one in body:
        if find_comparison(one) or find_expected_error(one) or _asserts_all(one):
            return True
        if isinstance(one, blocks) and always_asserts(one.body):
            return True
        if any(isinstance(node, ast.Return) for node in ast.walk(one)):
            return False  # The test may end here.
    return False


def fails_by_name(statement: ast.stmt) -> bool:
    """True if a statement fails its test by name."""
    match statement:
        case ast.Raise(exc=ast.Name() | ast.Call(func=ast.Name()) as raised):
            name = raised.id if isinstance(raised, ast.Name) else name_of(raised.func)
            return name in ("AssertionError", "SystemExit")
        case ast.Assert(test=ast.Constant(value=value)):
            return not value
        case ast.Expr(value=ast.Call(func=function)):
            return name_of(function) in ("fail", "exit")
        case _:
            return False


def is_display(node: ast.expr) -> bool:
    """True if a node consists of literals alone."""
    allowed = (
        *(ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict),
        *(ast.UnaryOp, ast.USub, ast.UAdd, ast.Load),
    )
    return all(isinstance(one, allowed) for one in ast.walk(node))


def is_equality_method(name: str) -> bool:
    """True if a method of unittest asserts that two values are equal."""
    return name.endswith(("Equal", "Equals")) and not any(
        word in name for word in ("Not", "Less", "Greater")
    )


def name_of(function: ast.expr) -> str:
    """Return the last name of a called function; empty: it has none."""
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""
