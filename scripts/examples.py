"""Write the examples in `chains/` and `generated-agents/`: the files that a run of the demo's project leaves.

`python -m scripts.examples` runs the demo's request with its scripted models in a directory of its own and replaces the two folders.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("chains", "generated-agents")
LOCAL = re.compile(r"(?<![\w.])/(?:home|root|tmp|work|Users|var|private)/")
"""A path of one machine, which an example must not hold."""


def main() -> int:
    """Run the demo and copy its files; the exit code."""
    with tempfile.TemporaryDirectory() as directory:
        project = Path(directory) / "tally"
        demo = [sys.executable, "-m", "mimir", "demo", "--directory", str(project)]
        done = subprocess.run(demo, cwd=ROOT, check=False)
        if done.returncode:
            return done.returncode
        for folder in FOLDERS:
            shutil.rmtree(ROOT / folder, ignore_errors=True)
            shutil.copytree(project / folder, ROOT / folder)
    script = (ROOT / "mimir" / "demo" / "script.yaml").as_posix()
    for path in (ROOT / "generated-agents").glob("*.md"):
        # The demo names its model script by an absolute path; an example names it from the top of the repository.
        path.write_text(
            path.read_text(encoding="utf-8").replace(script, "mimir/demo/script.yaml"),
            encoding="utf-8",
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
