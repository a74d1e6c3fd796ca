"""Tables of test runners and linters: the files that they read, and their settings. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Linter:
    """Program that judges files by rules."""

    judged: str
    """Glob of the files that it judges."""
    own: tuple[str, ...] = ()
    """Files that hold its rules and nothing else."""
    shared: tuple[str, ...] = ()
    """Files that hold its rules among other things."""


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _globs(words: str) -> tuple[str, ...]:
    return tuple(words.split())


def _table(text: str) -> Mapping[str, tuple[str, ...]]:
    """Read lines of the form `program, program: glob glob`."""
    rows = (line.split(": ") for line in text.strip().splitlines())
    return {name.strip(): _globs(globs) for names, globs in rows for name in names.split(",")}


def _linters(text: str) -> Mapping[str, Linter]:
    """Read lines of the form `program: judged | own files | shared files`."""
    rows = (line.split(": ") for line in text.strip().splitlines())
    return {
        name.strip(): Linter(judged.strip(), _globs(own), _globs(shared))
        for name, files in rows
        for judged, own, shared in [files.split("|")]
    }


LINTERS = _linters(
    """
    bandit: **/*.py | .bandit | pyproject.toml
    biome: **/*.*[jt]s* | biome.json biome.jsonc |
    black: **/*.py | | pyproject.toml
    cargo clippy: **/*.rs | clippy.toml .clippy.toml | Cargo.toml .cargo/**
    cargo fmt: **/*.rs | rustfmt.toml .rustfmt.toml | Cargo.toml .cargo/**
    clang-format: **/*.[ch]* | .clang-format .clang-format-ignore |
    clang-tidy: **/*.[ch]* | .clang-tidy |
    eslint: **/*.*[jt]s* | eslint.config.* .eslintrc* .eslintignore | package.json
    flake8: **/*.py | .flake8 | setup.cfg tox.ini
    golangci-lint: **/*.go | .golangci.* |
    hadolint: ** | .hadolint.* |
    isort: **/*.py | .isort.cfg | pyproject.toml setup.cfg tox.ini
    lint-imports: **/*.py | .importlinter | pyproject.toml setup.cfg
    markdownlint: ** | .markdownlint* |
    mypy: **/*.py | mypy.ini .mypy.ini | pyproject.toml setup.cfg
    phpstan: **/*.php | phpstan.neon phpstan.neon.dist phpstan.dist.neon |
    pre-commit: ** | .pre-commit-config.yaml |
    prettier: ** | .prettierrc* prettier.config.* .prettierignore | package.json
    pydocstyle: **/*.py | .pydocstyle | pyproject.toml setup.cfg tox.ini
    pylint: **/*.py | .pylintrc pylintrc .pylintrc.toml pylintrc.toml | pyproject.toml setup.cfg tox.ini
    pyright: **/*.py | pyrightconfig.json | pyproject.toml
    rubocop: **/*.rb | .rubocop.yml .rubocop_todo.yml |
    ruff: **/*.py | ruff.toml .ruff.toml | pyproject.toml
    shellcheck: ** | .shellcheckrc |
    stylelint: ** | .stylelintrc* stylelint.config.* .stylelintignore | package.json
    tsc: **/*.*[jt]s* | tsconfig*.json |
    yamllint: ** | .yamllint* |
    """
)
COMPARERS = _names("cmp diff")
"""Readers that compare the work with a file; a test file among these is the check."""
READERS = (
    COMPARERS
    | frozenset(LINTERS)
    | _names(
        "[ awk cat compileall egrep fgrep file find grep head jq json.tool ls md5sum py_compile rg sed "
        "sha256sum stat tail test wc"
    )
)
"""Programs that read files and run none of them."""

COLLECTED = _table(
    """
    pytest, py.test: **/test_*.py **/*_test.py
    unittest, nose2: **/test*.py
    go: **/*_test.go
    jest, vitest: **/*.test.* **/*.spec.* **/__tests__/**
    mocha: **/*.test.* **/*.spec.* **/__tests__/** test/**
    rspec: spec/**
    cargo: tests/**
    node --test: **/*.test.* **/*-test.* **/*_test.* **/test-* **/test.* **/test/**
    bun test: **/*.test.* **/*_test.* **/*.spec.* **/*_spec.*
    deno test: **/*.test.* **/*_test.* **/test.*
    dotnet test: **/*Test.* **/*Tests.* **/*Tests/** **/*.Test/**
    mix test: **/*_test.exs
    swift test: Tests/**
    gradle, mvn: **/src/test/** **/src/integrationTest/**
    phpunit: **/*Test.php
    prove: **/*.t
    bazel test, ctest, meson test: **/tests/** **/test/** **/test_*.* **/*_test.*
    manage.py test: **/test*.py **/tests/**
    rails test: test/**
    rails spec: spec/**
    artisan test: tests/**
    crystal spec: spec/**
    lein test: test/**
    bats: **/*.bats
    behave, cucumber: features/**
    robot: **/*.robot
    dart test, flutter test: test/**
    ava, playwright test, ng test: **/*.test.* **/*.spec.* **/__tests__/** test/** tests/**
    """
)
"""Files that a test runner collects without path arguments."""
TEST_VERBS: Mapping[str, frozenset[str]] = {
    "go": _names("test"),
    "cargo": _names("test t nextest"),
    "mvn": _names("test verify package install integration-test"),
    "gradle": _names("test check build"),
}
"""Words with which a build tool executes tests."""
BESIDE = _globs(
    "**/tests/** **/test/** **/testdata/** **/test_data/** **/test-data/** **/golden/** "
    "**/goldens/** **/golden.* **/*.golden.* **/expected/** **/expected.txt **/expected.json **/*.expected "
    "**/*.expected.* **/__fixtures__/** **/__tests__/** **/__snapshots__/** **/*.snap **/*.golden "
    "**/*.approved.*"
)
"""Files next to tests: the data and helpers by which they judge."""

_JS_HOOKS = "**/setupTests.* **/jest.setup.* **/jest-setup.* **/vitest.setup.* __mocks__/**"
_JAVA_LIBRARIES = " ".join(
    f"**/java/{name}/**"
    for name in _globs(
        "org/junit junit org/opentest4j org/assertj org/hamcrest org/testng org/mockito"
    )
)
"""Classes of test libraries; a source of the project would hide them."""
_OF_MANY = "tox.ini setup.cfg pyproject.toml .coveragerc"
_PHPUNIT = "phpunit.xml phpunit.xml.dist phpunit.dist.xml"
CONFIG = _table(
    f"""
    python: **/sitecustomize.py **/usercustomize.py
    pytest, py.test: **/conftest.py pytest.ini .pytest.ini pytest.toml .pytest.toml {_OF_MANY}
    manage.py test: **/manage.py
    tox: tox.toml {_OF_MANY}
    nox: noxfile.py
    npm: package.json .npmrc
    yarn: package.json .yarnrc .yarnrc.yml
    pnpm: package.json .npmrc .pnpmfile.cjs
    node --test: package.json
    jest: package.json jest.config.* {_JS_HOOKS}
    vitest: package.json vitest.config.* vite.config.* {_JS_HOOKS}
    mocha: package.json .mocharc*
    make: Makefile makefile GNUmakefile
    cmake, ctest: CMakeLists.txt CMakePresets.json CTestCustom.cmake *.cmake
    meson test: meson.build
    just: justfile .justfile Justfile
    cargo: Cargo.toml build.rs .cargo/** rust-toolchain rust-toolchain.toml
    go: go.mod go.work
    rspec: .rspec
    bun, bun test: package.json bunfig.toml
    deno, deno test: deno.json deno.jsonc
    mix, mix test: mix.exs **/test_helper.exs
    dotnet test: **/*.runsettings **/Directory.Build.*
    swift test: Package.swift
    gradle: build.gradle build.gradle.kts settings.gradle settings.gradle.kts gradle.properties gradle/** gradlew buildSrc/** **/init.gradle*
    mvn: pom.xml .mvn/** mvnw
    junit, testng: **/META-INF/services/org.junit.* **/META-INF/services/org.testng.* **/junit-platform.properties {_JAVA_LIBRARIES}
    prove: .proverc
    phpunit, artisan test: {_PHPUNIT}
    composer: composer.json
    rake: Rakefile rakefile Rakefile.rb
    ava: package.json ava.config.*
    playwright test: package.json playwright.config.*
    ng test: package.json angular.json karma.conf.*
    behave: behave.ini {_OF_MANY}
    lein test: project.clj
    ant: build.xml
    sbt: build.sbt
    task: Taskfile.yml Taskfile.yaml
    """
)
"""Files that configure a runner or build tool, by their names."""
AMBIGUOUS = _table("""
    invoke, inv: tasks.py
    rails test, rails spec: bin/rails
    artisan test: artisan
    """)
"""The same, for names that a module of the project may have: a check must start the tool."""

STARTERS = _names(
    "ant bun composer deno inv invoke just make mix nox npm pnpm rake sbt task tox yarn"
)
"""Programs that start what their settings define."""
KNOWN = STARTERS | frozenset(COLLECTED) | frozenset(LINTERS)
"""Programs that run tests, judge files, or start such programs."""
STARTED_TESTS = tuple(dict.fromkeys(glob for globs in COLLECTED.values() for glob in globs))
TAKE_A_VALUE: Mapping[str, frozenset[str]] = {
    "pytest": _names(
        "-k -m -c -p -n -o -W --cov --cov-report --cov-config --rootdir --ignore --deselect "
        "--maxfail --durations --junitxml"
    )
}
"""Options whose value is the next argument, not a test."""

RUNS_TESTS = _names(
    "test tests testing alltests ci runtest runtests selftest smoketest testall testsuite unittest "
    "unittests"
)
"""Words in the name of a script that starts tests."""
TESTING = RUNS_TESTS | _names(
    "spec specs check checks checker verify validate smoke e2e conftest fixture fixtures acceptance "
    "testcase testcases golden expected"
)
"""Words in the name of a file or folder that tests."""
LINTS = _names(
    "lint linter linting fmt format formatting style typecheck types typing docs "
    + " ".join(name for name in LINTERS if " " not in name)
)
"""Words in the name of a build target that starts linters."""
TOOLS = READERS | frozenset(COLLECTED) | _names("build coverage nox pip tox trial venv")
"""Python modules that are tools of the machine, never the work."""
SUBCOMMANDS = STARTERS | {
    *("ctest", "bazel test", "meson test"),
    *("cargo", "go", "gradle", "mvn", "dotnet test", "swift test", "manage.py test", "lein test"),
    "vitest",
}
"""Programs whose bare arguments are words (`npm test`), not paths."""
