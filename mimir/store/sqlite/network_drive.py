"""Detection of network drives, on which the locks of SQLite's log do not hold."""

import os
import re
from pathlib import Path

# File systems whose files another machine may have open.
_NETWORK = re.compile(
    r"nfs\d*|cifs|smb\w*|ncpfs|afs|9p|ceph|glusterfs|lustre|gpfs|beegfs|orangefs|ocfs2|gfs2|davfs|fuse\.(sshfs|\w*s3\w*|rclone|"
    r"gcsfuse|davfs2?|glusterfs|ceph\w*|curlftpfs|juicefs)"
)
_MOUNTS = Path("/proc/self/mountinfo")


def network_drive(path: Path) -> str:
    """Return the kind of network drive that holds a file; empty if none is known."""
    # Without `/proc`, no drive is reported: a false warning would be worse.
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
    kind = file_system(os.path.realpath(path), mounts)
    return kind if _NETWORK.fullmatch(kind) else ""


def file_system(path: str, mounts: str) -> str:
    """Return the kind of the file system of an absolute path; empty if none is known."""
    # Of two mounts at one place, the later one counts.
    kind, longest = "", -1
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields, behind = before.split(), after.split()
        if len(fields) < 5 or not behind:
            continue
        place = re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
        inside = path == place or path.startswith(place.rstrip("/") + "/")
        if inside and len(place) >= longest:
            kind, longest = behind[0], len(place)
    return kind
