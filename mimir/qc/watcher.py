"""Runs a Python program and tells whether it came to its own end: `python -c "exec(…)" check.py`, in the place of `python check.py`.

A program that ends with 0 may have been ended by what it was to look at. This one ends with `END` if the program was executed to its end, or
ended itself; with `OPEN` if it failed, or was ended from elsewhere while there was more of it. Whoever ends the whole process ends it with
some other code. Below another program (`BELOW`) it ends as the program in its place does, but for one that was ended: that ends with `OPEN`.
It runs in any Python from 3.6 on, below the work's own directory: so it imports little, and nothing from there.
"""

import sys

END, OPEN = 96, 95
_UNKNOWN = 94
"""Exit code where the program cannot be run here: it is an archive, or what its text is only the interpreter knows."""
_SAFE = sys.flags.isolated or getattr(sys.flags, "safe_path", False)
if __name__ == "__main__" and not _SAFE:
    del sys.path[0]  # the work's directory: what is imported here is the library's

import ast  # noqa: E402
import contextlib  # noqa: E402
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
"""What a program that is given on the command line is called; here one that is read, too."""
_READ = ("", "-")
"""First word of a program that is read from the standard input; Python itself has none where here the first one is empty."""


def main(words: "list[str]", below: "str | None" = None) -> None:
    """Run the program that `words` name, as they would follow `python`, and end the process.

    Args:
        words: Of the program.
        below: Options of this Python, where another program waits for the exit code.
    """
    end, code, own = os._exit, _UNKNOWN, _own  # before the work can have its own
    if below is not None:
        _stand_by(words, below.split())
    inline = words[1] if words[0] == "-c" else ""
    try:
        if words[0] in _READ:
            code = OPEN  # whatever comes of it: it cannot be read once more
            inline = sys.stdin.buffer.read().decode(errors="surrogateescape")
        run = _module(words) if words[0] == "-m" else _program(words, inline)
        code = OPEN
        run()
        code = END
    except SystemExit as error:
        if error.code in (None, 0):
            code = END if _is_its_own_end(error, inline) else OPEN
        elif below is not None:
            code = own(error.code)
    except BaseException:  # noqa: BLE001  whatever it is, it is the program's failure
        traceback.print_exc()
        code = 1 if below is not None and code == OPEN else code
    if code == END:
        raise SystemExit(END)  # and what is left to do at an end: files to be closed, threads
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # closed, or none
            stream.flush()
    end(code)


def _stand_by(words: "list[str]", options: "list[str]") -> None:
    """Go on as a process of its own, which this one waits for and ends as: with its code or signal; signals are handed on to it."""
    child = os.fork()
    if not child:
        # Whoever kills this process means the program: that goes with it.
        with contextlib.suppress(Exception):
            import ctypes

            ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        return
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, _: os.kill(child, number))
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with contextlib.suppress(OSError):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    code = os.WEXITSTATUS(status)
    if code == _UNKNOWN:
        os.execv(sys.executable, [sys.executable, *options, *words])
    os._exit({END: 0, 0: OPEN}.get(code, code))


def _own(code: object) -> int:
    """Return the exit code that a program would have ended with that failed."""
    if not isinstance(code, int):
        sys.stderr.write(f"{code}\n")
        return 1
    return 1 if code & 255 in (0, _UNKNOWN, OPEN, END) else code & 255


def _program(words: "list[str]", inline: str) -> "Callable[[], object]":
    """Make ready a script, or a program given on the command line or read."""
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
    """Make ready a module."""
    if not _SAFE:
        sys.path.insert(0, str(Path.cwd()))
    sys.argv = list(words[1:])
    return partial(runpy.run_module, words[1], run_name="__main__", alter_sys=True)


def _is_its_own_end(error: SystemExit, inline: str) -> bool:
    """True if the program ended itself, or called what ended it as the last thing that it had to do."""
    calls = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    calls = [(code, line) for code, line in calls if _is_of_project(code.co_filename)]
    if not calls:
        return True
    ended_by = calls[-1][0].co_filename
    callers = takewhile(lambda call: call[0].co_filename != ended_by, calls)
    try:
        return all(_is_last(code, line, inline) for code, line in callers)
    except (OSError, SyntaxError, AttributeError, ValueError):
        return True


def _is_of_project(path: str) -> bool:
    """True for the program and what it imports, but for libraries."""
    if path == _INLINE:
        return True
    parents = Path(path).resolve().parents
    is_library = Path(os.__file__).resolve().parent in parents
    is_installed = any(one.name in ("site-packages", "dist-packages") for one in parents)
    return not (path.startswith("<") or is_library or is_installed)


def _is_last(code: types.CodeType, line: int, inline: str) -> bool:
    """True if nothing remains of what is executed, when the call in this line is over."""
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
    """True for `main(…)` and `sys.exit(main(…))`: nothing is made of what comes back but an exit code."""
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    given = [*node.args, *(one.value for one in node.keywords)]
    if name in _ENDING and len(given) == 1 and isinstance(given[0], ast.Call):
        return _is_bare_call(given[0])
    return not any(isinstance(inner, ast.Call) for one in given for inner in ast.walk(one))


if __name__ == "__main__":
    main(sys.argv[1:], globals().get("BELOW"))
