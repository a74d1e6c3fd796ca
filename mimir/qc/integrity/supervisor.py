"""Runs a Python program and tells whether it came to its own end: `python -c "exec(…)" check.py`, in the place of `python check.py`.

A program that ends with 0 may have been ended by what it was to look at. So it runs in a process below this one, which says by its exit code
that the program was executed to its end, or ended itself: whoever ends the process otherwise ends it with some other code. This one then ends
as the program did, but for one that was ended from elsewhere while there was more of it: that ends with `OPEN`.
It runs in any Python from 3.6 on, below the work's own directory: so it imports little, and nothing from there.
"""

import sys

OPEN = 95
_END = 96
_UNKNOWN = 94
"""Exit code where the program cannot be run here: it is an archive, or what its text is only the interpreter knows."""
_SAFE = sys.flags.isolated or getattr(sys.flags, "safe_path", False)
if __name__ == "__main__" and not _SAFE:
    del sys.path[0]  # the work's directory: what is imported here is the library's

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
"""What a program that is given on the command line is called; here one that is read, too."""
_MIMIR = "<mimir>"
"""What this program is called where it runs: see `shim.sh`."""
_READ = ("", "-")
"""First word of a program that is read from the standard input; Python itself has none where here the first one is empty."""
_RUNNERS = ("behave", "coverage", "nose2", "pytest", "robot", "twisted")
"""Modules of others that run what is the project's."""
_ASKED = ("-h", "--help", "-V", "--version")
"""Whoever asks a program for this expects nothing more of it."""


def main(words: "list[str]", options: str, place: str) -> None:
    """Run the program that `words` name, as they would follow `python`, and end the process.

    Args:
        words: Of the program.
        options: Of this Python.
        place: Folder of the shims, with the paths of programs that are the work (`work`).
    """
    end = os._exit  # before the work can have its own
    if os.environ.pop("MIMIR_SHIMMED", None):
        # Told to look at nothing around it, this Python did not import `rerouting`.
        os.environ["PATH"] = place + os.pathsep + os.environ.get("PATH", os.defpath)
    work = frozenset(Path(place, "work").read_text(errors="surrogateescape").split("\n"))
    if not work.isdisjoint(_files(words)) or _is_tool(words):
        _as_it_is(words, options)
    told = _stand_by(words, options, place)
    code = _run(words, work, told)
    if code not in (OPEN, _UNKNOWN):
        raise SystemExit(code)  # and what is left to do at an end: files to be closed, threads
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # closed, or none
            stream.flush()
    end(code)


def _run(words: "list[str]", work: "frozenset[str]", told: int) -> int:
    """Run the program and return how this process is to end.

    Args:
        words: Of the program.
        work: Files that are the work.
        told: Where to tell that it gives way to another program as its own end; a descriptor.
    """
    code, own, tell, is_its_own_end = _UNKNOWN, _own, _tell, _is_its_own_end
    inline = words[1] if words[0] == "-c" else ""
    try:
        if words[0] in _READ:
            code = OPEN  # whatever comes of it: it cannot be read once more
            inline = sys.stdin.buffer.read().decode(errors="surrogateescape")
        run = _module(words) if words[0] == "-m" else _program(words, inline)
        if hasattr(sys, "addaudithook"):  # from Python 3.8 on
            sys.addaudithook(partial(_look, inline=inline, work=work, told=told, own=os.getpid()))
        code = OPEN
        run()
    except SystemExit as error:
        if error.code not in (None, 0):
            return own(error.code)
        is_asked = not set(words[1:]).isdisjoint(_ASKED)
        calls = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
        return _END if is_asked or is_its_own_end(calls, inline, work) else OPEN
    except BaseException as error:  # noqa: BLE001  whatever it is, it is the program's failure
        if code == _UNKNOWN:
            return code
        tell(error)
        return 1
    return _END


def _files(words: "list[str]") -> "list[str]":
    """Return the files that may hold the program, with all links followed."""
    if words[0] in ("-c", *_READ):
        return []
    if words[0] != "-m":
        return [os.path.realpath(words[0])]
    module = words[1].replace(".", "/")
    places = sys.path if _SAFE else ["", *sys.path]
    ends = (".py", "/__main__.py")
    return [os.path.realpath(Path(one, module + end)) for one in places for end in ends]


def _is_tool(words: "list[str]") -> bool:
    """True for a module of another project that runs no tests: how it ends is its own affair."""
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


def _as_it_is(words: "list[str]", options: str) -> None:
    """Give way to the program, with nobody who watches it."""
    os.environ["MIMIR_SHIMMED"] = "1"
    os.execv(sys.executable, [sys.executable, *options.split(), *words])


def _stand_by(words: "list[str]", options: str, place: str) -> int:
    """Go on as a process of its own, which this one waits for and ends as: with its code or signal; signals are handed on to it.

    Returns:
        Where to tell that what comes now is another program's end: a descriptor.
    """

    def hand_on(number: int, _: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    read, told = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        # Whoever kills this process means the program: that goes with it.
        with contextlib.suppress(Exception):
            import ctypes

            ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        return told
    os.close(told)
    for name in ("HUP", "INT", "QUIT", "TERM", "USR1", "USR2"):
        number = getattr(signal, f"SIG{name}")
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, hand_on)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with contextlib.suppress(OSError):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    code = os.WEXITSTATUS(status)
    if code == _UNKNOWN:
        _as_it_is(words, options)
    if code == OPEN or (code == 0 and not _has_told(read)):
        Path(place, "ended").touch()
        os._exit(OPEN)
    os._exit(0 if code == _END else code)


def _has_told(read: int) -> bool:
    os.set_blocking(read, False)  # a process that it has left behind may have the other end, too
    with contextlib.suppress(BlockingIOError):
        return os.read(read, 1) != b""
    return False


def _tell(error: BaseException) -> None:
    """Do what Python does about an error that nobody caught, but for the end."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == _MIMIR:
        trace = trace.tb_next
    sys.excepthook(type(error), error.with_traceback(trace), trace)
    if isinstance(error, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)


def _own(code: object) -> int:
    """Return the exit code that a program would have ended with that failed."""
    if not isinstance(code, int):
        sys.stderr.write(f"{code}\n")
        return 1
    return 1 if code & 255 in (0, _UNKNOWN, OPEN, _END) else code & 255


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


def _look(event: str, _: object, inline: str, work: "frozenset[str]", told: int, own: int) -> None:
    """Tell that the program gives way to another one, as its own end."""
    if event == "os.exec" and os.getpid() == own:
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        stack = [(one.f_code, line) for one, line in traceback.walk_stack(frame)]
        calls = list(takewhile(lambda call: call[0].co_filename != _MIMIR, stack))
        if _is_its_own_end(calls[::-1], inline, work):
            os.write(told, b"!")


def _is_its_own_end(
    calls: "list[tuple[types.CodeType, int]]", inline: str, work: "frozenset[str]"
) -> bool:
    """True if the program ended itself, or called what ended it as the last thing that it had to do.

    What the work called it may have ended in the same place itself: nothing is asked of its calls.
    """
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
    """True for the program and what it imports, but for libraries."""
    if path == _INLINE:
        return True
    is_library = Path(os.__file__).resolve().parent in Path(path).resolve().parents
    return not (path.startswith("<") or is_library or _is_installed(Path(path)))


def _is_installed(path: Path) -> bool:
    return any(one.name in ("site-packages", "dist-packages") for one in path.resolve().parents)


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
    main(sys.argv[1:], globals()["OPTIONS"], globals()["PLACE"])
