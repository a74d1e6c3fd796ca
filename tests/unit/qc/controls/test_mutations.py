"""Changes of a control in a test file: expected values, first statements, ends of scripts."""

import ast
from pathlib import Path

import pytest

from mimir.qc.controls import scripts
from mimir.qc.controls.inline_programs import count_programs, mutate_command, mutate_program
from mimir.qc.controls.surface import TrustedFiles, mutate_tests
from mimir.qc.integrity.command_line import find_programs
from mimir.qc.mutations import lexed_tests, python_tests
from mimir.qc.mutations.code_lexer import Language, mask_code
from mimir.qc.mutations.doctests import fail_examples

COMPARE = '__import__("mimir_compare")'
SKIP = '(_ for _ in ()).throw(__import__("unittest").SkipTest("control"))'
THROW = '(_ for _ in ()).throw(AssertionError("control"))'
EXPECTATIONS = {
    "number": ("assert f() == 3", "assert f() == 4"),
    "negative": ("assert f() == -3", "assert f() == -4"),
    "text": ('assert f() == "a"', 'assert f() == ("a" "zq7")'),
    "several lines": ('assert f() == """a\nb"""', 'assert f() == ("""a\nb""" "zq7")'),
    "boolean": ("assert f() is True", "assert f() is False"),
    "left literal": ("assert 3 == f()", "assert 4 == f()"),
    "display": ("assert f() == [{'a': 2}]", "assert f() == [{'a': 3}]"),
    "display of several values": ("assert f() == [1, 2]", f'assert {COMPARE}.holds((f()), "==", ([1, 2]))'),
    "empty display": ("assert f() == []", "assert f() == [7919]"),
    "variable": ("assert f() == wanted", f'assert {COMPARE}.holds((f()), "==", (wanted))'),
    "order": ("assert f() <= 3", f'assert {COMPARE}.holds((f()), "<=", (3))'),
    "member": ("assert 3 in f(\n        1)", f'assert {COMPARE}.holds((3), "in", (f(\n        1)))'),
    "orders": ("assert 0 < f() < 3", 'assert 0 < f() < (3, "control")'),
    "negation": ("assert not f() != 3", "assert not f() != 4"),
    "condition": ("if f() != 3: self.fail()", "if f() != 4: self.fail()"),
    "generator": ("assert all(f(x) == 3 for x in y)", "assert all(f(x) == 4 for x in y)"),
    "condition of a method": ("self.assertTrue(f() == 3, 'no')", "self.assertTrue(f() == 4, 'no')"),
    "member of a method": ("self.assertIn(3, f())", 'self.assertIn((3, "control"), f())'),
    "first of two": ("self.assertEqual(f(), 3); assert f() == 4", f"not ({COMPARE}.passes(self.assertEqual, f(), 4)) or {SKIP}; assert f() == 5"),
    "both": ("assert a == 1 and b == 2", "assert a == 2 and b == 3"),
    "call": ("assert len(x) == 2 + len(range(9))", f'assert {COMPARE}.holds((len(x)), "==", (2 + len(range(9))))'),
    "method": ("self.assertEqual(f(), 3)", "self.assertEqual(f(), 4)"),
    "method of a variable": ("self.assertEqual(f(), x)", f"self.assertEqual(*{COMPARE}.pick(f(), x))"),
    "expected call": ("seen.assert_called_with(a, 3)", "seen.assert_called_with(a, 4)"),
    "start of a text": ("assert f().startswith('a')", "assert f().startswith(('a' \"zq7\"))"),
    "no expectation": ("assert f()", 'raise AssertionError("control"); assert f()'),
    "raises": ("with raises(E): f(3)", f"{COMPARE}.ignores(lambda: raises(E), E) or {THROW}\n    with raises(E): f(3)"),
    "raises first": ("with raises(E): f(3)\n    assert f() == 4", f"not {COMPARE}.ignores(lambda: raises(E), E) or {SKIP}\n    with raises(E): f(3)\n    assert f() == 5"),
    "match": ("match f():\n        case 3: pass\n        case _: assert False", "match f():\n        case 4: pass\n        case _: assert False"),
    "raises by a call": ("self.assertRaises(E, f, 3)", "self.assertRaises(E, int)"),
    "tolerance": ("assert f() == approx(3)", "assert f() == approx(7922)"),
    "near": ("assert isclose(f(), 3)", "assert isclose(f(), 7922)"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after"), EXPECTATIONS.values(), ids=EXPECTATIONS.keys())
def test_python_expectations_change_to_values_of_the_same_type(before: str, after: str):
    found = python_tests.mutate_tests(f"def test_a():\n    {before}\n", "expectations")
    assert found == f"def test_a():\n    {after}\n"
    ast.parse(found or "")


STRICT = {
    "assert f() == 3": True,
    "assert f() == x": True,
    "self.assertEqual(f(), 3)": True,
    "assert f() != 3": False,
    "assert f() > 3": True,
    "assert not f() != 3": True,
    "if f() != 3: raise AssertionError": True,
    "if f() != 3: raise Retry": False,
    "self.assertGreaterEqual(f(), 3)": True,
    "with raises(E): f()": True,
    "self.assertRaises(E, f)": True,
    "assert f()": False,
    "assert f() == 3 or g() == 4": True,
    "assert f() == 3 or g()": False,
    "for x in xs: assert f(x) == 3": True,
    "if x: self.assertEqual(f(), 3)": True,
}


@pytest.mark.parametrize(("body", "is_strict"), STRICT.items())
def test_only_a_comparison_fails_where_it_is_reached(body: str, is_strict: bool):
    found = python_tests.mutate_tests(f"def test_a():\n    {body}\n", "strict")

    assert (found is not None) is is_strict


def test_all_kinds_of_python_tests_get_a_failing_statement():
    text = (
        "def helper(x):\n    assert x == 1\n\n\nasync def test_a(): pass\n\n\nclass T(TestCase):\n"
        '    @deco\n    def test_b(self):\n        """Doc."""\n        é = 1; self.assertEqual(é, 1)\n'
    )

    found = python_tests.mutate_tests(text, "statements") or ""

    assert found.count("raise AssertionError") == 2
    assert found.count("\n") == text.count("\n")
    ast.parse(found)


@pytest.mark.parametrize("text", ["x = 1\n", "", "def test_a(:\n"])
def test_file_without_tests_is_kept_and_an_unreadable_one_fails(text: str):
    whole = f'raise AssertionError("control")\n{text}' if "(:" in text else None
    assert python_tests.mutate_tests(text, "expectations") == whole


GO = "package a\nfunc TestAdd(t *testing.T) {\n\tt.Run(\"{\", func(t *testing.T) {})\n}\nfunc TestMain(m *testing.M) {}\n"  # fmt: skip
RUST = "fn f<'a>() -> char { '{' }\n#[cfg(test)]\nmod tests {\n  #[test]\n  fn t() { assert_eq!(f(), 5u8); }\n  #[test] #[should_panic]\n  fn p() {}\n}\n"  # fmt: skip
JAVA = "class A {\n  @Test void adds() throws E { assertEquals(5, add()); }\n}\n"
JS = "// it's\ntest('a {', async () => {\n  assert.strictEqual(add(2), 5);\n});\nit('b', () => expect(g(/[}'/]/)).toBe(x));\n"  # fmt: skip
LEXED = {
    "go": (GO, " t.Fatal(\"control\");\n\tt.Run"),
    "rust": (RUST, "assert_eq!(f(), 6u8)"),
    "java": (JAVA, "assertEquals(6, add())"),
    "javascript": (JS, "assert.strictEqual(add(2), 6)"),
}  # fmt: skip

VARIANT = (
    "#[test]\nfn t() { assert_eq!(f(L::Red, L::Mix(1)), L::Green); }\n",
    "L::Mix(1)), L::Red)",
)
JAVA_FORMS = [
    ("@Test void a() { assertEquals(3, f()); }\n@Test void b() { assertEquals(5, f()); }", "assertEquals(4, f()"),
    ("@TestFactory Stream<T> a() { assertEquals(3, f()); assertEquals(5, f()); return g(); }", "{ assertEquals(4, f()); assertEquals(6"),
    ('import org.junit.Assert;\n@Test void a() { assertEquals("adds", 3, f()); }', 'assertEquals("adds", 4, f()'),
    ('@Test void a() { assertEquals(new Money(5, "EUR"), f()); }', 'new Money(6, "EURzq7")'),
    ("@Test void a() { assertEquals(new Money(id, 5), f()); }", "new Money(id, 5)"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "case"), [*LEXED.items(), *(("java", one) for one in JAVA_FORMS), ("rust", VARIANT)])  # fmt: skip
def test_expectations_change_in_other_languages(language: Language, case: tuple[str, str]):
    found = lexed_tests.mutate_tests(case[0], language, "expectations") or ""
    assert case[1] in found
    assert found.count("\n") == case[0].count("\n")


FORMS = [
    ("go", "func ExampleAdd() {\n\tf()\n\t// Output:\n\t// 5\n}\n", "// Output:zq7\n"),
    ("go", "func FuzzAdd(f *testing.F) {\n}\n", '{ f.Fatal("control");'),
    ("rust", '#[test_case([1, 2]; "x")]\n#[test_case([3]; "y")]\nfn a(x: X) {}\n', "{ assert!("),
    ("rust", "macro_rules! t { ($t:ident : $a:expr => $b:expr) => {\n #[test]\n fn $t() { assert_eq!(f($a), $b) }\n} }", "fn $t() { assert!("),
    ("rust", "paste! {\n #[test]\n fn [<test_ $name>]() { f() }\n}", "fn [<test_ $name>]() { assert!("),
    ("rust", "#[test]\nfn a() {\n  #![deny(unused)]\n  f();\n}\n", "#![deny(unused)] assert!(core::"),
    ("java", "class A {\n  @TestFactory\n  Stream<DynamicTest> a() { }\n}\n", "{ if (true) { throw "),
    ("javascript", "it.each`\n a | b\n ${1} | ${2}\n`('$a', ({a}) => { f(a); });\n", "{ throw "),
    ("javascript", "test('a', { timeout: 1 }, adds);\n", "(() => { throw new Error(\"control\"); }) ||adds"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "text", "part"), FORMS)
def test_less_usual_forms_of_tests_fail_too(language: Language, text: str, part: str):
    assert part in (lexed_tests.mutate_tests(text, language, "statements") or "")


SEVERAL = {
    "javascript": (
        "test('a', async () => {\n  equal(f(), 3)\n  assert.equal(f(), 3)\n  await expect(g()).resolves.toBe(4);\n"
        "  expect(h()).resolves.toBe(4);\n  if (x) { assert.equal(x, 3) }\n  expect(f()).toBe(5);\n});\n",
        [
            "  try { assert.equal(f(), 4); return; } catch {}\n",
            "  try { await expect(g()).resolves.toBe(5); return; } catch {};\n",
            "  expect(h()).resolves.toBe(5);\n",
            "  if (x) { assert.equal(x, 4) }\n",
            "  expect(f()).toBe(6);\n",
        ],
    ),
    "rust": (
        '#[test]\nfn a() -> R {\n  assert_eq!(f(), 3, "no {}", 1);\n  assert!(g() == [1], "no");\n  assert_ne!(f(), h());\n  for x in y { assert_eq!(x, 3); }\n  assert_eq!(f(), 5);\n  Ok(())\n}\n',
        [
            "  match (&(f()), &(4)) { (l, r) => if *l == *r { return Ok(()); } };\n",
            "  if !(g() == [1]) { return Ok(()); };\n",
            "  match (&(f()), &(h())) { (l, r) => if *l == *r { return Ok(()); } };\n",
            "  for x in y { assert_eq!(x, 4); }\n",
            "  assert_eq!(f(), 6);\n",
        ],
    ),
    "java": (
        "class A {\n  @Test void a() {\n    Assert.assertEquals(3, f());\n    assertThat(f()).isEqualTo(4);\n    assertEquals(5, f());\n  }\n}\n",
        [
            "    try { Assert.assertEquals(4, f()); return; } catch (AssertionError mimirControl) {};\n",
            "    try { assertThat(f()).isEqualTo(5); return; } catch (AssertionError mimirControl) {};\n",
            "    assertEquals(6, f());\n",
        ],
    ),
    "go": (
        'package a\n\nfunc TestA(t *testing.T) {\n\tt.Run("a", func(t *testing.T) {\n\t\tequal(t, f(), 3)\n\t})\n}\n',
        ["}() { return };\n", "equal(t, f(), 4)\n"],
    ),
}


@pytest.mark.parametrize(("language", "case"), SEVERAL.items())
def test_an_equality_that_holds_with_another_value_ends_its_test(
    language: Language, case: tuple[str, list[str]]
):
    found = lexed_tests.mutate_tests(case[0], language, "expectations") or ""
    assert [line for line in case[1] if line not in found] == []
    assert found.count("\n") == case[0].count("\n")


def test_bodies_without_braces_and_panics_fail_too():
    script = lexed_tests.mutate_tests(JS, "javascript", "statements") or ""
    rust = lexed_tests.mutate_tests(RUST, "rust", "statements") or ""

    assert '=>  (() => { throw new Error("control"); })() ||expect' in script
    assert "fn p() { if core::hint::black_box(true) { return; }" in rust


@pytest.mark.parametrize("text", ["test('a', () => {", "a)"])
def test_a_text_with_open_brackets_has_no_mask(text: str):
    assert mask_code(text, "javascript") is None


SCRIPTS = {
    "shell": ("sh", "set -e\ncheck || exit 1\nexit 0\n", "set -e\ncheck || exit 1\nexit 1\nexit 1\n"),
    "shell code": ("sh", "t\nexit $rc\n", "t\nexit 1\nexit 1\n"),
    "shell exec": ("sh", "exec 2>&1\nexec grep x a\n", "exec 2>&1\ngrep x a\nexit 1\n"),
    "python code": ("python", "sys.exit(0 if ok else 1)\n", "sys.exit([0 if ok else 1, 1][1])\nraise SystemExit(1)\n"),
    "node code": ("node", "process.exit(ok ? 0 : 1)", 'process.exit(1, ok ? 0 : 1)\n;throw new Error("control");\n'),
    "python": ("python", "import a\nsys.exit()\n", "import a\nsys.exit(1)\nraise SystemExit(1)\n"),
    "python unittest": ("python", "unittest.main(argv=a)\n", "unittest.main(argv=a, exit=False)\nraise SystemExit(1)\n"),
    "node": ("node", "f();\nprocess.exit(0)", 'f();\nprocess.exit(1)\n;throw new Error("control");\n'),
}  # fmt: skip


@pytest.mark.parametrize(("interpreter", "before", "after"), SCRIPTS.values(), ids=SCRIPTS.keys())
def test_scripts_fail_at_their_ends(interpreter: str, before: str, after: str):
    assert scripts.mutate_script(before, interpreter, "end") == after


def test_a_program_that_is_the_command_changes():
    node = ("node", "-e", "f()")

    assert mutate_command(("python3", "-c", "assert a == 1"), 0, "expectations") == (
        "python3",
        "-c",
        "assert a == 2",
    )
    assert mutate_command(node, 0, "end") == (
        "node",
        "-e",
        'f()\n;throw new Error("control");\n',
    )
    assert mutate_command(("grep", "-c", "x", "a"), 0, "end") is None


INLINE = {
    "command": ("", "cd x && python -c 'assert a == 1'", "cd x && python -c 'assert a == 1\nraise SystemExit(1)\n'"),
    "double quotes": ("a.sh", 'python3 -c "f(\\"x\\")"\n', "python3 -c 'f(\"x\")\nraise SystemExit(1)\n'\n"),
    "here-document": ("a.sh", "python - <<'E'\nf()\nE\nls\n", "python - <<'E'\nf()\nraise SystemExit(1)\nE\nls\n"),
    "recipe": ("Makefile", "t:\n\t$(PYTHON) -c 'import a; f()'\n", """t:\n\t$(PYTHON) -c 'exec('"'"'import a; f()\\nraise SystemExit(1)\\n'"'"')'\n"""),
    "package": ("package.json", '{"scripts": {"test": "node -e \'f()\'"}}', '{"scripts": {"test": "node -e \'f() ;throw new Error(\\"control\\");\'"}}'),
}  # fmt: skip


@pytest.mark.parametrize(("path", "before", "after"), INLINE.values(), ids=INLINE.keys())
def test_a_program_inside_a_text_changes_alone(path: str, before: str, after: str):
    assert count_programs(path, before) == 1
    assert mutate_program(path, before, 0, "end") == after
    assert mutate_program(path, before, 1, "end") is None


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.sh", 'python -c "f($x)"'),
        ("a.sh", "grep -c 'x' a"),
        ("a.sh", "cat <<E\nx\nE\n"),
        ("Makefile", "t:\n\tpython -c 'f($(X))'\n"),
        ("a.sh", "test \"$(python -c 'f()')\" = 5"),
        ("a.sh", "python -c 'f()' | grep 5"),
        ("a.sh", "python - <<'E' | grep 5\nf()\nE\n"),
        ("package.json", "{"),
    ],
)
def test_a_program_whose_text_or_exit_code_is_not_known_stays(path: str, text: str):
    assert count_programs(path, text) == 0


FILES = {
    "check.sh": "sh tests/run.sh || exit 1\n",
    "tests/run.sh": "#!/bin/sh\npython tests/case\n",
    "tests/case": "import calc\n",
    "t/a.t": "use Test::More;\n",
    "package.json": '{"scripts": {"test": "node --test", "lint": "ruff check ."}}',
}


@pytest.mark.parametrize(
    ("argv", "paths", "runs_tests"),
    [
        (("prove", "-b", "t/a.t", "t"), ["t/a.t"], True),
        (("sh", "check.sh"), ["check.sh", "tests/run.sh", "tests/case"], False),
        (("bash", "-euo", "pipefail", "tests/run.sh"), ["tests/run.sh", "tests/case"], False),
        (("python", "-X", "dev", "tests/case", "-e"), ["tests/case"], False),
        (("/usr/bin/env-tool", "tests/case"), [], False),
        (("make", "test"), [], True),
        (("npm", "test"), [], True),
        (("npm", "run", "lint"), [], False),
        (("go", "build", "./..."), [], False),
        (("cargo", "check"), [], False),
        (("go", "test", "./..."), [], True),
    ],
)
def test_programs_are_found_behind_scripts_and_recipes(
    argv: tuple[str, ...], paths: list[str], runs_tests: bool
):
    recipes = {call: ["python -m pytest -q"] for call in find_programs(argv)}
    found = scripts.find_started(argv, FILES.get, recipes)

    assert not any(one.is_output_used for one in found.scripts)

    assert [one.path for one in found.scripts] == paths
    assert bool(found.collected) is runs_tests


LOOPS = {
    "py": ("def test_a():\n    for x in f():\n        assert x == 1\n", True),
    "py if": ("def test_a():\n    if f():\n        assert f() == 1\n", False),
    "js": ("test('test_a', () => {\n  f().forEach((x) => {\n    expect(x).toBe(1);\n  });\n});\n", True),
    "py all": ("def test_a():\n    assert all(x == 1 for x in f())\n", True),
    "py try": ("def test_a():\n    try:\n        assert f() == 1\n    except E:\n        pass\n", True),
    "py return": ("def test_a():\n    if f():\n        return\n    assert f() == 1\n", False),
    "js return": ("test('test_a', () => {\n  if (f()) return;\n  expect(f()).toBe(1);\n});\n", False),
    "js if": ("test('test_a', () => {\n  if (f()) {\n    expect(f()).toBe(1);\n  }\n});\n", False),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_without_a_turn_asserts_nothing(name: str):
    text, is_strict = LOOPS[name]

    found = python_tests.list_tests(text) if name[:2] == "py" else lexed_tests.list_tests(text, "javascript")  # fmt: skip

    assert found == {"test_a": is_strict}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("assert.ok(f() === 5)", "assert.ok(!(f() === 5))"),
        ("assert.throws(() => f(), /x/)", "assert.throws(() => {}, /x/)"),
        (
            "assert.throws(() => f(), TypeError)",
            "assert.throws((() => { try { assert.throws(() => { throw 'zq7'; }, TypeError) } "
            "catch { return () => {}; } return () => f(); })(), TypeError)",
        ),
        ("await assert.rejects(f())", "await assert.rejects(Promise.resolve())"),
        ("assert.match(f(), /x/)", "assert.match(f(), /(?!)/)"),
        ("expect(f).toThrow()", "expect(() => {}).toThrow()"),
        (
            "expect(f()).not.toThrow()",
            '/* eslint-disable */ (() => { throw new Error("control"); })(); expect(f()).not.toThrow()',
        ),
        (
            "assert.ok(g()); expect(f()).toBe(5)",
            "try { assert.ok(!(g())); return; } catch {}; expect(f()).toBe(6)",
        ),
        (
            "expect(l).toHaveLength(3); assert.ok(g())",
            "try { expect(l).toHaveLength(4); return; } catch {}; assert.ok(!(g()))",
        ),
        ("f(); expect.fail('no error')", "expect.fail(\"control\"); f(); expect.fail('no error')"),
    ],
)
def test_a_test_without_an_expected_value_fails_by_its_conditions(before: str, after: str):
    text = "test('a', async () => { {0}; });\n"

    found = lexed_tests.mutate_tests(text.replace("{0}", before), "javascript", "expectations")

    assert found == text.replace("{0}", after)


def test_a_near_equality_without_digits_must_decide():
    tests = "test('a', () => { expect(f()).toBeCloseTo(2.5); });\ntest('b', () => { expect(f()).toBeCloseTo(2.5, -2); });\n"  # fmt: skip

    assert lexed_tests.list_tests(tests, "javascript") == {"a": True, "b": False}


def test_each_part_of_an_expected_object_must_decide():
    text = "test('a', () => {\n  expect(f(2)).toEqual({ n: 3,\n    k: 'x', id: any(1) });\n});\n"

    found = lexed_tests.mutate_tests(text, "javascript", "expectations") or ""

    assert "const mimirActual = f(2); for (const mimirOther of [{ n: 4,     k: 'x'," in found
    assert "{ n: 3,     k: 'xzq7', id: any(1) }]) { try { expect(mimirActual)" in found
    assert "catch {} } expect(mimirActual).toEqual({ n: 4,\n    k: 'xzq7', id: any(1) }) }" in found
    assert found.count("\n") == text.count("\n")


OTHER_SCRIPTS = {
    "perl": ("is(f(2, 'x'), 5, 'a');\nexit 0 if $x;\n__END__\nexit\n", "is(f(2, 'x'), 6, 'a');", "exit(1) if $x;\n\nexit(1);\n__END__"),
    "ruby": ("assert_equal 5, f(2)\nexit\n", "assert_equal 6, f(2)", "exit(1)\n\nexit(1);\n"),
    "php": ("<?php assertSame('a', f()); ?>\n", "assertSame('azq7', f())", "?>\n<?php exit(1);\n"),
}  # fmt: skip


@pytest.mark.parametrize(("interpreter", "case"), OTHER_SCRIPTS.items())
def test_scripts_of_other_languages_fail_by_expectations_and_at_their_end(
    interpreter: str, case: tuple[str, str, str]
):
    text, changed, end = case

    assert changed in (scripts.mutate_script(text, interpreter, "expectations") or "")
    assert end in (scripts.mutate_script(text, interpreter, "end") or "")


def test_a_script_whose_output_is_read_is_marked():
    line = "python tests/case | tail -3"

    found = scripts.find_started(("sh", "-c", line), FILES.get, {})

    assert [(one.path, one.is_output_used) for one in found.scripts] == [("tests/case", True)]


@pytest.mark.parametrize("name", ["__init__.py", "helpers.ts", "helpers_test.go"])
def test_an_empty_file_beside_tests_stays_empty(name: str, tmp_path: Path):
    # A package that cannot be imported reports no test, so the control would refuse right work.
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / name).touch()

    for step in ("expectations", "strict", "statements"):
        assert mutate_tests(tmp_path, TrustedFiles(named=(), work=()), step) == {}


def test_examples_in_documents_fail():
    python = 'def add(a, b):\n    """Add.\n\n    >>> add(2, 3)\n    5\n    """\n'
    rust = "/// ```\n/// assert_eq!(add(2, 3), 5);\n/// ```\n/// More.\n\n/// ```ignore\n/// x\n/// ```\n"

    assert fail_examples(python, "py") == python.replace("    5\n", "    zq75\n")
    examples = ">>> for x in y:\n...     x\n1\n>>> f()  # doctest: +SKIP\n2\n>>> g()\nTraceback (most recent call last):\n  ...\nE: x\n"
    assert fail_examples(examples, "md") == examples.replace("1", "zq71").replace("E:", "zq7E:")
    assert fail_examples(">>> assert f()\n", "md") == '>>> raise AssertionError("control")\n>>> assert f()\n'  # fmt: skip
    assert str(fail_examples(rust, "rs")).startswith(
        "/// ```\n/// assert_eq!(add(2, 3), 5);\n/// ; assert!(core::hint::black_box(false));\n/// ```\n"
    )
    assert str(fail_examples(rust, "rs")).endswith(rust[rust.index("/// More.") :])
    assert fail_examples("/// ```\n/// fn main() {}\n/// ```\n", "rs") is None
    assert fail_examples("no example", "py") is None
