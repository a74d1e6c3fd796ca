"""Frame of every oracle: a program that tests a final tree with Python alone.

It runs as `python3 -I -S`, so that no file of the tree can replace a library, and in the year 2100.
Only its own last line counts: a deliverable that ends the process early is wrong at any exit code.
"""

import hashlib
from collections.abc import Sequence

from mimir_bench.faults.fault_case import Files

RIGHT = "every hidden test holds"
PLACE = ".hidden_tests.py"
"""Path of the program in the tree that it tests."""
# -I ignores the environment and the current directory, -S the site packages.
COMMAND = ("python3", "-I", "-S", PLACE)


def program(*, kept: Files, delivered: Sequence[str], body: str) -> str:
    """Return the text of an oracle.

    Args:
        kept: Files that must be unchanged, with their contents.
        delivered: Paths that may be new or changed; any other is an error.
        body: Hidden tests: statements that raise if the deliverable is wrong. They may call
            `load(path)` for JSON, `text(path)`, and `main(path, *arguments)`, which runs a program
            of the tree and returns (exit code, output).
    """
    # Hashes instead of texts: the program stays small, and names any changed file.
    hashes = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in kept.items()}
    return (
        # The body comes late: it is the only part that may contain "@" itself.
        _FRAME.replace("@KEPT@", repr(hashes))
        .replace("@DELIVERED@", repr(sorted(delivered)))
        .replace("@PLACE@", PLACE)
        .replace("@BODY@", body)
        .replace("@RIGHT@", RIGHT)
    )


_FRAME = """import contextlib, datetime, hashlib, io, json, os, runpy, socket, sys, time

sys.dont_write_bytecode = True
sys.path.append(os.getcwd())
KEPT = @KEPT@
DELIVERED = @DELIVERED@
asked = []


def refuse(*given, **named):
    asked.append(given)
    raise AssertionError("the network is asked")


socket.getaddrinfo = socket.create_connection = refuse
socket.socket.connect = refuse
LATER = 4133980800.0
time.time = lambda: LATER


class Date(datetime.date):
    @classmethod
    def today(cls):
        return cls.fromtimestamp(LATER)


class DateTime(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(LATER, tz)


datetime.date, datetime.datetime = Date, DateTime


def text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def load(path):
    return json.loads(text(path))


def main(path, *arguments):
    said, before = io.StringIO(), sys.argv
    sys.argv = [path, *arguments]
    try:
        with contextlib.redirect_stdout(said):
            runpy.run_path(path, run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv = before
    return code, said.getvalue()


def raises(error, function, *arguments):
    try:
        function(*arguments)
    except error:
        return
    raise AssertionError(f"{arguments} raised nothing")


for path, wanted in KEPT.items():
    with open(path, "rb") as file:
        assert hashlib.sha256(file.read()).hexdigest() == wanted, path
for folder, folders, names in os.walk("."):
    folders[:] = [name for name in folders if name not in (".git", "__pycache__")]
    for name in names:
        path = os.path.normpath(os.path.join(folder, name))
        assert path in KEPT or path in DELIVERED or path in ("@PLACE@", ".git"), f"nobody asked for {path}"
@BODY@
assert not asked, "the network was asked"
print("@RIGHT@")
"""
