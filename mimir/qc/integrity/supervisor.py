"""Supervisor of a Python program, run in its place: does the program reach its own end?

A program that ends with 0 may have been ended by code that it was to check. So it runs in a child process, whose exit code says that the
program was executed to its end, or ended itself; a process that is ended otherwise has another code. The parent then ends as the program
did. If code from elsewhere ended the program early, the parent ends with `OPEN`. This file runs in any Python from 3.6 on, in the work's
own directory. So it imports little, and nothing from there.
"""

import sys

OPEN = 95
_END = 96
_UNKNOWN = 94
"""Exit code of a program that cannot run here, such as an archive."""
_SAFE = sys.flags.isolated or getattr(sys.flags, "safe_path", False)
if __name__ == "__main__" and not _SAFE:
    del sys.path[0]  # the work's directory, so that imports here find the library

import ast  # noqa: E402
import contextlib  # noqa: E402
import importlib.util  # noqa: E402
import os  # noqa: E402
import runpy  # noqa: E402
import signal  # noqa: E402
import traceback  # noqa: E402
import types  # noqa: E402
from functools import partial  # noqa: E402
from importlib.machinery import SourceFileLoader  # noqa: E402
from itertools import takewhile  # noqa: E402
from pathlib import Path  # noqa: E402

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_ENDING = ("SystemExit", "exit", "quit")
_INLINE = "<string>"
"""File name of a program from the command line, and here of one from standard input."""
_MIMIR = "<mimir>"
"""File name of this program while it runs: see `shim.sh`."""
_READ = ("", "-")
"""First word of a program from standard input; the empty one stands for a missing word."""
_RUNNERS = ("behave", "coverage", "nose2", "pytest", "robot", "twisted")
"""Installed modules that run code of the project."""
_ASKED = ("-h", "--help", "-V", "--version")
"""Options after which a program does nothing but print."""


def main(words: "list[str]", options: str, place: str) -> None:
    """Run a program, and end the process as it ended; `words` follow `python`, with `options`.

    `place` is the folder of the shims, with the paths of programs that are the work (`work`).
    """
    end = os._exit  # bound before the work can replace it
    if os.environ.pop("MIMIR_SHIMMED", None):
        # An isolated Python did not import `sitecustomize_shim`.
        os.environ["PATH"] = place + os.pathsep + os.environ.get("PATH", os.defpath)
    work = frozenset(Path(place, "work").read_text(errors="surrogateescape").split("\n"))
    if not work.isdisjoint(_files(words)) or _is_tool(words):
        _run_unsupervised(words, options)
    pipe = _fork(words, options, place)
    code = _run(words, work, pipe)
    if code not in (OPEN, _UNKNOWN):
        raise SystemExit(code)  # the interpreter still closes files and joins threads
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # closed or absent
            stream.flush()
    end(code)


def _run(words: "list[str]", work: "frozenset[str]", pipe: int) -> int:
    """Run the program and return the exit code of this process; `pipe` as of `_fork`."""
    code, failed, report, is_own_end = _UNKNOWN, _failure_code, _report_error, _is_own_end
    inline = words[1] if words[0] == "-c" else ""
    try:
        if words[0] in _READ:
            code = OPEN  # in any case: standard input cannot be read again
            inline = sys.stdin.buffer.read().decode(errors="surrogateescape")
        run = _module(words) if words[0] == "-m" else _program(words, inline)
        if hasattr(sys, "addaudithook"):  # from Python 3.8 on
            sys.addaudithook(
                partial(_report_exec, inline=inline, work=work, pipe=pipe, own=os.getpid())
            )
        code = OPEN
        run()
    except SystemExit as error:
        if error.code not in (None, 0):
            return failed(error.code)
        is_asked = not set(words[1:]).isdisjoint(_ASKED)
        calls = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
        return _END if is_asked or is_own_end(calls, inline, work) else OPEN
    except BaseException as error:  # noqa: BLE001  any error is the program's failure
        if code == _UNKNOWN:
            return code
        report(error)
        return 1
    return _END


def _files(words: "list[str]") -> "list[str]":
    """Return the files that may hold the program, with links resolved."""
    if words[0] in ("-c", *_READ):
        return []
    if words[0] != "-m":
        return [os.path.realpath(words[0])]
    module = words[1].replace(".", "/")
    places = sys.path if _SAFE else ["", *sys.path]
    ends = (".py", "/__main__.py")
    return [os.path.realpath(Path(one, module + end)) for one in places for end in ends]


def _is_tool(words: "list[str]") -> bool:
    """True for an installed module that runs no tests: its end is not examined."""
    name = words[1].partition(".")[0] if words[0] == "-m" else ""
    if not name or name in _RUNNERS:
        return False
    was = list(sys.path)
    if not _SAFE:
        sys.path.insert(0, str(Path.cwd()))
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return False
    finally:
        sys.path[:] = was
    return spec is not None and _is_installed(Path(spec.origin or ""))


def _run_unsupervised(words: "list[str]", options: str) -> None:
    """Replace this process by the program, without supervision."""
    os.environ["MIMIR_SHIMMED"] = "1"
    os.execv(sys.executable, [sys.executable, *options.split(), *words])


def _fork(words: "list[str]", options: str, place: str) -> int:
    """Continue in a child process; the parent forwards signals and ends as the child does.

    The descriptor reports that another program replaces this one, as its own end.
    """

    def forward(number: int, _: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    # Only the pipe can tell an exec of the program from an early end with 0.
    read, pipe = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        # A signal that kills the parent is meant for the program, so the child dies with it.
        with contextlib.suppress(Exception):
            import ctypes

            ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        return pipe
    os.close(pipe)
    for name in ("HUP", "INT", "QUIT", "TERM", "USR1", "USR2"):
        number = getattr(signal, f"SIG{name}")
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, forward)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with contextlib.suppress(OSError):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    code = os.WEXITSTATUS(status)
    if code == _UNKNOWN:
        _run_unsupervised(words, options)
    if code == OPEN or (code == 0 and not _has_reported(read)):
        Path(place, "ended").touch()
        os._exit(OPEN)
    # `os._exit`: exit handlers belong to the child, which has run them.
    os._exit(0 if code == _END else code)


def _has_reported(read: int) -> bool:
    os.set_blocking(read, False)  # a process that the program left behind may hold the other end
    with contextlib.suppress(BlockingIOError):
        return os.read(read, 1) != b""
    return False


def _report_error(error: BaseException) -> None:
    """Report an uncaught error as Python does, without ending the process."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == _MIMIR:
        trace = trace.tb_next
    sys.excepthook(type(error), error.with_traceback(trace), trace)
    if isinstance(error, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)


def _failure_code(code: object) -> int:
    """Return the exit code of a failed program, distinct from the codes of this module."""
    if not isinstance(code, int):
        sys.stderr.write(f"{code}\n")
        return 1
    return 1 if code & 255 in (0, _UNKNOWN, OPEN, _END) else code & 255


def _program(words: "list[str]", inline: str) -> "Callable[[], object]":
    """Prepare a script, or a program from the command line or standard input."""
    module = types.ModuleType("__main__")
    if words[0] in ("-c", *_READ):
        name, program, place = _INLINE, inline.encode(errors="surrogateescape"), ""
        sys.argv = [words[0], *words[2 if words[0] == "-c" else 1 :]]
    else:
        name, program = words[0], Path(words[0]).read_bytes()
        place = str(Path(name).resolve().parent)
        sys.argv = list(words)
        module.__file__ = name
        module.__loader__ = SourceFileLoader("__main__", name)
    if not _SAFE:
        sys.path.insert(0, place)
    sys.modules["__main__"] = module
    return partial(exec, compile(program, name, "exec", dont_inherit=True), module.__dict__)


def _module(words: "list[str]") -> "Callable[[], object]":
    """Prepare a module."""
    if not _SAFE:
        sys.path.insert(0, str(Path.cwd()))
    sys.argv = list(words[1:])
    return partial(runpy.run_module, words[1], run_name="__main__", alter_sys=True)


def _report_exec(
    event: str, _: object, inline: str, work: "frozenset[str]", pipe: int, own: int
) -> None:
    """Report that another program replaces this one, as its own end."""
    if event == "os.exec" and os.getpid() == own:
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        stack = [(one.f_code, line) for one, line in traceback.walk_stack(frame)]
        calls = list(takewhile(lambda call: call[0].co_filename != _MIMIR, stack))
        if _is_own_end(calls[::-1], inline, work):
            os.write(pipe, b"!")


def _is_own_end(
    calls: "list[tuple[types.CodeType, int]]", inline: str, work: "frozenset[str]"
) -> bool:
    """True if the program ended itself, or what ended it was its last call."""
    # Code that is the work may have ended at the same place itself, so its calls are not examined.
    calls = [(code, line) for code, line in calls if _is_of_project(code.co_filename)]
    if not calls:
        return True
    ended_by = calls[-1][0].co_filename
    callers = takewhile(lambda call: call[0].co_filename != ended_by, calls)
    try:
        return all(
            os.path.realpath(code.co_filename) in work or _is_last(code, line, inline)
            for code, line in callers
        )
    except (OSError, SyntaxError, AttributeError, ValueError):
        return True


def _is_of_project(path: str) -> bool:
    """True for the program and its imports, except libraries."""
    if path == _INLINE:
        return True
    is_library = Path(os.__file__).resolve().parent in Path(path).resolve().parents
    return not (path.startswith("<") or is_library or _is_installed(Path(path)))


def _is_installed(path: Path) -> bool:
    return any(one.name in ("site-packages", "dist-packages") for one in path.resolve().parents)


def _is_last(code: types.CodeType, line: int, inline: str) -> bool:
    """True if the call in this line is the last step of its function or module."""
    is_inline = code.co_filename == _INLINE
    tree = ast.parse(inline if is_inline else Path(code.co_filename).read_bytes())
    if code.co_name == "<module>":
        return _is_tail(tree.body, line)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == code.co_name:
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            if first == code.co_firstlineno:
                return _is_tail(node.body, line)
    return False


def _is_tail(body: "list[ast.stmt]", line: int) -> bool:
    last = body[-1]
    if not last.lineno <= line <= (last.end_lineno or line):
        return False
    if isinstance(last, (ast.If, ast.With, ast.Try)):
        parts = [last.body, getattr(last, "orelse", []), getattr(last, "finalbody", [])]
        parts += [one.body for one in getattr(last, "handlers", [])]
        if isinstance(last, ast.Try) and last.orelse:
            del parts[0]
        return any(part and _is_tail(part, line) for part in parts)
    if isinstance(last, ast.Raise):
        return _is_bare_call(last.exc)
    return isinstance(last, (ast.Expr, ast.Return, ast.Assign)) and _is_bare_call(last.value)


def _is_bare_call(node: "ast.expr | None") -> bool:
    """True for `main(…)` and `sys.exit(main(…))`, whose result is an exit code alone."""
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    given = [*node.args, *(one.value for one in node.keywords)]
    if name in _ENDING and len(given) == 1 and isinstance(given[0], ast.Call):
        return _is_bare_call(given[0])
    return not any(isinstance(inner, ast.Call) for one in given for inner in ast.walk(one))


if __name__ == "__main__":
    main(sys.argv[1:], globals()["OPTIONS"], globals()["PLACE"])
