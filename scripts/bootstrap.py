"""Installer of the project into `.venv`, exactly by `uv.lock`, with this Python alone.

`bootstrap.sh` calls it if its stamp differs: `bootstrap.py LEVEL STAMP`. Calls may overlap: one
installs, the others wait. A call that dies leaves no stamp, so that the next one repeats the steps.
"""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

UV = "0.13.9"
"""Installer that reads the lock; pip installs it."""

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"

LEVELS: Mapping[str, tuple[str, ...]] = {
    "dev": (),
    # Inexact: packages of an earlier `make test` stay, so that switching installs nothing twice.
    "runtime": ("--no-dev", "--inexact"),
}

MEDDLERS = (
    "PIP_PREFIX",
    "PIP_TARGET",
    "PIP_USER",
    "UV_PYTHON",
    "VIRTUAL_ENV",
    "PYTHONDONTWRITEBYTECODE",
)
"""Shell settings that would change the location, the Python or the bytecode."""


def environment() -> dict[str, str]:
    """Return the environment of this process without the settings in `MEDDLERS`."""
    kept = {name: value for name, value in os.environ.items() if name not in MEDDLERS}
    return {
        **kept,
        "UV_PROJECT_ENVIRONMENT": str(VENV),
        "UV_PYTHON_DOWNLOADS": "never",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def say(text: str) -> None:
    """Print slow steps to standard error; standard output belongs to the make target."""
    print(f"bootstrap: {text}", file=sys.stderr, flush=True)


def run(command: Sequence[str | Path], *, must_succeed: bool = True) -> None:
    """Run a step; its output goes to standard error."""
    subprocess.run(
        command,
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        check=must_succeed,
    )


@contextmanager
def alone() -> Iterator[None]:
    """Hold the lock of the project directory; the system releases it with the process."""
    directory = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def answers(*command: str | Path) -> str:
    """Return the output of a command; empty if it cannot run."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment(), check=False
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def stamp_of(level: str) -> Path:
    """Return the path of a level's stamp."""
    return VENV / f".installed-{level}"


def read(stamp: Path) -> str:
    """Return the text of a stamp; empty if there is none."""
    return stamp.read_text(encoding="utf-8").rstrip("\n") if stamp.exists() else ""


def is_sound() -> bool:
    """Return whether `.venv` runs a Python that is new enough, at its original place."""
    modern = answers(PYTHON, "-c", "import sys; print(sys.version_info >= (3, 11))") == "True"
    places = {read(stamp_of(level)).partition("\n")[0] for level in LEVELS}
    return modern and places <= {"", str(ROOT)}


def make_environment() -> None:
    """Create `.venv` with the pinned uv in it, unless a sound one exists."""
    if not is_sound():
        say(f"making .venv with Python {sys.version.split()[0]}")
        run([sys.executable, "-m", "venv", "--clear", VENV])
    for level in LEVELS:
        stamp_of(level).unlink(missing_ok=True)
    if answers(VENV / "bin" / "uv", "--version").split()[1:2] != [UV]:
        if not answers(PYTHON, "-m", "pip", "--version"):
            run([PYTHON, "-m", "ensurepip", "--upgrade"])
        pip_install = [PYTHON, "-m", "pip", "install", "--quiet", "--no-compile"]
        run([*pip_install, "--only-binary", ":all:", f"uv=={UV}"])


def install(level: str, stamp: str) -> None:
    """Install one level and leave its stamp.

    Args:
        level: A key of LEVELS.
        stamp: Text that bootstrap.sh compares; its first line is the project's directory.
    """
    with alone():
        if any(read(stamp_of(enough)) == stamp for enough in {level, "dev"}):
            return
        make_environment()
        say("installing the packages of uv.lock (the first time takes about a minute)")
        sync = [VENV / "bin" / "uv", "sync", "--quiet", "--frozen", "--compile-bytecode"]
        run([*sync, "--python", PYTHON, *LEVELS[level]])
        # Our own code too: where the shell forbids Python to write bytecode, every start would compile it again.
        # A file that does not compile is the tests' news, not ours.
        compile_all = [PYTHON, "-m", "compileall", "-qq", "-x", "demo/project", "mimir"]
        run(compile_all, must_succeed=False)
        stamp_of(level).write_text(f"{stamp}\n", encoding="utf-8")


def main() -> int:
    """Install as the arguments say; a failed step ends with its own message and 69."""
    level, stamp = sys.argv[1:]
    if level not in LEVELS:
        say(f"no such level: {level!r}; there are {', '.join(LEVELS)}.")
        return 2
    try:
        install(level, stamp)
    except subprocess.CalledProcessError as error:
        say(f"a step failed ({error.returncode}): {' '.join(str(word) for word in error.cmd)}")
        say("the package index must be reachable; running make again goes on from here.")
        return 69
    except OSError as error:
        say(f"an operation of the disk failed: {error}")
        return 69
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
