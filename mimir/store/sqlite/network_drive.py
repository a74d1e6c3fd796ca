"""Whether a file lies on a network drive: there the locks do not hold that several processes of SQLite's write-ahead log need."""

import os
import re
from pathlib import Path

_NETWORK = re.compile(
    r"nfs\d*|cifs|smb\w*|ncpfs|afs|9p|ceph|glusterfs|lustre|gpfs|beegfs|orangefs|ocfs2|gfs2|davfs|fuse\.(sshfs|\w*s3\w*|rclone|"
    r"gcsfuse|davfs2?|glusterfs|ceph\w*|curlftpfs|juicefs)"
)
"""Kinds of file systems whose files another machine may have open."""
_MOUNTS = Path("/proc/self/mountinfo")


def network_drive(path: Path) -> str:
    """Return the kind of network drive on which a file lies, or would; empty: on none, or nobody can tell."""
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
    kind = file_system(os.path.realpath(path), mounts)
    return kind if _NETWORK.fullmatch(kind) else ""


def file_system(path: str, mounts: str) -> str:
    """Return the kind of the file system that holds a path; empty: none does. Pure.

    Args:
        path: Absolute, without links.
        mounts: As Linux tells them in `/proc/self/mountinfo`; of two at one place the later one counts.
    """
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
