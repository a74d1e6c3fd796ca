import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.domain.globs import matches
from mimir.domain.plan import Check
from mimir.qc.integrity.check_files import find_check_files
from mimir.qc.integrity.command_line import find_programs


def check(run: str | tuple[str, ...], **more: object) -> Check:
    return Check(id="k", criteria=("c",), run=run, **more)


PYTEST = ("**/test_*.py", "**/*_test.py")


@pytest.mark.parametrize(
    ("run", "tests"),
    [
        ("python -m pytest -q tests/test_a.py::test_x", ("tests/test_a.py",)),
        (
            "pytest -q ./tests/test_a.py /workspace/tests/test_b.py",
            ("tests/test_a.py", "tests/test_b.py"),
        ),
        ("pytest -q", PYTEST),
        ("pytest .", PYTEST),
        ("python3.11 -m pytest", PYTEST),
        ("pytest src", ("src/**/test_*.py", "src/**/*_test.py")),
        ("pytest --cov src -k limit tests", ("tests",)),
        ("pytest --cov=src tests", ("tests",)),
        ("pytest 'tests/*.py'", ("tests/*.py",)),
        ("python -m unittest", ("**/test*.py",)),
        ("python -m unittest tests.test_a.Case.test_x", ("tests/test_a.py",)),
        ("python -m unittest tests/test_a.py", ("tests/test_a.py",)),
        ("python manage.py test app.test_a.Case", ("app/test_a.py",)),
        ("python -m django test --settings=a.b shop.tests", ("shop/tests", "shop/tests.py")),
        ("python -m testtools.run a.test_a", ("a.test_a", "a/test_a.py")),
        ("go test ./...", ("**/*_test.go",)),
        ("cargo test", ("tests/**",)),
        ("python check_limits.py", ("check_limits.py",)),
        ("./check.sh --all", ("check.sh",)),
        ("bash scripts/verify.sh", ("scripts/verify.sh",)),
        ("node test/run.js", ("test/run.js",)),
        ("node --test test/a.test.js", ("test/a.test.js",)),
        ("node --test --test-name-pattern=x tests/", ("tests",)),
        ("bun test", ("**/*.test.*", "**/*_test.*", "**/*.spec.*", "**/*_spec.*")),
        ("deno test --allow-read test/a_test.ts", ("test/a_test.ts",)),
        ("mix test test/a_test.exs", ("test/a_test.exs",)),
        ("./gradlew :app:test", ("**/src/test/**", "**/src/integrationTest/**")),
        ("cd api && ./mvnw -q test", ("api/**/src/test/**", "api/**/src/integrationTest/**")),
        ("vendor/bin/phpunit tests/UserTest.php", ("tests/UserTest.php",)),
        ("vendor/bin/phpunit", ("**/*Test.php",)),
        ("npx vitest run --typecheck", ("**/*.test.*", "**/*.spec.*", "**/__tests__/**")),
        ("npx vitest run test/a.test.ts", ("test/a.test.ts",)),
        ("node_modules/.bin/jest", ("**/*.test.*", "**/*.spec.*", "**/__tests__/**")),
        ("prove -l t", ("t/**/*.t",)),
        ("node node_modules/jest/bin/jest.js src/a.test.js", ("src/a.test.js",)),
        ("php vendor/bin/phpunit", ("**/*Test.php",)),
        ("cd web && python3 manage.py test app", ("web/**/test*.py", "web/**/tests/**")),
        ("php artisan test", ("tests/**",)),
        ("bin/rails test test/models", ("test/models",)),
        ("diff out.txt tests/wanted.txt", ("tests/wanted.txt",)),
        ("cmp golden/a.png a.png", ("golden/a.png",)),
        ("cd pkg && python -m pytest -q tests/test_a.py | tail -3", ("pkg/tests/test_a.py",)),
        ("cd pkg; pytest", ("pkg/**/test_*.py", "pkg/**/*_test.py")),
        ("env A=b timeout 10s uv run pytest tests/x", ("tests/x",)),
        ("env -u A timeout -s KILL 9 uv run --package app pytest tests/x", ("tests/x",)),
        ("coverage run -m pytest tests/x", ("tests/x",)),
        # The target of a check, and a script that is not marked as a test, is the work.
        ("test -f tests/test_new.py", ()),
        ("grep -q 'def test_refill' tests/test_limiter.py", ()),
        ("ruff check tests", ()),
        ("python -m mypy src tests", ()),
        ("python hello.py", ()),
        ("python latest.py contest.py checkout.py", ()),
        ("python -c 'import limiter'", ()),
        ("diff a.txt b.txt", ()),
        ("cargo clippy -- -D warnings", ()),
        ("npx eslint tests", ()),
        ("node server.js", ()),
        ("npm run build", ()),
        ("bun run build", ()),
        ("deno task build", ()),
        ("make test", ()),
        # Nothing outside, nothing unreadable.
        ("pytest ../tests/test_a.py", PYTEST),
        ("cd .. && pytest", ()),
        ("bash -c 'echo \"open'", ()),
        ((), ()),
    ],
)
def test_default_tests_are_the_check_files_without_the_work(run, tests):
    assert find_check_files(check(run)).tests == tests


@pytest.mark.parametrize("tests", [(), ("a/*.txt",)])
def test_tests_of_the_plan_are_used_unchanged(tests):
    assert find_check_files(check("pytest tests", tests=tests)).tests == tests


@given(st.lists(st.text(max_size=12), max_size=6).map(tuple))
def test_any_argument_vector_is_read_and_names_nothing_outside(argv):
    for glob in find_check_files(check(argv)).tests:
        assert not matches("../outside", (glob,))
        assert not glob.startswith("/")


@given(st.text(max_size=60))
def test_any_shell_line_is_read(line):
    find_programs(("bash", "-o", "pipefail", "-c", line))


def test_deeply_nested_shells_do_not_exhaust_the_stack():
    line = "true"
    for _ in range(12):
        line = f"bash -c {line!r}"[:20_000]

    find_programs(("bash", "-c", line))
