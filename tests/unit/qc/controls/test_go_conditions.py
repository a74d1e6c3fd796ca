"""Conditions of tests in Go decide, also without an expected literal."""

from mimir.qc.mutations import lexed_tests


def test_a_condition_of_go_changes_before_a_failure():
    text = (
        "func TestA(t *testing.T) {{\n\tif got := f(); got != {} {{\n\t\tt.Fatal(got)\n\t}}\n}}\n"
    )

    assert lexed_tests.mutate_tests(text.format(5), "go", "expectations") == text.format(6)
    found = lexed_tests.mutate_tests(text.format("nil"), "go", "expectations") or ""
    assert 't.Fatal("control")' in found
    found = lexed_tests.mutate_tests(text.format("c.want"), "go", "expectations") or ""
    assert "got == c.want {" in found
    found = lexed_tests.mutate_tests(text.replace("got != {}", "!equal(got, w)").format(), "go", "expectations") or ""  # fmt: skip
    assert "f(); equal(got, w) {" in found


def test_the_only_group_of_subtests_always_compares():
    group = "\tt.Run(c, func(t *testing.T) {\n\t\tif f() != c.w {\n\t\t\tt.Fatal()\n\t\t}\n\t})\n"
    text = "func TestA(t *testing.T) {{\n{}}}\n"

    table = f"\tfor _, c := range []s{{{{1}}}} {{\n{group}\t}}\n"
    assert lexed_tests.list_tests(text.format(group), "go") == {"TestA": True}
    assert lexed_tests.list_tests(text.format(table), "go") == {"TestA": True}
    assert lexed_tests.list_tests(text.format(group * 2), "go") == {"TestA": False}
