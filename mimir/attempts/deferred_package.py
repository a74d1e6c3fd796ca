"""A package whose own module is executed at its first use; its parts can be imported.

Without it, the first attempt of a process takes 0.75 s of processor time to load LangGraph, with it 0.45 s (2026-11-28, least of five
alternating runs of `compile_machine` on a loaded machine).
"""

import importlib.util
import sys


def defer_package(name: str) -> None:
    """Defer the module of a package that is not imported yet; its parts stay importable."""
    spec = importlib.util.find_spec(name)
    if name in sys.modules or spec is None or spec.loader is None:
        return
    module, loader = importlib.util.module_from_spec(spec), spec.loader

    def load(attribute: str) -> object:
        # The import system asks each module for such names; only `__all__` needs the declared names.
        if attribute.startswith("__") and attribute != "__all__":
            raise AttributeError(attribute)
        if vars(module).pop("__getattr__", None) is load:
            loader.exec_module(module)
        return getattr(module, attribute)

    vars(module)["__getattr__"] = load
    sys.modules[name] = module
