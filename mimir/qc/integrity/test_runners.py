"""Tables of test runners: files that they collect, and files that configure them. Pure."""

from collections.abc import Collection, Iterable, Mapping

from mimir.qc.integrity.linters import LINTERS


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _modules(words: str) -> tuple[str, ...]:
    return tuple(f"{name}{end}" for name in words.split() for end in (".py", "/__init__.py"))


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

_PYTEST = ("**/test_*.py", "**/*_test.py")
_JAVASCRIPT = ("**/*.test.*", "**/*.spec.*", "**/__tests__/**")
_OF_JVM = ("**/src/test/**", "**/src/integrationTest/**")
COLLECTED: Mapping[str, tuple[str, ...]] = {
    "pytest": _PYTEST,
    "py.test": _PYTEST,
    "unittest": ("**/test*.py",),
    "nose2": ("**/test*.py",),
    "go": ("**/*_test.go",),
    "jest": _JAVASCRIPT,
    "vitest": _JAVASCRIPT,
    "mocha": (*_JAVASCRIPT, "test/**"),
    "rspec": ("spec/**",),
    "cargo": ("tests/**",),
    "node --test": (
        "**/*.test.*",
        "**/*-test.*",
        "**/*_test.*",
        "**/test-*",
        "**/test.*",
        "**/test/**",
    ),
    "bun test": ("**/*.test.*", "**/*_test.*", "**/*.spec.*", "**/*_spec.*"),
    "deno test": ("**/*.test.*", "**/*_test.*", "**/test.*"),
    "dotnet test": ("**/*Test.*", "**/*Tests.*", "**/*Tests/**", "**/*.Test/**"),
    "mix test": ("**/*_test.exs",),
    "swift test": ("Tests/**",),
    "gradle": _OF_JVM,
    "mvn": _OF_JVM,
    "phpunit": ("**/*Test.php",),
    "prove": ("**/*.t",),
    **dict.fromkeys(
        ("bazel test", "ctest", "meson test"),
        ("**/tests/**", "**/test/**", "**/test_*.*", "**/*_test.*"),
    ),
    "manage.py test": ("**/test*.py", "**/tests/**"),
    "rails test": ("test/**",),
    "rails spec": ("spec/**",),
    "artisan test": ("tests/**",),
    "crystal spec": ("spec/**",),
    "lein test": ("test/**",),
    "bats": ("**/*.bats",),
    "behave": ("features/**",),
    "cucumber": ("features/**",),
    "robot": ("**/*.robot",),
    **dict.fromkeys(("dart test", "flutter test"), ("test/**",)),
    **dict.fromkeys(("ava", "playwright test", "ng test"), (*_JAVASCRIPT, "test/**", "tests/**")),
}
"""Files that a test runner collects without path arguments."""
BESIDE = tuple(
    f"**/{name}"
    for name in _names(
        "tests/** test/** testdata/** test_data/** test-data/** golden/** goldens/** "
        "__tests__/** __snapshots__/** *.snap *.golden *.approved.*"
    )
)
"""Files next to tests: the data and helpers by which they judge."""

_PACKAGES = ("**/tests/__init__.py", "**/test/__init__.py")
_SITE = ("**/sitecustomize.py", "**/usercustomize.py")
_PYTEST_HOOKS = ("**/conftest.py", "pytest.py", "pytest/**", "_pytest/**", *_PACKAGES, *_SITE)
_JS_HOOKS = (
    *("**/setupTests.*", "**/jest.setup.*", "**/jest-setup.*", "**/vitest.setup.*"),
    "__mocks__/**",
)
HOOKS: Mapping[str, tuple[str, ...]] = {
    "jest": _JS_HOOKS,
    "vitest": _JS_HOOKS,
    "pytest": _PYTEST_HOOKS,
    "py.test": _PYTEST_HOOKS,
    "unittest": ("unittest.py", "unittest/**", *_PACKAGES, *_SITE),
    "nose2": (*_PACKAGES, *_SITE),
    "manage.py test": ("**/manage.py", *_PACKAGES, *_SITE),
    "rails test": ("bin/rails",),
    "rails spec": ("bin/rails",),
    "artisan test": ("artisan",),
    "cargo": (".cargo/**",),
    "mix test": ("**/test_helper.exs",),
    "dotnet test": ("**/*.runsettings", "**/Directory.Build.*"),
    "gradle": ("gradle/**", "gradlew", "buildSrc/**", "**/init.gradle*"),
    "mvn": (".mvn/**", "mvnw"),
    "prove": (".proverc",),
    "npm": (".npmrc",),
    "yarn": (".yarnrc", ".yarnrc.yml"),
    "pnpm": (".npmrc", ".pnpmfile.cjs"),
}
"""Files that configure a runner, also new ones: hooks, and replacements of its modules."""

_IMPORTED = _modules(
    "argparse asyncio contextlib difflib fnmatch functools inspect pkgutil pprint shlex traceback "
    "unittest warnings weakref"
)
_OF_PYTEST_TOO = _modules("attr exceptiongroup iniconfig packaging pluggy py tomli")
SHADOWS: Mapping[str, tuple[str, ...]] = {
    "pytest": (*_IMPORTED, *_OF_PYTEST_TOO),
    "py.test": (*_IMPORTED, *_OF_PYTEST_TOO),
    "unittest": _IMPORTED,
    "nose2": _IMPORTED,
}
"""Modules that a runner imports: a new file of that name in its directory replaces one."""

_OF_PYTEST = ("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml")
_OF_MANY = ("tox.ini", "setup.cfg", "pyproject.toml", ".coveragerc")
_MAKE = ("Makefile", "makefile", "GNUmakefile")
_JEST = ("jest.config.*",)
_VITEST = ("vitest.config.*", "vite.config.*")
_MOCHA = (".mocharc*",)
_DENO = ("deno.json", "deno.jsonc")
_PHPUNIT = ("phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml")
SETTINGS: Mapping[str, tuple[str, ...]] = {
    "pytest": (*_OF_PYTEST, *_OF_MANY),
    "py.test": (*_OF_PYTEST, *_OF_MANY),
    "tox": ("tox.toml", *_OF_MANY),
    "nox": ("noxfile.py",),
    "npm": ("package.json",),
    "yarn": ("package.json",),
    "pnpm": ("package.json",),
    "jest": ("package.json", *_JEST),
    "vitest": ("package.json", *_VITEST),
    "mocha": ("package.json", *_MOCHA),
    "make": _MAKE,
    "just": ("justfile", ".justfile", "Justfile"),
    "cargo": ("Cargo.toml", "build.rs"),
    "go": ("go.mod", "go.work"),
    "rspec": (".rspec",),
    "bun": ("package.json", "bunfig.toml"),
    "bun test": ("package.json", "bunfig.toml"),
    "deno": _DENO,
    "deno test": _DENO,
    "node --test": ("package.json",),
    "mix": ("mix.exs",),
    "mix test": ("mix.exs",),
    "swift test": ("Package.swift",),
    "gradle": (
        *("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"),
        "gradle.properties",
    ),
    "mvn": ("pom.xml",),
    "phpunit": _PHPUNIT,
    "composer": ("composer.json",),
    "rake": ("Rakefile", "rakefile", "Rakefile.rb"),
    "artisan test": _PHPUNIT,
    "ava": ("package.json", "ava.config.*"),
    "playwright test": ("package.json", "playwright.config.*"),
    "ng test": ("package.json", "angular.json", "karma.conf.*"),
    "behave": ("behave.ini", *_OF_MANY),
    "lein test": ("project.clj",),
    **dict.fromkeys(("invoke", "inv"), ("tasks.py",)),
    "ant": ("build.xml",),
    "sbt": ("build.sbt",),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
}
"""Files that configure a runner and more: new ones are work, changed ones may bypass."""

STARTERS = _names(
    "ant bun composer deno inv invoke just make mix nox npm pnpm rake sbt task tox yarn"
)
"""Programs that start what their settings define."""
KNOWN = STARTERS | frozenset(COLLECTED) | frozenset(LINTERS)
"""Programs that run tests, judge files, or start such programs."""
STARTED_TESTS = tuple(dict.fromkeys(glob for globs in COLLECTED.values() for glob in globs))
STARTED_HOOKS = ("**/conftest.py", "**/test_helper.exs", ".proverc", *_SITE, *_JS_HOOKS)
STARTED_SETTINGS = (*_OF_PYTEST, *_JEST, *_VITEST, *_MOCHA, *_PHPUNIT)
"""Files that configure runners alone: a starter of one runner may start any of them."""

TAKE_A_VALUE: Mapping[str, frozenset[str]] = {
    "pytest": _names(
        "-k -m -c -p -n -o -W --cov --cov-report --cov-config --rootdir --ignore --deselect "
        "--maxfail --durations --junitxml"
    ),
}
"""Options whose value is the next argument, not a test."""

_RUNS_TESTS = _names(
    "test tests testing alltests ci runtest runtests selftest smoketest testall testsuite unittest "
    "unittests"
)
_TESTING = _RUNS_TESTS | _names(
    "spec specs check checks checker verify validate smoke e2e conftest fixture fixtures acceptance "
    "testcase testcases golden expected"
)
_LINTS = _names(
    "lint linter linting fmt format formatting style typecheck types typing docs "
    + " ".join(name for name in LINTERS if " " not in name)
)
TOOLS = READERS | frozenset(COLLECTED) | _names("build coverage nox pip tox trial venv")
"""Python modules that are tools of the machine, never the work."""
SUBCOMMANDS = STARTERS | {
    *("ctest", "bazel test", "meson test"),
    *("cargo", "go", "gradle", "mvn", "dotnet test", "swift test", "manage.py test", "lein test"),
}
"""Programs whose bare arguments are words (`npm test`), not paths."""


def says_it_lints(words: Collection[str]) -> bool:
    """True if words of a build target name linters and no tests."""
    return not _LINTS.isdisjoint(words) and not says_it_runs_tests(words)


def says_it_tests(words: Iterable[str]) -> bool:
    """True if words of a file's or folder's name say that it tests."""
    return not _TESTING.isdisjoint(words)


def says_it_runs_tests(words: Iterable[str]) -> bool:
    """True if words of a script's name say that it starts tests."""
    return not _RUNS_TESTS.isdisjoint(words)
