"""A store on a network drive is found out by the kind of its file system."""

import pytest

from mimir.bootstrap import stores
from mimir.settings.layers import load
from mimir.store.sqlite import network_drive

MOUNTS = r"""
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 21 0:50 / /home rw shared:2 - nfs4 server:/home rw,vers=4.2
31 30 0:51 / /home/anna/fast rw - ext4 /dev/sdb1 rw
32 21 0:52 / /mnt/with\040blank rw - cifs //server/share rw
33 21 0:53 / /mnt/cloud rw - fuse.sshfs anna@host: rw
34 21 0:54 / /mnt/twice rw - ext4 /dev/sdc1 rw
35 34 0:55 / /mnt/twice rw - 9p share rw
a line that is none
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/srv/mimir.db", "ext4"),
        ("/home/anna/p/.mimir/mimir.db", "nfs4"),
        ("/homeless/mimir.db", "ext4"),
        ("/home/anna/fast/mimir.db", "ext4"),
        ("/mnt/with blank/mimir.db", "cifs"),
        ("/mnt/cloud/mimir.db", "fuse.sshfs"),
        ("/mnt/twice/mimir.db", "9p"),
    ],
)
def test_file_system_is_that_of_the_innermost_mount(path, kind):
    assert network_drive.file_system(path, MOUNTS) == kind


def test_file_system_without_mounts_is_unknown(tmp_path, monkeypatch):
    monkeypatch.setattr(network_drive, "_MOUNTS", tmp_path / "nothing")

    assert network_drive.network_drive(tmp_path) == ""


@pytest.mark.parametrize(("kind", "warned"), [("nfs4", True), ("ext4", False)])
def test_store_on_a_network_drive_gives_a_warning(
    tmp_path, monkeypatch, frozen_clock, kind, warned
):
    (tmp_path / "mounts").write_text(f"21 1 8:1 / / rw - {kind} x rw\n", encoding="utf-8")
    monkeypatch.setattr(network_drive, "_MOUNTS", tmp_path / "mounts")
    settings = load(tmp_path, environment={}).settings
    said = []

    stores.open_store(settings, tmp_path, frozen_clock, door="d", say=said.append, create=True)

    assert [f"on a network drive ({kind})" in line for line in said] == [True] * warned
