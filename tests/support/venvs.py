"""A project's own `.venv` with the project installed editable in it: the files of `pip install -e .`, without a network."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

FINDER = """\
import importlib.util
import sys

MAPPING = {mapping!r}


class _EditableFinder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        place = MAPPING.get(name)
        if place is None:
            return None
        return importlib.util.spec_from_file_location(name, place + "/__init__.py")


def install():
    sys.meta_path.append(_EditableFinder)
"""
BLANK_SHEBANG = """\
#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''"""
"""Start lines that installers write where the interpreter's path holds a blank: the kernel would cut it there."""
SCRIPT = """\
{shebang}
import sys
from {package}.{module} import main
sys.exit(main())
"""


def make_venv(project: Path) -> Path:
    """Make `.venv` in a project, without pip; return its directory for packages."""
    command = [sys.executable, "-m", "venv", "--without-pip", str(project / ".venv")]
    subprocess.run(command, check=True, capture_output=True)
    [packages] = (project / ".venv" / "lib").glob("python3*/site-packages")
    return packages


def install_editable(
    project: Path, package: str, scripts: Mapping[str, str], *, finder: bool
) -> None:
    """Install `src/<package>` editable.

    Args:
        project: Its directory.
        package: Name of the package below `src`.
        scripts: Console script → module of the package that has its `main`.
        finder: With an import hook, as setuptools does for most layouts; False: by a path in a `.pth` file.
    """
    packages = make_venv(project)
    source = project / "src"
    if finder:
        name = f"__editable___{package}_1_0_finder"
        text = FINDER.format(mapping={package: str(source / package)})
        (packages / f"{name}.py").write_text(text, encoding="utf-8")
        path_line = f"import {name}; {name}.install()\n"
    else:
        path_line = f"{source}\n"
    (packages / f"__editable__.{package}-1.0.pth").write_text(path_line, encoding="utf-8")
    about = packages / f"{package}-1.0.dist-info"
    about.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n"
    (about / "METADATA").write_text(metadata, encoding="utf-8")
    url = f'{{"dir_info": {{"editable": true}}, "url": "file://{project}"}}'
    (about / "direct_url.json").write_text(url, encoding="utf-8")
    python = project / ".venv" / "bin" / "python"
    shebang = BLANK_SHEBANG.format(python=python) if " " in str(python) else f"#!{python}"
    for script, module in scripts.items():
        place = project / ".venv" / "bin" / script
        text = SCRIPT.format(shebang=shebang, package=package, module=module)
        place.write_text(text, encoding="utf-8")
        place.chmod(0o755)
