"""Conditions and compared values of tests in JavaScript, Go and Rust. Pure.

Each value of an expected container must decide. Conditions without an expected value must fail if they are negated.
"""

import re
from collections.abc import Iterator, Sequence

from mimir.qc.mutations.code_lexer import MaskedCode, list_arguments
from mimir.qc.mutations.mutation import SUFFIX, Edit, Place, apply_inside

_LEAF = re.compile(r"(?<![\w$.])(?:-?\d+(?:\.\d+)?|true|false|'[^'\n]*'|\"[^\"\n]*\")(?![\w$.])(?!\s*:)")  # fmt: skip
_ASSERTION = re.compile(
    r"(?P<wait>\b(?:await|return)\s+)?(?<![\w$.])assert(?:\.(?P<method>ok|throws|rejects|match))?\s*(?=\()"
    r"|(?<!\.)\bexpect\s*(?P<actual>(?=\())"
)
_MATCHER = re.compile(r"\s*\.\s*(?P<name>toThrow\w*|toBeTruthy|toBeFalsy|toMatch)\s*(?=\()")
_EXPECT = re.compile(r"(?:await\s+)?expect\s*(?=\()")
LATER = re.compile(r"\.\s*(?:resolves|rejects)\b")
_WHOLE = re.compile(r"(?:await\s+)?(?:expect|assert)\b[^\n;]*(?:\n\s*[^;\n]*)*\Z")
_NEVER = "/(?!)/"
"""Pattern that matches no text."""
_NAMED_ERROR = re.compile(r"(?!Error$)[A-Z]\w*$|/[^/\n]*[A-Za-z]{3}|\{")
"""Class, pattern or record of an error."""
DETACHED = (
    'if (!process.env.MIMIR_CHILD) { require("child_process").spawnSync(process.execPath, [...process.execArgv, '
    '...process.argv.slice(1)], { stdio: "inherit", env: { ...process.env, MIMIR_CHILD: "1" } }); process.exit(1); } '
)
"""Start of a program that runs in a child; only its exit code fails."""
_RUST_CONDITION = re.compile(r"assert(?P<ne>_ne)?!\s*(?=\()")
_GO_CONDITION = re.compile(r"\bif\b[^{}\n]*!=\s*(?P<value>\"[^\"\n]*\"|-?[\w.]+)\s*\{")
_GO_UNEQUAL = re.compile(
    r"(?<!else )\bif\b(?:[^{};\n]*;)?\s*(?:(?P<not>!)[\w.]+\(.*\)|[^{}\n!=&|]+(?P<sign>!=)\s*(?!nil\b)[\w.\[\]()]+)\s*\{"
)
_GO_FAILURE = re.compile(r"\.(?:Fatal|Error|Fail)")
_MOST = 12
"""Most values that are tried one by one."""


def reveal_parts(
    code: MaskedCode, statement: Place, assertion: int, values: Sequence[Place], *, is_last: bool
) -> str | None:
    """Return a statement that ends the test if its equality holds with another part.

    Right work passes it. The last one of a test fails then, with all parts changed. None: it cannot be rewritten.
    """
    text, (start, end) = code.text, statement
    expected = next((place for place in reversed(values) if code.mask[place[0]] in "{["), None)
    actual = values[0] if len(values) == 2 else None
    if found := _EXPECT.match(code.mask, start):
        actual = next(iter(list_arguments(code, found.end())), None)
    is_plain = actual and expected and start < actual[0] < actual[1] < expected[0]
    if not (actual and expected and is_plain) or LATER.search(code.mask, start, assertion):
        return None
    edits = list(filter(None, map(code.change_literal, find_parts(code, expected))))
    others = [apply_inside(text, expected, [edit]) for edit in edits]
    head, middle = f"{text[start : actual[0]]}mimirActual", text[actual[1] : expected[0]]
    called = f"{head}{middle}mimirOther{text[expected[1] : end]}"
    parts = [one.replace("\n", " ") for one in (code.read(actual), called, *others)]
    if not others or any("//" in one for one in parts):
        return None
    changed = f"{head}{apply_inside(text, (actual[1], end), edits)}" if is_last else ""
    lines = code.read(statement).count("\n") - changed.count("\n")
    return (
        f"{{ const mimirActual = {parts[0]}; for (const mimirOther of [{', '.join(parts[2:])}]) "
        f"{{ try {{ {parts[1]}; return; }} catch {{}} }} {changed}{chr(10) * lines} }}"
    )


def find_parts(code: MaskedCode, container: Place) -> Iterator[Place]:
    """Yield the literals of a container, without keys and arguments of calls."""
    start, end = container
    text = code.mask[start:end]
    called = [
        (at - start, code.pairs[at] - start) for at in range(start, end) if code.mask[at] == "("
    ]
    found = [one.span() for one in _LEAF.finditer(text)]
    free = [(a, b) for a, b in found if not any(x < a < y for x, y in called)]
    yield from ((start + a, start + b) for a, b in free[:_MOST])


def find_conditions(code: MaskedCode, start: int, end: int) -> Iterator[Edit]:
    """Yield edits of conditions that must hold, after which they must not."""
    for found in _ASSERTION.finditer(code.mask, start, end):
        values = list_arguments(code, found.end())
        if not values:
            continue
        first, close = values[0], code.pairs[found.end()]
        name = found["method"] or "ok"
        if found["actual"] is not None:
            matcher = _MATCHER.match(code.mask, close + 1)
            name = matcher["name"] if matcher else ""
            values = [first, *(list_arguments(code, matcher.end()) if matcher else ())]
            close = code.pairs[matcher.end()] if matcher else close
        match name:
            case "ok" | "toBeTruthy" | "toBeFalsy":
                yield Edit(first, f"!({code.read(first)})")
            case "rejects" if found["wait"]:
                yield Edit(first, "Promise.resolve()")
            case "match" | "toMatch" if len(values) > 1:
                yield Edit(values[1], _NEVER)
            case _ if name == "throws" or name.startswith("toThrow"):
                yield Edit(first, _expect_other_error(code, found.start(), values, close))
            case _:
                pass


def find_condition(code: MaskedCode, place: Place, leave: str) -> tuple[Edit, str] | None:
    """Return the edit that negates a statement's condition, and the statement that tries it.

    The second executes `leave` if the condition does not decide. None: it is no such statement.
    """
    start, end = place
    if code.language == "javascript":
        edits = list(find_conditions(code, start, end))
        if len(edits) != 1 or not _WHOLE.match(code.mask, start, end):
            return None
        return edits[0], f"try {{ {apply_inside(code.text, place, edits)}; {leave}; }} catch {{}}"
    found = _RUST_CONDITION.match(code.mask, start, end) if code.language == "rust" else None
    values = list_arguments(code, found.end()) if found else []
    if found is None or code.pairs[found.end()] != end - 1 or len(values) <= bool(found["ne"]):
        return None
    left, right = (code.read(one) for one in (values * 2)[:2])
    if found["ne"]:
        text = f"match (&({left}), &({right})) {{ (l, r) => if *l == *r {{ {leave}; }} }}"
        edit = Edit(found.span("ne"), "_eq")
    else:
        text, edit = f"if !({left}) {{ {leave}; }}", Edit(values[0], f"!({left})")
    return edit, text + "\n" * (code.read(place).count("\n") - text.count("\n"))


def find_go_conditions(code: MaskedCode, start: int, end: int) -> Iterator[Edit]:
    """Yield edits of conditions before a failure of the test: `if value != LITERAL {`.

    Without an expected literal, other conditions are negated.
    """
    is_found = False
    for pattern in (_GO_CONDITION, _GO_UNEQUAL):
        for found in pattern.finditer(code.mask, start, end if not is_found else start):
            brace = found.end() - 1
            if not _GO_FAILURE.search(code.mask, brace, code.pairs[brace]):
                continue
            if pattern is _GO_UNEQUAL:
                yield (
                    Edit(found.span("sign"), "==") if found["sign"] else Edit(found.span("not"), "")
                )
            elif edit := code.change_literal(found.span("value")):
                is_found = True
                yield edit


def _expect_other_error(code: MaskedCode, start: int, values: Sequence[Place], end: int) -> str:
    """Return the function of an assertion that expects an error.

    It raises none. If the assertion accepts another error than it names, it is the right function, and the test passes.
    """
    none, first = "() => {}", values[0]
    wanted = code.read(values[1]) if len(values) > 1 else ""
    before, after = code.text[start : first[0]], code.text[first[1] : end + 1]
    if not _NAMED_ERROR.match(wanted) or "//" in after or before.startswith(("await", "return")):
        return none
    tried = f"{before}() => {{ throw '{SUFFIX}'; }}{after}".replace("\n", " ")
    right = code.read(first)
    return f"(() => {{ try {{ {tried} }} catch {{ return {none}; }} return {right}; }})()"
