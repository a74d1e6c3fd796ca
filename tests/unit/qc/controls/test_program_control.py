"""Which variants of compiled test programs decide, and how these programs change."""

import pytest

from mimir.domain.evidence import ControlState
from mimir.qc.controls.decision import WHOLE, SensitiveTests, decide_programs
from mimir.qc.mutations.mutation import Step
from mimir.qc.mutations.test_programs import TestProgram, find_program, mutate_program

C = '#include "calc.h"\n#define CHECK(x) if (!(x)) return 1\nstatic void check(int ok) { if (!ok) exit(2); }\nint main(void) {\n  CHECK(add(2, 3) == 5);\n  check(even(4));\n  if (add(1, 1) != 2) { return 1; }\n  return 0;\n}\n'
GTEST = "TEST(Calc, Adds) {\n  EXPECT_EQ(add(2, 3), 'c');\n  EXPECT_NE(add(1, 1), 3);\n  EXPECT_EQ(big(), 1'000);\n  EXPECT_STREQ(name(), R\"(a\")\");\n  EXPECT_NO_THROW(add(0, 0));\n  CHECK_THROWS_AS(fail(), E);\n  CHECK_THAT(name(), Equals(2));\n}\n"
GO = "package main\n\nfunc main() {\n\tif got := Add(2, 3); got != 5 {\n\t\tos.Exit(1)\n\t}\n}\n"
RUST = "fn main() -> Result<(), E> {\n    assert_eq!(add(2, 3), five());\n    Ok(())\n}\n"
JAVA = "class CalcTest {\n  public static void main(String[] a) {\n    if (Calc.add(2, 3) != 5) throw new Error();\n    System.exit(0);\n  }\n}\n"


@pytest.mark.parametrize(
    ("path", "text", "step", "parts"),
    [
        ("t.c", C, "expectations", ["CHECK(add(2, 3) == 6)", "check( !(even(4)) )", "(add(1, 1) != 3)", "if (!ok)"]),
        ("t.c", C, "strict", ["CHECK((__builtin_trap(), add(2, 3) == 5))", "(add(1, 1) != 2)"]),
        ("t.c", C, "end", ["CHECK(add(2, 3) == 5)", "((void)(2), __builtin_trap());", "{ (void)(0); __builtin_trap(); }"]),
        ("t.cpp", GTEST, "expectations", ["add(2, 3), 'a')", "EXPECT_NE(add(1, 1), 3)", "1'000", 'R"(a")"', "NO_THROW(add(0, 0))", "AS(fail(), E)", "THAT(name(), Eq"]),
        ("t.cpp", GTEST, "statements", ["TEST(Calc, Adds) { { volatile int"]),
        ("m.go", GO, "expectations", ["got := Add(2, 3); !(got != 5) {"]),
        ("m.go", GO, "end", ["os.Exit(func(int) int { return 1 }(1))", '}; func main() { mimir_main(); panic("control") }', "func mimir_main()"]),
        ("m.rs", RUST, "expectations", ["assert_ne!(add(2, 3), five())"]),
        ("m.rs", RUST, "end", ["fn mimir_main() -> Result<(), E>", "} fn main() { let _ = mimir_main(); std::process::exit(1) }"]),
        ("CalcTest.java", JAVA, "expectations", ["if ( !(Calc.add(2, 3) != 5) ) throw"]),
        ("CalcTest.java", JAVA, "end", ["System.exit((0) | 1);", "void mimir_main(", "{ mimir_main(a); if (true) throw"]),
        ("CalcTest.java", JAVA, "replaced", ["public class CalcTest {"]),
    ],
)  # fmt: skip
def test_a_test_program_fails_by_its_assertions_or_at_its_end(
    path: str, text: str, step: Step, parts: list[str]
):
    other = mutate_program(path, text, step) or ""

    assert [part for part in parts if part not in other] == [], other


def test_only_files_with_tests_are_test_programs():
    assert find_program("t.c", "int add(int a, int b) { return a + b; }\n") is None
    assert find_program("t.c", "int main(void) { return 0; }\n") == TestProgram(
        path="t.c", has_end=True, has_expectations=False
    )
    found = find_program("t.cpp", GTEST)
    assert found
    assert not found.has_end


RED: dict[str, tuple[bool, frozenset[Step], ControlState | None]] = {
    "honest": (True, frozenset(("end", "expectations", "strict", "replaced")), "red"),
    "ended early": (True, frozenset(("replaced",)), "insensitive"),
    "ended after the first assertion": (True, frozenset(("expectations", "replaced")), "insensitive"),
    "assertions replaced": (True, frozenset(("end", "replaced")), "insensitive"),
    "comparison replaced": (True, frozenset(("end", "strict", "replaced")), "insensitive"),
    "not started": (True, frozenset(), None),
    "framework": (False, frozenset(("expectations",)), "red"),
    "framework, ended early": (False, frozenset(("replaced",)), "insensitive"),
    "framework, ended late": (False, frozenset(("strict", "statements")), "insensitive"),
    "framework, assertions without values": (False, frozenset(("statements", "replaced")), "red"),
}  # fmt: skip


@pytest.mark.parametrize(("has_end", "red", "state"), RED.values(), ids=RED.keys())
async def test_variants_decide_whether_a_program_proves_something(
    has_end: bool, red: frozenset[Step], state: ControlState | None
):
    programs = [TestProgram(path="t.c", has_end=has_end, has_expectations=True)]

    async def failed(step: Step, chosen: object) -> frozenset[str]:
        return WHOLE if step in red else frozenset()

    assert await decide_programs(programs, SensitiveTests(counted=WHOLE), failed) == state


async def test_one_test_that_the_work_ends_is_not_saved_by_another():
    programs = [TestProgram(path="t.c", has_end=True, has_expectations=True)]
    both, one = frozenset(("add", "even")), frozenset(("add",))

    async def failed(step: Step, chosen: object) -> frozenset[str]:
        return both if step == "replaced" else one

    assert await decide_programs(programs, SensitiveTests(counted=both), failed) == "insensitive"


TEXTS = {
    'assert(strcmp(name(1), "one") == 0);': 'assert(strcmp(name(1), "onezq7") == 0);',
    'assert(!strcmp(name(1), "one"));': 'assert(!strcmp(name(1), "onezq7"));',
    'assert(strcmp(name(1), "one") != 0);': 'assert( !(strcmp(name(1), "one") != 0) );',
    'if (strcmp(name(1), "one")) return 1;': 'if (strcmp(name(1), "onezq7")) return 1;',
}


@pytest.mark.parametrize("line", TEXTS)
def test_an_expected_text_of_c_changes_and_not_the_result_of_its_comparison(line: str):
    text = "int main(void) {\n  %s\n  return 0;\n}\n"

    assert mutate_program("tests/test_a.c", text % line, "expectations") == text % TEXTS[line]
