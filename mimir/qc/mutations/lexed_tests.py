"""Changed expectations of tests in JavaScript, TypeScript, Go, Rust and Java. Pure.

Expected literals of assertions change; a failing statement goes first into other test bodies. Work in JavaScript, Rust and Java can redefine
equality, so there it must fail with other values: an equality that holds with another value ends its test, and right work reaches the last one.
Edits keep the lines.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mimir.domain.value_class import value_class
from mimir.qc.mutations.code_lexer import Language, MaskedCode, list_arguments, mask_code
from mimir.qc.mutations.javascript_values import (
    find_conditions,
    find_container,
    find_parts,
    reveal_parts,
)
from mimir.qc.mutations.mutation import (
    MARK,
    STRING,
    SUFFIX,
    Edit,
    Step,
    apply_edits,
    other_literal,
)

LANGUAGES: Mapping[str, Language] = {
    **dict.fromkeys(("js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"), "javascript"),
    "go": "go",
    "rs": "rust",
    "java": "java",
}
"""By the ending of a file."""

_PANIC = "assert!(core::hint::black_box(false));"
_NO_PANIC = "if core::hint::black_box(true) { return; }"
_THROW = f'throw new Error("{MARK}");'
_JS_TEST = re.compile(r"(?<![\w$])(?:test|it|specify|fit)(?:\.\w+)*(?:\s*`[^`]*`)?\s*\(")
_JS_BODY = re.compile(r"(?:=>|\bfunction\b[^(]*\([^)]*\))\s*")
_TESTS: Mapping[Language, tuple[tuple[re.Pattern[str], str], ...]] = {
    "go": (
        (re.compile(r"^func\s+(?:Test|Fuzz)\w*\s*\(\s*(\w+)\s+\*testing\.[TF]\s*\)\s*(?=\{)", re.M), "{0}.Fatal(\"control\");"),
        (re.compile(r"^func\s*\(\s*\w*\s*\*?\w+\s*\)\s*Test\w*\s*\(()\s*\)\s*(?=\{)", re.M), 'panic("control");'),
    ),
    "rust": (
        # A macro can compute the name: `fn $name`, `fn [<test_ $name>]`.
        # `black_box`: a plain `panic!` makes the rest unreachable, which a crate may deny.
        (re.compile(r"#\[(?:\w+::)*\w*test\w*(?:\[[^\]]*\]|[^\]\[])*\](?:\s*#\[(?:\[[^\]]*\]|[^\]\[])*\])*\s*(?:pub\s+)?(?:async\s+)?fn\s+(?:\$?\w+|\[<[^{;]*>\])()[^{;]*(?=\{)"), _PANIC),
    ),
    "java": (
        (re.compile(r"@(?:\w+\.)*\w*Test\w*\b[^;{}]*?(?:\{[^{};]*\}[^;{}]*?)??(?:\bvoid|[>\]])\s+\w+()\s*\([^{;]*(?=\{)"), 'if (true) throw new AssertionError("control");'),
        (re.compile(r"\bpublic\s+void\s+test\w*()\s*\(\s*\)[^{;]*(?=\{)"), 'if (true) throw new AssertionError("control");'),
    ),
}  # fmt: skip
_ASSERTIONS: Mapping[Language, re.Pattern[str]] = {
    "javascript": re.compile(
        r"(?P<not>\.not\b\s*)?(?:(?<![\w$.])assert(?:\.(?P<method>\w+))?|\.(?P<matcher>to[A-Z]\w*|equals?|eql|is|same|strictEqual|deepEqual))\s*(?=\()"
    ),
    "go": re.compile(r"\b(?:assert|require)\.(?P<method>Equal|EqualValues|Exactly)\s*(?=\()"),
    "rust": re.compile(r"\bassert_(?P<method>eq)!\s*(?=\()"),
    "java": re.compile(r"(?:\bassert(?P<method>Equals|ArrayEquals|Same)|\.(?P<matcher>isEqualTo))\s*(?=\()"),
}  # fmt: skip
_NAME = re.compile(r"\b(?:func(?:\s*\([^)]*\))?|fn|void|[>\]](?=\s+\w+\s*\())\s+(\w+)")
_EQUAL = re.compile(r"(?:eq|eql|is|same|be|matchobject)$|equal", re.IGNORECASE)
_GO_CONDITION = re.compile(r"\bif\b[^{}\n]*!=\s*(?P<value>\"[^\"\n]*\"|-?[\w.]+)\s*\{")
_RECORD = re.compile(r"(?:new\s+)?(?:\w+\s*(?:::|\.)\s*)*(?:[A-Z]\w*(?:<[\w, <>]*>)?|(?<=[:.])(?:new|of|from|valueOf))\s*(?=[({])")  # fmt: skip
"""Value by its type or constructor, before its parts."""
_VOID = re.compile(r"\bvoid\s+\w+\s*\(")
_MESSAGE_FIRST = re.compile(r"\borg\.junit\.Assert\b|\bjunit\.framework\b")
_INNER_RUST = re.compile(r"(?:\s*#!\[[^\]]*\])+")
"""Attributes that stand before all statements of a test."""
_GO_OUTPUT = re.compile(r"(?im)^[ \t]*//[ \t]*(?:unordered )?output:.*$")
"""Expected output of an example."""
_GO_FAILURE = re.compile(r"\.(?:Fatal|Error|Fail)")
_EXITS = re.compile(r"\bprocess\s*\.\s*exit\s*\((?:\s*0?\s*\))?")


_HEAD = re.compile(r"(?P<wait>await\s+)?[\w$]+(?:\.[\w$]+)*\s*")
_LOOP = re.compile(r"(?:\b(?:for|while)\b|\.forEach\b)[^{}\n]*$")
_MAY_END = re.compile(r"\bif\b[^{}\n]*\{?\s*return\b")
_OTHER_OBJECT = (
    '((e) => ({{ ...Object(e), $$typeof: Symbol.for("jest.asymmetricMatcher"), asymmetricMatch: function any(a, d) {{ '
    'return !!a && typeof a === "object" && !(d > 6) && (typeof a.asymmetricMatch === "function" '
    "|| Object.values(a).some((v) => any(v, (d || 0) + 1))); }} }}))({0})"
)
"""Expected value that only a matcher fulfils: work that returns one equals everything."""
_CHAIN = re.compile(r"(?:\s*\.\s*[\w$]+)*\s*")
_EXPECT = re.compile(r"(?:await\s+)?expect\s*(?=\()")
_LATER = re.compile(r"\.\s*(?:resolves|rejects)\b")
_CONTINUES = re.compile(r"\s*[.?:+\-*/%&|^=<>,)\](\[`]")


@value_class
class _Expectation:
    """One assertion whose expected value can change."""

    edit: Edit
    is_equality: bool = False
    strict: Edit | None = None
    """Edit that fails where its values are computed."""
    start: int = 0
    """Place of the assertion's name."""
    end: int = 0
    """Place after its closing parenthesis."""
    values: tuple[tuple[int, int], ...] = ()
    """Places of its compared values."""


@value_class
class _Body:
    """Body of one test."""

    name: str
    """Name or title; empty: it is computed."""
    start: int
    """Place after its opening brace."""
    end: int
    failing: str
    """The statement that fails."""
    has_result: bool = False
    """True: its function returns a value (Rust, Java)."""


def mutate_tests(text: str, language: Language, step: Step) -> str | None:
    """Return a test file with failing tests; None: this step changes nothing.

    A file that the lexer cannot read fails as a whole: its runner may understand it.
    """
    code = mask_code(text, language)
    if code is None:
        line = _THROW if language == "javascript" else f"{MARK} )"
        return None if step == "strict" else f"{line}\n{text}"
    edits: list[Edit] = []
    for body in _bodies(code, language):
        first = Edit(start=body.start, end=body.start, text=f" {body.failing}")
        expected = list(_expectations(code, language, body.start, body.end))
        if language == "javascript" and not expected:
            expected = list(_conditions(code, body.start, body.end))
        match step:
            case "expectations":
                edits += _reveal_equalities(code, body, language, expected)
                edits += [one.edit for one in expected] or [first]
            case "strict":
                edits += [one.strict for one in expected if one.strict is not None]
            case _:
                edits.append(first)
    if language == "go" and step != "strict":
        places = [found.end() for found in _GO_OUTPUT.finditer(text)]
        edits += [Edit(start=at, end=at, text=SUFFIX) for at in places]
    return apply_edits(text, edits) if edits else None


def list_tests(text: str, language: Language) -> Mapping[str, bool]:
    """Return the names of the tests of a file; True: the test always reaches an equality."""
    code = mask_code(text, language)
    found: dict[str, bool] = {}
    for body in _bodies(code, language) if code else ():
        # A computed title names no test.
        if code and body.name:
            expected = _expectations(code, language, body.start, body.end)
            # Work in Go cannot redefine a comparison, only avoid it.
            places = [one.edit.start for one in expected if one.is_equality or language == "go"]
            is_strict = any(_is_unconditional(code, body.start, at) for at in places)
            found[body.name] = is_strict and found.get(body.name, True)
    return found


def _is_unconditional(code: MaskedCode, start: int, end: int) -> bool:
    """True if only loops are open at `end`: one without a turn asserts nothing."""
    may_end = _MAY_END.search(code.mask, start, end)
    return not may_end and all(
        _LOOP.search(code.mask, max(start, at - 200), at) for at in code.open_braces(start, end)
    )


def mutate_script(text: str, step: Step) -> str | None:
    """Return a JavaScript program that fails; None: this step changes nothing."""
    code = mask_code(text, "javascript")
    if code is None:
        return None
    expected = list(_expectations(code, "javascript", 0, len(text)))
    if step in ("expectations", "strict"):
        changed = [one.strict if step == "strict" else one.edit for one in expected]
        edits = [edit for edit in changed if edit is not None]
        return apply_edits(text, edits) if edits else None
    if step == "replaced":
        return f"{_THROW}\n"
    exits = [
        # A computed code is still computed, as a second argument.
        Edit(
            start=one.start(),
            end=one.end(),
            text="process.exit(1)" if one[0].endswith(")") else "process.exit(1, ",
        )
        for one in _EXITS.finditer(code.mask)
    ]
    return f"{apply_edits(text, exits).rstrip()}\n;{_THROW}\n"


def _bodies(code: MaskedCode, language: Language) -> Iterator[_Body]:
    if language == "javascript":
        yield from _javascript_bodies(code)
        return
    for pattern, failing in _TESTS[language]:
        for found in pattern.finditer(code.mask):
            parameter = found[1]
            statement = 'panic("control");' if parameter == "_" else failing.format(parameter)
            if "should_panic" in found[0]:
                statement = _NO_PANIC
            start, end = found.end() + 1, code.pairs[found.end()]
            if language == "rust" and (inner := _INNER_RUST.match(code.mask, start)):
                start = inner.end()
            name = (_NAME.findall(found[0]) or [""])[-1]
            yield _Body(name=name, start=start, end=end, failing=statement, has_result="->" in found[0] or (language == "java" and not _VOID.search(found[0])))  # fmt: skip


def _javascript_bodies(code: MaskedCode) -> Iterator[_Body]:
    for found in _JS_TEST.finditer(code.mask):
        start = found.end() - 1
        end = code.pairs[start]
        # `test.each(cases)(name, body)`
        if code.mask[end + 1 : end + 2] == "(":
            start, end = end + 1, code.pairs[end + 1]
        body = _JS_BODY.search(code.mask, start, end)
        values = list_arguments(code, start)
        title = STRING.match(code.text[slice(*values[0])]) if values else None
        name = title[0][1:-1] if title else ""
        if body is None:
            named = [at for at, _ in values[1:] if code.mask[at] != "{"]
            if title and named:  # A function by its name, perhaps after options.
                yield _Body(name=name, start=named[0], end=end, failing=f"(() => {{ {_THROW} }}) ||")  # fmt: skip
            continue
        at = body.end()
        if code.mask[at : at + 1] == "{":
            yield _Body(name=name, start=at + 1, end=code.pairs[at], failing=_THROW)
        elif code.mask.startswith("=>", body.start()):
            yield _Body(name=name, start=at, end=end, failing=f"(() => {{ {_THROW} }})() ||")


def _expectations(
    code: MaskedCode, language: Language, start: int, end: int
) -> Iterator[_Expectation]:
    """Yield the assertions with an expected value, in order."""
    if language == "go":
        yield from (_Expectation(edit=edit) for edit in _go_conditions(code, start, end))
    for found in _ASSERTIONS[language].finditer(code.mask, start, end):
        groups = found.groupdict()
        name = groups.get("matcher") or groups.get("method") or ""
        values = list_arguments(code, found.end())
        is_assert = not groups.get("matcher")
        # `assertEquals("adds", expected, actual)`
        if language == "java" and len(values) > 2 and code.mask[values[0][0]] == '"' and _MESSAGE_FIRST.search(code.mask):  # fmt: skip
            values = values[1:]
        if (is_assert and len(values) < 2) or not values:
            continue
        # Work in Go cannot redefine a comparison.
        is_equality = language != "go" and _EQUAL.search(name) is not None and not groups.get("not") and not name.lower().startswith("not")  # fmt: skip
        compared = values[: 2 if is_assert else 1]
        other = f'[{{0}}, "{MARK}"]' if is_assert or name == "toBe" else _OTHER_OBJECT
        edit = _change_value(code, compared, language, other if is_equality else "")
        if edit is not None:
            strict = _fail_at(code, *compared[-1], language) if is_equality else None
            place = (found.start(), code.pairs[found.end()] + 1)
            yield _Expectation(edit=edit, is_equality=is_equality, strict=strict, start=place[0], end=place[1], values=tuple(compared))  # fmt: skip


def _conditions(code: MaskedCode, start: int, end: int) -> Iterator[_Expectation]:
    for place, text in find_conditions(code, start, end):
        edit = Edit(start=place[0], end=place[1], text=text)
        yield _Expectation(edit=edit, strict=_fail_at(code, *place, "javascript"))


def _reveal_equalities(
    code: MaskedCode, body: _Body, language: Language, expected: Sequence[_Expectation]
) -> Iterator[Edit]:
    """Yield edits of all equalities but the last; one that still holds ends the test.

    Only whole statements of the test itself change. Right work passes them, so that the next equality is tried too.
    """
    by_end = {one.end: one for one in expected if one.is_equality}
    statements = [
        (start, one)
        for start, end in _statements(code, body, language)
        if (one := by_end.get(end)) and _is_assertion(code, start, one)
    ]
    for start, one in statements if language == "javascript" else ():
        if text := _reveal_parts(code, start, one, is_last=one is statements[-1][1]):
            yield Edit(start=start, end=one.end, text=text)
    # A factory of tests in Java must return them.
    is_factory = language == "java" and body.has_result
    for start, one in statements[:-1] if body.failing != _NO_PANIC and not is_factory else ():
        text = _end_if_equal(code, language, start, one)
        if language == "rust":
            text = text.format("return Ok(())" if body.has_result else "return")
        yield Edit(start=start, end=one.end, text=text)


def _reveal_parts(code: MaskedCode, start: int, one: _Expectation, *, is_last: bool) -> str | None:
    """Return the statement that tries each part of an expected container.

    The last one of a test fails then, with all parts changed.
    """
    container = find_container(code, one.values)
    actual = one.values[0] if len(one.values) == 2 else None
    if found := _EXPECT.match(code.mask, start):
        actual = next(iter(list_arguments(code, found.end())), None)
    if container is None or actual is None or _LATER.search(code.mask, start, one.start):
        return None
    first, last = container
    edits = [
        Edit(start=a - first, end=b - first, text=other)
        for a, b in find_parts(code, container)
        if (other := other_literal(code.text[a:b], code.mask[a:b], has_characters=False))
    ]
    text = code.text[first:last]
    others = [apply_edits(text, [edit]) for edit in edits]
    head = reveal_parts(code, (start, one.end), actual, container, others)
    if head is None:
        return None
    middle, rest = code.text[actual[1] : first], code.text[last : one.end]
    changed = f"{code.text[start : actual[0]]}mimirActual{middle}{apply_edits(text, edits)}{rest}"
    changed = changed if is_last else ""
    lines = code.text[start : one.end].count("\n") - changed.count("\n")
    return f"{head}{changed}{chr(10) * lines} }}"


def _statements(code: MaskedCode, body: _Body, language: Language) -> Iterator[tuple[int, int]]:
    """Yield the places of the statements of a test, without those in blocks."""
    mask, begin, at = code.mask, body.start, body.start
    while at <= body.end:
        # JavaScript needs no semicolon at the end of a line.
        is_line_end = language == "javascript" and mask[at] == "\n"
        if at == body.end or mask[at] == ";" or (is_line_end and not _CONTINUES.match(mask, at)):
            text = mask[begin:at]
            if text.strip():
                yield begin + len(text) - len(text.lstrip()), begin + len(text.rstrip())
            begin = at + 1
        elif mask[at] in "([{":
            at = code.pairs[at]
            # Other languages need none after a block.
            begin = at + 1 if mask[at] == "}" and language != "javascript" else begin
        at += 1


def _is_assertion(code: MaskedCode, start: int, one: _Expectation) -> bool:
    """True if a statement is nothing but an assertion that is complete at its end."""
    if start == one.start:
        return True
    head = _HEAD.match(code.mask, start, one.end)
    if head is None:
        return False
    at = head.end()
    while at < one.start and code.mask[at] == "(":
        chain = _CHAIN.match(code.mask, code.pairs[at] + 1)
        at = chain.end() if chain else one.end
    is_late = _LATER.search(code.mask, start, one.start) is not None
    return at >= one.start and at <= one.end and (head["wait"] is not None or not is_late)


def _end_if_equal(code: MaskedCode, language: Language, start: int, one: _Expectation) -> str:
    """Return the statement that ends the test if an equality holds with another value."""

    def changed(begin: int, end: int) -> str:
        inner = replace(one.edit, start=one.edit.start - begin, end=one.edit.end - begin)
        is_inside = begin <= one.edit.start and one.edit.end <= end
        return apply_edits(code.text[begin:end], [inner] if is_inside else [])

    if language == "rust":
        left, right = (
            changed(*place).replace("{", "{{").replace("}", "}}") for place in one.values
        )
        return f"match (&({left}), &({right})) {{{{ (l, r) => if *l == *r {{{{ {{}}; }}}} }}}}"
    caught = "catch (AssertionError mimirControl)" if language == "java" else "catch"
    return f"try {{ {changed(start, one.end)}; return; }} {caught} {{}}"


def _go_conditions(code: MaskedCode, start: int, end: int) -> Iterator[Edit]:
    """Yield edits of `if value != LITERAL {` before a failure of the test."""
    for found in _GO_CONDITION.finditer(code.mask, start, end):
        brace = found.end() - 1
        if _GO_FAILURE.search(code.mask, brace, code.pairs[brace]):
            place = found.span("value")
            if other := other_literal(code.text[slice(*place)], code.mask[slice(*place)]):
                yield Edit(start=place[0], end=place[1], text=other)


def _fail_at(code: MaskedCode, start: int, end: int, language: Language) -> Edit | None:
    """Return the edit that fails where a compared value is computed; None: there is none."""
    value = code.text[start:end]
    if language == "javascript":
        # The value is computed first: a test may expect that it fails.
        return Edit(start=start, end=end, text=f"[{value}, (() => {{ {_THROW} }})()]")
    # The value of a block must outlive it: that of a literal does.
    if language == "rust" and other_literal(value, code.mask[start:end]):
        return Edit(start=start, end=end, text=f"{{ {_PANIC} {value} }}")
    return None


def _change_value(
    code: MaskedCode, values: list[tuple[int, int]], language: Language, other_value: str
) -> Edit | None:
    """Return the edit of one literal among compared values, else of an equality's right value.

    `other_value` is the pattern of a value that an equality must not accept; empty: it is no equality.
    """
    for start, end in reversed(values):
        is_char = language != "javascript"
        text, mask = code.text[start:end], code.mask[start:end]
        if other := other_literal(text, mask, has_characters=is_char):
            return Edit(start=start, end=end, text=other)
    for start, end in reversed(values) if language in ("java", "rust") else ():
        if other := _change_record(code, start, end):
            return Edit(start=start, end=end, text=other)
    if language != "javascript" or not other_value:
        return None
    start, end = values[-1]
    return Edit(start=start, end=end, text=other_value.format(code.text[start:end]))


def _change_record(code: MaskedCode, start: int, end: int) -> str:
    """Return another record of literals, as `Money::new(5)`; empty: the value is none."""
    found = _RECORD.match(code.mask, start, end)
    if found is None or code.pairs.get(found.end()) != end - 1:
        return ""
    edits = [
        Edit(start=a - start, end=b - start, text=other_literal(code.text[a:b], code.mask[a:b]))
        for a, b in find_parts(code, (found.end() + 1, end - 1))
    ]
    blank = [replace(edit, text="") for edit in edits]
    rest = apply_edits(code.mask[start:end], blank)[found.end() - start + 1 : -1]
    # A record that has other parts may be equal by those alone.
    is_whole = edits and not re.sub(r"\w+\s*:", "", rest).strip(" \t\n,")
    return apply_edits(code.text[start:end], edits) if is_whole else ""
