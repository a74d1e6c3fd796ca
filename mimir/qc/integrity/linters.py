"""Table of linters: the files that they judge, and the files that hold their rules. Pure."""

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


_PYPROJECT = "pyproject.toml"
_OLDER = ("setup.cfg", "tox.ini")
_PY, _JS, _C, _RUST = "**/*.py", "**/*.*[jt]s*", "**/*.[ch]*", "**/*.rs"
_OF_CARGO = (".cargo/**",)

LINTERS: Mapping[str, Linter] = {
    "bandit": Linter(_PY, (".bandit",), (_PYPROJECT,)),
    "biome": Linter(_JS, ("biome.json", "biome.jsonc")),
    "black": Linter(_PY, (), (_PYPROJECT,)),
    "cargo clippy": Linter(_RUST, ("clippy.toml", ".clippy.toml"), ("Cargo.toml", *_OF_CARGO)),
    "cargo fmt": Linter(_RUST, ("rustfmt.toml", ".rustfmt.toml"), ("Cargo.toml", *_OF_CARGO)),
    "clang-format": Linter(_C, (".clang-format", ".clang-format-ignore")),
    "clang-tidy": Linter(_C, (".clang-tidy",)),
    "eslint": Linter(_JS, ("eslint.config.*", ".eslintrc*", ".eslintignore"), ("package.json",)),
    "flake8": Linter(_PY, (".flake8",), _OLDER),
    "golangci-lint": Linter("**/*.go", (".golangci.*",)),
    "hadolint": Linter("**", (".hadolint.*",)),
    "isort": Linter(_PY, (".isort.cfg",), (_PYPROJECT, *_OLDER)),
    "lint-imports": Linter(_PY, (".importlinter",), (_PYPROJECT, "setup.cfg")),
    "markdownlint": Linter("**", (".markdownlint*",)),
    "mypy": Linter(_PY, ("mypy.ini", ".mypy.ini"), (_PYPROJECT, "setup.cfg")),
    "phpstan": Linter("**/*.php", ("phpstan.neon", "phpstan.neon.dist", "phpstan.dist.neon")),
    "pre-commit": Linter("**", (".pre-commit-config.yaml",)),
    "prettier": Linter(
        "**", (".prettierrc*", "prettier.config.*", ".prettierignore"), ("package.json",)
    ),
    "pydocstyle": Linter(_PY, (".pydocstyle",), (_PYPROJECT, *_OLDER)),
    "pylint": Linter(
        _PY, (".pylintrc", "pylintrc", ".pylintrc.toml", "pylintrc.toml"), (_PYPROJECT, *_OLDER)
    ),
    "pyright": Linter(_PY, ("pyrightconfig.json",), (_PYPROJECT,)),
    "rubocop": Linter("**/*.rb", (".rubocop.yml", ".rubocop_todo.yml")),
    "ruff": Linter(_PY, ("ruff.toml", ".ruff.toml"), (_PYPROJECT,)),
    "shellcheck": Linter("**", (".shellcheckrc",)),
    "stylelint": Linter(
        "**", (".stylelintrc*", "stylelint.config.*", ".stylelintignore"), ("package.json",)
    ),
    "tsc": Linter(_JS, ("tsconfig*.json",)),
    "yamllint": Linter("**", (".yamllint*",)),
}
