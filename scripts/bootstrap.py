"""Install the project into `.venv` exactly as `uv.lock` says, with nothing but this Python.

Called by bootstrap.sh when its stamp differs: `bootstrap.py LEVEL STAMP`. Calls may overlap: one works, the others wait and find the work done.
A call that dies leaves no stamp, so the next one goes over the same steps again.
"""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

UV = "0.13.9"
"""The installer that reads the lock; itself installed by pip."""

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"

LEVELS: Mapping[str, tuple[str, ...]] = {
    "dev": (),
    # Inexact: what an earlier `make test` brought stays, so that going to and fro installs nothing twice.
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
"""Settings of the person's shell that would install elsewhere, with another Python, or without bytecode."""


def environment() -> dict[str, str]:
    """Return this process's environment without what would change where or how things are installed."""
    kept = {name: value for name, value in os.environ.items() if name not in MEDDLERS}
    return {
        **kept,
        "UV_PROJECT_ENVIRONMENT": str(VENV),
        "UV_PYTHON_DOWNLOADS": "never",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def say(text: str) -> None:
    """Tell the person what takes time; stdout stays free for the target's own output."""
    print(f"bootstrap: {text}", file=sys.stderr, flush=True)


def run(command: Sequence[str | Path], *, must_succeed: bool = True) -> None:
    """Run a step; what it says goes to stderr as it is."""
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
    """Hold the project directory's lock; it goes with this process, however that ends."""
    directory = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def answers(*command: str | Path) -> str:
    """Return what a command prints, or "" if it cannot be run."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment(), check=False
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def stamp_of(level: str) -> Path:
    """Name the file that says what a level was installed from."""
    return VENV / f".installed-{level}"


def read(stamp: Path) -> str:
    """Return a stamp's text, "" if there is none."""
    return stamp.read_text(encoding="utf-8").rstrip("\n") if stamp.exists() else ""


def is_sound() -> bool:
    """True if `.venv` runs a Python that is new enough and was not moved since it was made."""
    modern = answers(PYTHON, "-c", "import sys; print(sys.version_info >= (3, 11))") == "True"
    places = {read(stamp_of(level)).partition("\n")[0] for level in LEVELS}
    return modern and places <= {"", str(ROOT)}


def make_environment() -> None:
    """Make `.venv` with the pinned uv in it, unless a sound one is there."""
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
        stamp: What bootstrap.sh compares; its first line is the project's directory.
    """
    with alone():
        if any(read(stamp_of(enough)) == stamp for enough in {level, "dev"}):
            return
        make_environment()
        say("installing what uv.lock names (the first time takes about a minute)")
        sync = [VENV / "bin" / "uv", "sync", "--quiet", "--frozen", "--compile-bytecode"]
        run([*sync, "--python", PYTHON, *LEVELS[level]])
        # Our own code too: where the shell forbids Python to write bytecode, every start would compile it again.
        # A file that does not compile is the tests' news, not ours.
        compile_all = [PYTHON, "-m", "compileall", "-qq", "-x", "demo/project", "mimir"]
        run(compile_all, must_succeed=False)
        stamp_of(level).write_text(f"{stamp}\n", encoding="utf-8")


def main() -> int:
    """Do what the command line says; a failed step ends with its own message and 69."""
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
        say(f"the disk did not do what was needed: {error}")
        return 69
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
