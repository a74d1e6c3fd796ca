"""Start of the reporters in each Python: of unittest by import, of pytest as a plugin.

Python imports this module by its name at its start; the project's own module of this name is executed after it.
"""
# pyright: basic, reportMissingParameterType=false

import importlib.machinery
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_RUNNER = "unittest.runner"


class _UnittestFinder:
    """Finder that lets `mimir_unittest` observe unittest as soon as a program imports it."""

    def find_spec(self, name, path=None, target=None):
        if name != _RUNNER:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            from mimir_unittest import report_unittest

            report_unittest(module, sys.modules["unittest.result"])

        spec.loader.exec_module = exec_module
        return spec


def _start():
    if os.environ.get("MIMIR_RESULTS"):
        known = os.environ.get("PYTEST_PLUGINS")
        if "mimir_pytest" not in (known or ""):
            os.environ["PYTEST_PLUGINS"] = (known + "," if known else "") + "mimir_pytest"
        sys.meta_path.insert(0, _UnittestFinder())


def _import_own():
    """Execute the module that this one hides."""
    path = [one for one in sys.path if os.path.abspath(one) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    _start()
    import importlib.util

    _import_own()
