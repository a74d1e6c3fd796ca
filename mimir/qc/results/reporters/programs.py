"""Start of go, cargo and ctest in their place: output is shown, and kept as a report.

`go test` runs with `-json`, and its lines are shown as prose. ctest writes JUnit XML itself. mimir's own interpreter runs this file.
"""
# pyright: basic, reportMissingParameterType=false

import json
import os
import selectors
import shutil
import subprocess
import sys

NO_TEST_RUN = {
    "go": {"-json", "--json", "-c", "-n", "-list", "--list", "-h", "-help", "--help"},
    "cargo": {"--no-run", "--help", "-h", "--list"},
    "ctest": {
        *("-N", "--show-only", "-H", "-h", "--help", "--version", "--print-labels", "-S", "-SP"),
        *("-D", "-T", "-M", "--build-and-test", "--dashboard", "--output-junit"),
    },
}
"""Options with which a program runs no tests, or reports them itself."""


def main(starter, words):
    """Replace this process by the program, unless it runs tests that can be reported."""
    own, name = os.path.split(os.path.realpath(starter))
    places = os.environ.get("PATH", os.defpath).split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join(p for p in places if os.path.realpath(p) != own)
    program = shutil.which(name)
    if program is None:
        sys.stderr.write("sh: 1: %s: not found\n" % name)
        raise SystemExit(127)
    folder = os.environ.get("MIMIR_RESULTS", "")
    # ctest shows its output and writes the report: it needs no process around it.
    if name == "ctest" and folder and NO_TEST_RUN[name].isdisjoint(words):
        report = os.path.join(folder, "ctest-%d.ctest" % os.getpid())
        # Its programs would report their tests a second time.
        os.environ.pop("GTEST_OUTPUT", None)
        os.execv(program, [program, *words, "--output-junit", report])
    at = _place_of_test(words)
    if (
        not folder
        or at is None
        or name == "ctest"
        or (name == "go" and not NO_TEST_RUN[name].isdisjoint(words))
    ):
        os.execv(program, [program, *words])
    del os.environ["MIMIR_RESULTS"]
    report = os.path.join(folder, "%s-%d.%s" % (name, os.getpid(), _ENDINGS[name]))
    if name == "cargo":
        # Quiet programs show dots, and no names of tests.
        os.environ["CARGO_TERM_QUIET"] = "false"
        words = [word for word in words if word not in _QUIET]
        at = _place_of_test(words) or 0
    json_words = ["-json"] if name == "go" else []
    argv = [program, *words[: at + 1], *json_words, *words[at + 1 :]]
    with open(report, "xb") as out:
        is_brief = name == "go" and _VERBOSE.isdisjoint(words)
        show = _show_brief if is_brief else _show_go if name == "go" else _show
        raise SystemExit(_run(argv, out, show))


_QUIET = {"-q", "--quiet", "--format=terse"}
_ENDINGS = {"go": "gojson", "cargo": "libtest"}
_VERBOSE = {"-v", "--v", "-v=true", "-test.v", "-test.v=true"}


def _place_of_test(words):
    """Return the place of the word `test` as the command; None: another command."""
    at = 0
    while at < len(words) and words[at].startswith(("-", "+")):
        at += 2 if words[at] in ("-C", "--config", "-Z", "--color") else 1
    return at if at < len(words) and words[at] in ("test", "t") else None


def _run(argv, out, show):
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if process.stdout is None or process.stderr is None:
        return 1
    with selectors.DefaultSelector() as pipes:
        # Standard error first: cargo names there the file whose tests follow.
        pipes.register(process.stderr, selectors.EVENT_READ, [b"", _show, sys.stderr.buffer])
        pipes.register(process.stdout, selectors.EVENT_READ, [b"", show, sys.stdout.buffer])
        while pipes.get_map():
            for key, _ in pipes.select():
                _forward(pipes, key, out)
    code = process.wait()
    return code if code >= 0 else 128 - code


def _forward(pipes, key, out):
    """Record and show the complete lines that a pipe holds."""
    rest, show, stream = key.data
    data = os.read(key.fd, 65536)
    if not data:
        pipes.unregister(key.fileobj)
    lines = (rest + data).splitlines(keepends=True)
    key.data[0] = lines.pop() if data and lines and not lines[-1].endswith(b"\n") else b""
    for line in lines:
        out.write(line)
        stream.write(show(line))
    stream.flush()


def _show(line):
    return line


def _show_go(line):
    """Return the prose of one line of `go test -json`."""
    try:
        event = json.loads(line)
        return event.get("Output", "").encode() if isinstance(event, dict) else line
    except ValueError:
        return line


def _show_brief(line):
    """Return the same without the names of tests that did not fail, as without `-v`."""
    text = _show_go(line)
    is_name = text.lstrip().startswith((b"=== ", b"--- PASS: ", b"--- SKIP: "))
    return b"" if is_name and text != line else text


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
