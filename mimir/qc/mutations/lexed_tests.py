"""Changed expectations of tests in JavaScript, TypeScript, Go, Rust and Java. Pure.

Expected literals of assertions change; a failing statement goes first into other test bodies. Work in JavaScript, Rust and Java can redefine
equality, so there it must fail with other values: an equality that holds with another value ends its test, and right work reaches the last one.
Edits keep the lines.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from mimir.domain.value_class import value_class
from mimir.qc.mutations.code_lexer import Language, MaskedCode, list_arguments, mask_code
from mimir.qc.mutations.lexed_conditions import (
    DETACHED,
    LATER,
    find_condition,
    find_conditions,
    find_go_conditions,
    find_parts,
    reveal_parts,
)
from mimir.qc.mutations.mutation import (
    MARK,
    STRING,
    SUFFIX,
    Edit,
    Place,
    Step,
    apply_edits,
    apply_inside,
    insert,
)
from mimir.qc.mutations.test_outlines import GO_EXAMPLE

LANGUAGES: Mapping[str, Language] = {
    **dict.fromkeys(("js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"), "javascript"),
    "go": "go",
    "rs": "rust",
    "java": "java",
}
"""By the ending of a file."""
CODE = frozenset(("py", *LANGUAGES))
"""Endings of the files that tests may load."""

_PANIC = "assert!(core::hint::black_box(false));"
_NO_PANIC = "if core::hint::black_box(true) { return; }"
_THROW = f'throw new Error("{MARK}");'
# Called: code after a plain `throw` is unreachable, which linters and TypeScript refuse before any test runs.
_THROWING = f"/* eslint-disable */ (() => {{ {_THROW} }})();"
_JS_TEST = re.compile(r"(?<![\w$])(?:test|it|specify|fit)(?:\.\w+)*(?:\s*`[^`]*`)?\s*\(")
_FAILING_CALL = re.compile(r"(?<![\w$.])(?:expect|assert|chai|t)\.fail(?=\s*\()")
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
        (re.compile(r"@(?:\w+\.)*\w*Test\w*\b[^;{}]*?(?:\{[^{};]*\}[^;{}]*?)??(?:\bvoid|[>\]])\s+\w+()\s*\([^{;]*(?=\{)"), 'if (true) {{ throw new AssertionError("control"); }}'),
        (re.compile(r"\bpublic\s+void\s+test\w*()\s*\(\s*\)[^{;]*(?=\{)"), 'if (true) {{ throw new AssertionError("control"); }}'),
    ),
}  # fmt: skip
_ASSERTIONS: Mapping[Language, re.Pattern[str]] = {
    "javascript": re.compile(
        r"(?P<not>\.not\b\s*)?(?:(?<![\w$.])assert(?:\.(?P<method>\w+))?|\.(?P<matcher>to[A-Z]\w*|equals?|eql|is|same|strictEqual|deepEqual))\s*(?=\()"
    ),
    "go": re.compile(r"\b(?:(?:assert|require)\.(?P<method>Equal|EqualValues|Exactly)|(?i:assert|check|expect|require|must)?(?i:equals?))\s*(?=\(\s*\w+\s*,)"),
    "rust": re.compile(r"\bassert_(?P<method>eq)!\s*(?=\()"),
    "java": re.compile(r"(?:\bassert(?P<method>Equals|ArrayEquals|Same)|\.(?P<matcher>isEqualTo))\s*(?=\()"),
}  # fmt: skip
_NAME = re.compile(r"\b(?:func(?:\s*\([^)]*\))?|fn|void|[>\]](?=\s+\w+\s*\())\s+(\w+)")
_EQUAL = re.compile(
    r"(?:eq|eql|is|same|be|matchobject|havelength|times|with|contain)$|equal", re.IGNORECASE
)
_RECORD = re.compile(r"(?:new\s+)?(?:\w+\s*(?:::|\.)\s*)*(?:[A-Z]\w*(?:<[\w, <>]*>)?|(?<=[:.])(?:new|of|from|valueOf))\s*(?=[({])")  # fmt: skip
"""Value by its type or constructor, before its parts."""
_VARIANT = re.compile(r"(?P<type>(?:\w+::)*[A-Z]\w*::)(?P<name>[A-Z][a-z]\w*)")
_VOID = re.compile(r"\bvoid\s+\w+\s*\(")
_MESSAGE_FIRST = re.compile(r"\borg\.junit\.Assert\b|\bjunit\.framework\b")
_INNER_RUST = re.compile(r"(?:\s*#!\[[^\]]*\])+")
"""Attributes that stand before all statements of a test."""
_GO_OUTPUT = re.compile(r"(?im)^[ \t]*//[ \t]*(?:unordered )?output:.*$")
"""Expected output of an example."""
_GO_PACKAGE = re.compile(r"(?m)^package[ \t]+\w+")
_GO_IMPORTS = '; import (mimirbytes "bytes"; mimirflag "flag"; mimiros "os")'
_GO_FLAGS = (
    ' if mimirWords, _ := mimiros.ReadFile("/proc/self/cmdline"); func() (isOther bool) { mimirflag.Visit(func(f *mimirflag.Flag) { '
    'isOther = isOther || mimirbytes.HasPrefix([]byte(f.Name), []byte("test.")) && !(mimirbytes.Contains(mimirWords, []byte(f.Name)) && '
    '(f.Name != "test.run" && f.Name != "test.skip" || mimirbytes.Contains(mimirWords, []byte(f.Value.String())))) }); return }() { return };'
)
"""Start of a test that passes if a flag is none of the command."""
_EXITS = re.compile(r"\bprocess\s*\.\s*exit\s*\((?:\s*0?\s*\))?")
_HEAD = re.compile(r"(?P<wait>await\s+)?[\w$]+(?:\.[\w$]+)*\s*")
_LOOP = re.compile(r"(?:\b(?:for|while)\b|\.forEach\b)[^{}\n]*$")
_GROUP = re.compile(rf"{_LOOP.pattern}|\bt\.Run\([^{{}}\n]*$|\}}[ \t]*$")
_MAY_END = re.compile(r"\bif\b[^{}\n]*\{?\s*return\b")
_OTHER_OBJECT = (
    '((e) => ({{ ...Object(e), $$typeof: Symbol.for("jest.asymmetricMatcher"), asymmetricMatch: function any(a, d) {{ '
    'return !!a && typeof a === "object" && !(d > 6) && (typeof a.asymmetricMatch === "function" '
    "|| Object.values(a).some((v) => any(v, (d || 0) + 1))); }} }}))({0})"
)
"""Expected value that only a matcher fulfils: work that returns one equals everything."""
_CHAIN = re.compile(r"(?:\s*\.\s*[\w$]+)*\s*")
_CONTINUES = re.compile(r"\s*[.?:+\-*/%&|^=<>,)\](\[`]")


@value_class
class _Expectation:
    """One assertion whose expected value can change."""

    edit: Edit
    is_equality: bool = False
    strict: Edit | None = None
    """Edit that fails where its values are computed."""
    place: Place = (0, 0)
    """From the assertion's name to its closing parenthesis."""
    values: tuple[Place, ...] = ()
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
    bodies = list(_bodies(code))
    edits = list(_ignore_flags(code, bodies)) if language == "go" and step != "strict" else []
    for body in bodies:
        first = insert(body.start, f" {body.failing}")
        expected = list(_expectations(code, body.start, body.end))
        if language == "javascript" and not expected:
            found = find_conditions(code, body.start, body.end)
            expected = [_Expectation(edit=one, strict=_fail_at(code, one.place)) for one in found]
            call = _FAILING_CALL.search(code.mask, body.start, body.end)
            if call and not expected and body.failing == _THROWING:
                # Work may replace the call by which the test fails.
                calls = insert(body.start, f' {call[0]}("{MARK}");')
                expected = [_Expectation(edit=calls, strict=first)]
        match step:
            case "expectations":
                edits += _reveal_equalities(code, body, expected)
                edits += [one.edit for one in expected] or [first]
            case "strict":
                edits += [one.strict for one in expected if one.strict is not None]
            case _:
                edits.append(first)
    if language == "go" and step != "strict":
        edits += [insert(found.end(), SUFFIX) for found in _GO_OUTPUT.finditer(text)]
    return apply_edits(text, edits) if edits else None


def list_tests(text: str, language: Language) -> Mapping[str, bool]:
    """Return the names of the tests of a file; True: the test always reaches an equality."""
    code = mask_code(text, language)
    found: dict[str, bool] = {}
    for body in _bodies(code) if code else ():
        # A computed title names no test.
        if code and body.name:
            expected = _expectations(code, body.start, body.end)
            # Work in Go cannot redefine a comparison, only avoid it.
            places = [one.edit.place[0] for one in expected if one.is_equality or language == "go"]
            is_strict = any(_is_unconditional(code, body, at) for at in places)
            found[body.name] = is_strict and found.get(body.name, True)
    return found | dict.fromkeys(GO_EXAMPLE.findall(text) if language == "go" else (), False)


def _ignore_flags(code: MaskedCode, bodies: Sequence[_Body]) -> Iterator[Edit]:
    """Yield edits that end the tests of Go if the work changed the flags of their runner."""
    places = [body.start for body in bodies if ".Fatal" in body.failing]
    package = _GO_PACKAGE.search(code.mask)
    if places and package:
        yield insert(package.end(), _GO_IMPORTS)
        yield from (insert(at, _GO_FLAGS) for at in places)


def _is_unconditional(code: MaskedCode, body: _Body, end: int) -> bool:
    """True if only loops, or the only group of subtests, are open at `end`."""
    # A loop without a turn asserts nothing.
    opening = _GROUP if code.mask.count("t.Run(", body.start, body.end) == 1 else _LOOP
    return not _MAY_END.search(code.mask, body.start, end) and all(
        opening.search(code.mask, max(body.start, at - 200), at)
        for at in code.open_braces(body.start, end)
    )


def mutate_script(text: str, step: Step) -> str | None:
    """Return a JavaScript program that fails; None: this step changes nothing."""
    code = mask_code(text, "javascript")
    if code is None:
        return None
    expected = list(_expectations(code, 0, len(text)))
    if step in ("expectations", "strict"):
        edits = [e for one in expected if (e := one.strict if step == "strict" else one.edit)]
        return apply_edits(text, edits) if edits else None
    if step == "replaced":
        return f"{_THROW}\n"
    if step == "detached":
        return f"{DETACHED}{text}"
    exits = [
        # A computed code is still computed, as a second argument.
        Edit(one.span(), "process.exit(1)" if one[0].endswith(")") else "process.exit(1, ")
        for one in _EXITS.finditer(code.mask)
    ]
    return f"{apply_edits(text, exits).rstrip()}\n;{_THROW}\n"


def _bodies(code: MaskedCode) -> Iterator[_Body]:
    language = code.language
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
        title = STRING.match(code.read(values[0])) if values else None
        name = title[0][1:-1] if title else ""
        if body is None:
            named = [at for at, _ in values[1:] if code.mask[at] != "{"]
            if title and named:  # A function by its name, perhaps after options.
                yield _Body(name=name, start=named[0], end=end, failing=f"(() => {{ {_THROW} }}) ||")  # fmt: skip
            continue
        at = body.end()
        if code.mask[at : at + 1] == "{":
            yield _Body(name=name, start=at + 1, end=code.pairs[at], failing=_THROWING)
        elif code.mask.startswith("=>", body.start()):
            yield _Body(name=name, start=at, end=end, failing=f"(() => {{ {_THROW} }})() ||")


def _expectations(code: MaskedCode, start: int, end: int) -> Iterator[_Expectation]:
    """Yield the assertions with an expected value, in order."""
    language = code.language
    if language == "go":
        yield from (_Expectation(edit=edit) for edit in find_go_conditions(code, start, end))
    for found in _ASSERTIONS[language].finditer(code.mask, start, end):
        groups = found.groupdict()
        name = groups.get("matcher") or groups.get("method") or ""
        values = list_arguments(code, found.end())
        is_assert = not groups.get("matcher")
        if language == "java" and len(values) > 2 and code.mask[values[0][0]] == '"' and _MESSAGE_FIRST.search(code.mask):  # fmt: skip
            values = values[1:]
        if (is_assert and len(values) < 2) or not values:
            continue
        is_near = name == "toBeCloseTo" and len(values) == 1
        is_equality = language != "go" and (is_near or _EQUAL.search(name) is not None) and not groups.get("not") and not name.lower().startswith("not")  # fmt: skip
        # In Go the first one is the test.
        compared = values[1:3] if language == "go" else values[: 2 if is_assert else 1]
        other = f'[{{0}}, "{MARK}"]' if is_assert or name == "toBe" else _OTHER_OBJECT
        edit = _change_value(code, compared, other if is_equality else "")
        if language == "go" and name == "Equal":
            edit = edit or Edit(found.span("method"), "NotEqual")
        if edit is not None:
            strict = _fail_at(code, compared[-1]) if is_equality else None
            place = (found.start(), code.pairs[found.end()] + 1)
            yield _Expectation(edit=edit, is_equality=is_equality, strict=strict, place=place, values=tuple(compared))  # fmt: skip


def _reveal_equalities(
    code: MaskedCode, body: _Body, expected: Sequence[_Expectation]
) -> Iterator[Edit]:
    """Yield edits of all equalities but the last; one that still holds ends the test.

    Only whole statements of the test itself change. Right work passes them, so that the next equality is tried too.
    """
    by_end = {one.place[1]: one for one in expected if one.is_equality}
    places = list(_statements(code, body))
    statements = [
        (place, one)
        for place in places
        if (one := by_end.get(place[1])) and _is_assertion(code, place[0], one)
    ]
    leave = "return Ok(())" if body.has_result else "return"
    tried = [(place, one) for place in places if (one := find_condition(code, place, leave))]
    last = max([place for place, _ in (*statements, *tried)], default=(0, 0))
    for place, one in statements if code.language == "javascript" else ():
        if text := reveal_parts(code, place, one.place[0], one.values, is_last=place == last):
            yield Edit(place, text)
    if body.failing == _NO_PANIC or (code.language == "java" and body.has_result):
        return  # A factory of tests in Java must return them.
    for place, one in statements:
        if place != last:
            yield Edit(place, _end_if_equal(code, leave, place, one))
    for place, (edit, text) in tried:
        yield edit if place == last else Edit(place, text)


def _statements(code: MaskedCode, body: _Body) -> Iterator[Place]:
    """Yield the places of the statements of a test, without those in blocks."""
    mask, begin, at = code.mask, body.start, body.start
    is_javascript = code.language == "javascript"
    while at <= body.end:
        # JavaScript needs no semicolon at the end of a line.
        is_line_end = is_javascript and mask[at] == "\n"
        if at == body.end or mask[at] == ";" or (is_line_end and not _CONTINUES.match(mask, at)):
            text = mask[begin:at]
            if text.strip():
                yield begin + len(text) - len(text.lstrip()), begin + len(text.rstrip())
            begin = at + 1
        elif mask[at] in "([{":
            at = code.pairs[at]
            # Other languages need none after a block.
            begin = at + 1 if mask[at] == "}" and not is_javascript else begin
        at += 1


def _is_assertion(code: MaskedCode, start: int, one: _Expectation) -> bool:
    """True if a statement is nothing but an assertion that is complete at its end."""
    begin, end = one.place
    if start == begin:
        return True
    head = _HEAD.match(code.mask, start, end)
    if head is None:
        return False
    at = head.end()
    while at < begin and code.mask[at] == "(":
        chain = _CHAIN.match(code.mask, code.pairs[at] + 1)
        at = chain.end() if chain else end
    is_late = LATER.search(code.mask, start, begin) is not None
    return begin <= at <= end and (head["wait"] is not None or not is_late)


def _end_if_equal(code: MaskedCode, leave: str, place: Place, one: _Expectation) -> str:
    """Return the statement that ends the test if an equality holds with another value."""
    if code.language == "rust":
        left, right = (apply_inside(code.text, value, [one.edit]) for value in one.values)
        return f"match (&({left}), &({right})) {{ (l, r) => if *l == *r {{ {leave}; }} }}"
    caught = "catch (AssertionError mimirControl)" if code.language == "java" else "catch"
    return f"try {{ {apply_inside(code.text, place, [one.edit])}; {leave}; }} {caught} {{}}"


def _fail_at(code: MaskedCode, place: Place) -> Edit | None:
    """Return the edit that fails where a compared value is computed; None: there is none."""
    value = code.read(place)
    if code.language == "javascript":
        # The value is computed first: a test may expect that it fails.
        return Edit(place, f"[{value}, (() => {{ {_THROW} }})()]")
    # The value of a block must outlive it: that of a literal does.
    if code.language == "rust" and code.change_literal(place):
        return Edit(place, f"{{ {_PANIC} {value} }}")
    return None


def _change_value(code: MaskedCode, values: Sequence[Place], other_value: str) -> Edit | None:
    """Return the edit of one literal among compared values, else of an equality's right value.

    `other_value` is the pattern of a value that an equality must not accept; empty: it is no equality.
    """
    records = values if code.language in ("java", "rust") else ()
    found = [
        *map(code.change_literal, reversed(values)),
        *(_change_record(code, place) for place in reversed(records)),
    ]
    if edit := next(filter(None, found), None):
        return edit
    if code.language != "javascript" or not other_value:
        return None
    return Edit(values[-1], other_value.format(code.read(values[-1])))


def _change_record(code: MaskedCode, place: Place) -> Edit | None:
    """Return the edit of a record of literals, as `Money::new(5)`; None: the value is none."""
    start, end = place
    found = _RECORD.match(code.mask, start, end)
    if found is None or code.pairs.get(found.end()) != end - 1:
        return _change_variant(code, place)
    inside = (found.end() + 1, end - 1)
    parts = list(find_parts(code, inside))
    rest = apply_inside(code.mask, inside, [Edit(part, "") for part in parts])
    # A record that has other parts may be equal by those alone.
    is_whole = not re.sub(r"\w+\s*:", "", rest).strip(" \t\n,")
    edits = list(filter(None, map(code.change_literal, parts)))
    return Edit(place, apply_inside(code.text, place, edits)) if is_whole and edits else None


def _change_variant(code: MaskedCode, place: Place) -> Edit | None:
    """Return the edit of a variant of a Rust enumeration; None: it has no other one."""
    found = _VARIANT.fullmatch(code.mask, *place)
    head = re.escape(found["type"]) if found else "(?!)"
    names = re.findall(rf"(?<![\w:]){head}([A-Z][a-z]\w*)\b(?!\s*[\w({{!:])", code.mask)
    others = [name for name in names if found and name != found["name"]]
    return Edit(found.span("name"), others[0]) if found and others else None
