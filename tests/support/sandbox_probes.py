"""Possible escapes of a worker's command from its sandbox. A probe that escapes prints ESCAPED, or reaches a watched target.

`@NAME@` is replaced by a word of the site. Each knows where everything is; nothing depends on a secret place.
"""

from dataclasses import dataclass
from typing import Literal

Ends = Literal["itself", "stopped"]


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One attempt."""

    name: str
    program: tuple[str, ...]
    ends: Ends = "itself"
    """`stopped`: it never ends by itself; the engine must end it and all that it started."""
    seconds: float = 20.0


def sh(name: str, text: str, **more: object) -> Probe:
    """Return a probe in bash."""
    return Probe(name=name, program=("bash", "-c", text), **more)  # type: ignore[arg-type]


def py(name: str, text: str, **more: object) -> Probe:
    """Return a probe in Python; an exception counts as blocked."""
    return Probe(name=name, program=("python", "-c", _HEAD + text), **more)  # type: ignore[arg-type]


_HEAD = """
import ctypes, fcntl, os, signal, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(*args):
    got = libc.syscall(*[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    if got < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return got
def read(path):
    try:
        print(open(path, "rb").read(100_000))
    except OSError as error:
        print(path, error)
"""

READS = [
    sh("home", "ls -la @HOME_DIR@ ~; cat @HOME_DIR@/.netrc @HOME_DIR@/.ssh/*"),
    sh("keys", "find / -xdev \\( -name 'id_*' -o -name '.netrc' -o -name credentials -o -name '*.pem' \\) -newermt 2020-01-01 -exec cat {} + 2>/dev/null | grep canary; true"),
    sh("settings of the person", "cat @HOME_DIR@/.config/mimir/mimir.toml ~/.config/mimir/mimir.toml"),
    sh("environment", "env; cat /proc/self/environ"),
    sh("environment of others", "cat /proc/*/environ | tr '\\0' '\\n'"),
    sh("command lines", "cat /proc/*/cmdline | tr '\\0' ' '"),
    sh("first process", "ls -la /proc/1/; cat /proc/1/environ /proc/1/maps; ls -la /proc/1/fd /proc/1/root/"),
    sh("root of the first process", "cat /proc/1/root@HOME_DIR@/.netrc /proc/1/cwd/secret.txt && echo ESCAPED"),
    sh("the engine's process", "cat /proc/@ENGINE@/environ /proc/@VICTIM@/environ && echo ESCAPED"),
    sh("store", "cat @STORE@; ls @PROJECT@/.mimir /workspace/.mimir; python -c \"import sqlite3; print(sqlite3.connect('file:@STORE@?mode=ro', uri=True).execute('select 1'))\""),
    sh("other workspaces", "ls -R @OTHER@ /workspace/..; cat @OTHER@/secret.txt ../other/secret.txt ../../*/other/secret.txt"),
    sh("project", "ls -la @PROJECT@; cat @PROJECT@/.env @PROJECT@/.git/config @PROJECT@/chains/x/chain-output.md"),
    sh("the tests themselves", "cat @TESTS@/sandbox_site.py && echo ESCAPED"),
    sh("links out", "ln -s @HOME_DIR@/.netrc l; cat l; ln -s / r; cat r@OTHER@/secret.txt; ln -s /proc/1/root q; cat q@STORE@"),
    sh("hard links out", "ln @HOME_DIR@/.netrc h && cat h; ln -L /proc/self/fd/0 z"),
    py("inherited descriptors", "for n in range(3, 4096):\n  try:\n    os.lseek(n, 0, 0); print(n, os.read(n, 1000))\n  except OSError: pass\nread('/proc/self/fd/@FD@')"),
    sh("shadow", "cat /etc/shadow /etc/gshadow && echo ESCAPED; cat /etc/ssh/*key && echo ESCAPED"),
    sh("kernel memory", "head -c 10 /dev/mem && echo ESCAPED; head -c 10 /dev/kmem && echo ESCAPED; head -c 10 /proc/kcore && echo ESCAPED"),
    sh("kernel log", "head -c 10 /dev/kmsg && echo ESCAPED; timeout 1 cat /proc/kmsg && echo ESCAPED"),
    sh("disks", "ls /dev/sd* /dev/vd* /dev/nvme* /dev/xvd* /dev/dm-* /dev/loop* 2>/dev/null && echo ESCAPED; true"),
    sh("system of files in /sys", "ls /sys/kernel /sys/fs/cgroup && echo ESCAPED"),
    sh("sudo", "sudo -n id && echo ESCAPED; su -c id && echo ESCAPED; pkexec id && echo ESCAPED"),
    py("memory of the engine", "read('/proc/@ENGINE@/mem')\nheld = ctypes.create_string_buffer(100)\nvector = ctypes.create_string_buffer(struct.pack('QQ', ctypes.addressof(held), 100))\nfor pid in (@ENGINE@, @VICTIM@):\n  try:\n    call(310, pid, vector, 1, vector, 1, 0); print('ESCAPED')\n  except OSError as e:\n    print('ESCAPED, it was found' if e.errno == 14 else e)"),
    py("trace the engine", "for pid in (@ENGINE@, @VICTIM@):\n  if libc.ptrace(16, pid, 0, 0) == 0: print('ESCAPED')"),
    py("keyring", "key = call(250, 0, -3, 0, 0, 0)\nprint(key)\ntry:\n  got = call(250, 10, -3, ctypes.c_char_p(b'user'), ctypes.c_char_p(b'mimir-canary'), 0)\n  print('ESCAPED', got)\nexcept OSError as e: print(e)"),
    py("shared memory of System V", "for number in range(64):\n  try:\n    at = libc.shmat(number, 0, 0o10000)\n  except OSError: continue\nprint(open('/proc/sysvipc/shm').read().count('\\n') > 1 and 'ESCAPED')"),
]  # fmt: skip

WRITES = [
    sh("home written", "echo x > @HOME_DIR@/x && echo there; mkdir -p @HOME_DIR@/.ssh; echo x >> @HOME_DIR@/.ssh/authorized_keys"),
    sh("store written", "echo x > @STORE@; rm -rf @PROJECT@/.mimir; true"),
    sh("other workspace written", "echo x > @OTHER@/secret.txt; rm -rf @OTHER@ ../other"),
    sh("project written", "echo x > @PROJECT@/x; rm -rf @PROJECT@/.git; echo x > @PROJECT@/../x"),
    sh("system written", "for d in / /usr /usr/bin /etc /bin /lib /var /opt /root /boot /srv /run; do echo x > $d/mimir-probe && echo ESCAPED $d; done; true"),
    sh("programs replaced", "echo x > /bin/sh && echo ESCAPED; cp /bin/true /usr/bin/python3 && echo ESCAPED; echo x > \"$(command -v python)\" && echo ESCAPED; true"),
    sh("engine's own code", "d=$(python -c 'import pytest; print(pytest.__file__)'); echo x >> \"$d\" && echo ESCAPED; touch \"$(dirname $d)/x\" && echo ESCAPED; true"),
    py("kernel settings", "for path in ('/proc/sys/kernel/core_pattern', '/proc/sys/kernel/modprobe', '/proc/sys/vm/drop_caches', '/proc/sys/fs/binfmt_misc/register', '/proc/sysrq-trigger', '/proc/mtrr', '/proc/acpi/wakeup'):\n  try: os.open(path, os.O_WRONLY); print('ESCAPED', path)\n  except OSError as e: print(e)"),
    sh("control groups", "mkdir /sys/fs/cgroup/x && echo ESCAPED; echo 0 > /sys/fs/cgroup/cgroup.procs && echo ESCAPED; ls /sys/fs/cgroup/* && echo ESCAPED; true"),
    sh("times to come", "(crontab - <<< '* * * * * id') && echo ESCAPED; echo id | at now && echo ESCAPED; mkdir -p ~/.config/systemd/user ~/.config/autostart; true"),
    sh("shell's own files", "echo 'touch /tmp/x' | tee -a ~/.bashrc ~/.profile ~/.bash_profile ~/.gitconfig; ls -la ~"),
    sh("hooks of git", "mkdir -p .git/hooks && echo id > .git/hooks/pre-commit; git config --global core.hooksPath /workspace/h; git config core.fsmonitor 'touch /tmp/x'; git -C @PROJECT@ config core.pager x && echo ESCAPED; true"),
    sh("repository in the workspace", "rm -rf .git; git init -q . && git config core.fsmonitor 'touch @HOME_DIR@/x' && git config core.sshCommand 'touch @HOME_DIR@/y'; mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch @HOME_DIR@/z\\n' > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout; true"),
    py("file handle", "fd = os.open('/workspace', 0)\ntry:\n  call(304, fd, 0, 0); print('ESCAPED')\nexcept OSError as e: print(e)"),
    py("climb by chroot", "try:\n  os.mkdir('c'); fd = os.open('/', 0); os.chroot('c'); os.fchdir(fd)\n  for _ in range(60): os.chdir('..')\n  os.chroot('.'); print('ESCAPED', os.listdir('@HOME_DIR@'))\nexcept OSError as e: print(e)"),
    py("device nodes", "for name, kind, major, minor in (('mem', 0o020666, 1, 1), ('disk', 0o060666, 8, 0), ('disk', 0o060666, 253, 0)):\n  try:\n    os.mknod(name, kind, os.makedev(major, minor)); print(open(name, 'rb').read(10)); print('ESCAPED')\n  except OSError as e: print(e)"),
    sh("set-uid programs", "cp /bin/sh s && chmod 6755 s && ./s -p -c 'id -u' | grep -qx 0 && echo ESCAPED; find / -xdev -perm -4000 -exec {} --version \\; 2>/dev/null | head -1; chown 0:0 s && echo ESCAPED; true"),
]  # fmt: skip

_CONNECT = "for family, where in {targets}:\n  try:\n    s = socket.socket(family, socket.{kind}); s.settimeout(2); s.connect(where); s.send(b'x'); print('{says}', where)\n  except OSError as e: print(where, e)"  # fmt: skip


def reach(name: str, targets: str, kind: str = "SOCK_STREAM", says: str = "ESCAPED") -> Probe:
    """Return a probe that connects somewhere."""
    return py(name, _CONNECT.format(targets=targets, kind=kind, says=says))


NETWORK = [
    reach("loopback of the host", "[(2, ('127.0.0.1', @TCP4@)), (2, ('0.0.0.0', @TCP4@)), (2, ('127.1.2.3', @TCP4@))]"),
    reach("loopback of the host, version 6", "[(10, ('::1', @TCP6@)), (10, ('::ffff:127.0.0.1', @TCP4@))]"),
    reach("the internet", "[(2, ('192.0.2.1', 80)), (2, ('1.1.1.1', 53)), (2, ('8.8.8.8', 443)), (10, ('2001:db8::1', 80))]"),
    reach("the cloud's metadata", "[(2, ('169.254.169.254', 80)), (2, ('100.100.100.200', 80)), (10, ('fd00:ec2::254', 80))]"),
    reach("neighbours", "[(2, (f'{a}', p)) for a in ('10.0.0.1', '172.17.0.1', '192.168.0.1', '192.168.1.1') for p in (22, 2375, 6443)]"),
    reach("datagrams", "[(2, ('127.0.0.1', @UDP@))]", "SOCK_DGRAM", "sent"),
    reach("datagrams far", "[(2, ('192.0.2.1', 53)), (2, ('255.255.255.255', 9)), (2, ('224.0.0.1', 9))]", "SOCK_DGRAM"),
    reach("sockets of the engine", "[(1, '@SOCKET@'), (1, '@PROJECT@/.mimir/engine.sock'), (1, '/var/run/docker.sock'), (1, '/run/dbus/system_bus_socket')]"),
    reach("abstract sockets", "[(1, '\\0@ABSTRACT@'), (1, '\\0/tmp/.X11-unix/X0'), (1, '\\0@/tmp/dbus')]"),
    py("raw sockets", "for kind, proto in ((3, 1), (3, 255), (3, 6)):\n  try: socket.socket(2, kind, proto); print('raw inside')\n  except OSError as e: print(e)\ntry:\n  s = socket.socket(17, 3, 0x300); s.bind(('eth0', 0)); print('ESCAPED')\nexcept OSError as e: print(e)"),
    py("other families", "for family in (16, 17, 29, 31, 38, 40, 44):\n  try:\n    s = socket.socket(family, 2 if family != 40 else 1, 0)\n    if family == 40: s.settimeout(2); s.connect((2, 1024)); print('ESCAPED')\n  except OSError as e: print(family, e)"),
    py("interfaces", "names = [n for _, n in socket.if_nameindex()]\nprint('ESCAPED' if names != ['lo'] else 'lo alone')\nprint(open('/proc/net/route').read(), open('/proc/net/tcp').read())"),
    sh("names", "getent hosts example.com && echo ESCAPED; python -c \"import socket; print('ESCAPED', socket.gethostbyname('example.com'))\"; cat /etc/resolv.conf; true"),
    sh("tools of the network", "for c in 'curl -m 2 -s http://example.com' 'wget -T 2 -q -O - http://example.com' 'ping -c1 -W1 1.1.1.1' 'nc -w1 1.1.1.1 53' 'ssh -o ConnectTimeout=1 -o BatchMode=yes git@github.com'; do $c > out 2>&1 && echo ESCAPED $c; done; true"),
    sh("by git", "timeout 5 git ls-remote https://192.0.2.1/x && echo ESCAPED; timeout 5 git clone git://127.0.0.1:@TCP4@/x && echo ESCAPED; true"),
    sh("by pip", "timeout 9 python -m pip download --no-cache-dir --timeout 1 --retries 0 six && echo ESCAPED; true"),
    py("namespace of the host", "for pid in (1, @ENGINE@, os.getppid()):\n  for kind in ('net', 'mnt', 'pid', 'user'):\n    try:\n      fd = os.open(f'/proc/{pid}/ns/{kind}', 0)\n      before = os.readlink(f'/proc/self/ns/{kind}')\n      if libc.setns(fd, 0) == 0 and os.readlink(f'/proc/self/ns/{kind}') != before: print('ESCAPED', kind)\n    except OSError as e: print(e)"),
]  # fmt: skip

RIGHTS = [
    sh("signals to the engine", "kill -0 @ENGINE@ && echo ESCAPED; kill -9 @VICTIM@ && echo ESCAPED; kill -STOP @VICTIM@ && echo ESCAPED; true"),
    py("signals to groups", "for who in (-@ENGINE@, -@VICTIM@, @ENGINE@, @VICTIM@):\n  try: os.kill(who, 0); print('ESCAPED', who)\n  except OSError as e: print(e)"),
    py("every process", "found = 0\nfor pid in range(1, 70000):\n  try: os.kill(pid, 0)\n  except PermissionError: pass\n  except OSError: continue\n  found += 1\nprint(found if found < 10 else 'ESCAPED')"),
    py("signals by descriptor", "try:\n  fd = call(434, @VICTIM@, 0); call(424, fd, 9, 0, 0); print('ESCAPED')\nexcept OSError as e: print(e)"),
    sh("mounts", "mount -t tmpfs x /mnt && echo ESCAPED; mount --bind / /workspace && echo ESCAPED; mount -o remount,rw / && echo ESCAPED; umount /workspace && echo ESCAPED; mount -t proc x /tmp && echo ESCAPED; true"),
    sh("new user namespace", "unshare -Urm sh -c 'mount -o remount,rw,bind /usr && touch /usr/mimir-probe && echo ESCAPED; umount /tmp && ls /tmp; mount --bind @HOME_DIR@ /mnt && echo ESCAPED; cat @HOME_DIR@/.netrc'; true"),
    sh("new network namespace", "unshare -Urn sh -c 'ip link add v type veth && echo made; ip addr'; python - <<'E'\nimport socket\ntry: socket.create_connection(('127.0.0.1', @TCP4@), 2); print('ESCAPED')\nexcept OSError as e: print(e)\nE\ntrue"),
    sh("sandbox in the sandbox", "bwrap --bind / / cat @HOME_DIR@/.netrc && echo ESCAPED; bwrap --dev-bind / / --unshare-user --uid 0 touch /usr/mimir-probe && echo ESCAPED; true"),
    sh("capabilities", "grep -E '^Cap(Eff|Prm|Amb)' /proc/self/status | grep -qv 0000000000000000 && echo ESCAPED; grep -q 'NoNewPrivs:.1' /proc/self/status || echo ESCAPED; setpriv --reuid 0 id && echo ESCAPED; true"),
    py("user of the engine", "for get in (os.setuid, os.setgid):\n  try: get(0); print('ESCAPED')\n  except OSError as e: print(e)\ntry: os.setgroups([0]); print('ESCAPED')\nexcept OSError as e: print(e)"),
    py("io_uring", "try:\n  fd = call(425, 4, ctypes.create_string_buffer(256)); print('ring', fd)\nexcept OSError as e: print(e)\nread('@HOME_DIR@/.netrc')"),
    py("kernel modules", "for number, *given in ((175, 0, 0, 0), (313, -1, 0, 0), (246, 0, 0, 0, 0), (169, 0, 0, 0, 0), (155, 0, 0), (167, 0, 0), (172, 3), (173, 0x60, 1, 1)):\n  try: call(number, *given); print('ESCAPED', number)\n  except OSError as e: print(number, e, 'ESCAPED' if number in (167, 175) and e.errno == 14 else '')"),
    py("programs in the kernel", "try: print('ESCAPED', call(321, 5, ctypes.create_string_buffer(128), 128))\nexcept OSError as e: print(e)\ntry: print('ESCAPED', call(298, ctypes.create_string_buffer(struct.pack('IIQ', 1, 112, 0) + bytes(96)), -1, 0, -1, 0))\nexcept OSError as e: print(e)"),
    py("clock and name of the host", "import time\nnow = time.time_ns()\nsame = os.uname().nodename.encode()\nfor what in (lambda: time.clock_settime_ns(time.CLOCK_REALTIME, time.time_ns()), lambda: call(170, ctypes.c_char_p(same), len(same)), lambda: call(171, ctypes.c_char_p(b'x'), 1)):\n  try: what(); print('ESCAPED')\n  except OSError as e: print(e)"),
    py("keys typed into the terminal", "for path in ('/dev/tty', '/dev/console', '/dev/pts/0', '/proc/self/fd/0', '/proc/self/fd/1'):\n  try:\n    fd = os.open(path, os.O_RDWR)\n    for c in b'id\\n': fcntl.ioctl(fd, 0x5412, bytes([c]))\n    print('ESCAPED', path)\n  except OSError as e: print(e)"),
    py("quotas and priorities", "try: os.setpriority(os.PRIO_PROCESS, 0, -20); print('ESCAPED')\nexcept OSError as e: print(e)\nimport resource\nfor name in ('RLIMIT_NPROC', 'RLIMIT_FSIZE', 'RLIMIT_CPU', 'RLIMIT_CORE'):\n  try: resource.setrlimit(getattr(resource, name), (-1, -1)); print('ESCAPED', name)\n  except (OSError, ValueError) as e: print(e)"),
    sh("words for the sandbox", "bash -c 'exit 0' --bind / / --dev-bind / / ; cat @HOME_DIR@/.netrc; LD_PRELOAD=/workspace/x.so BWRAP=1 true"),
]  # fmt: skip

LASTS = [
    sh("sleeps", "echo before; sleep 600 #@MARK@", ends="stopped", seconds=1),
    sh("double fork", "(setsid nohup bash -c 'exec -a @MARK@ sleep 600' > /dev/null 2>&1 < /dev/null &); (setsid setsid bash -c 'exec -a @MARK@ sleep 600' &) ; exec -a @MARK@ sleep 600", ends="stopped", seconds=1),
    sh("deaf to signals", "trap '' TERM INT HUP QUIT; while :; do sleep 60 #@MARK@\ndone", ends="stopped", seconds=1),
    sh("double fork and away", "(setsid nohup bash -c 'exec -a @MARK@ sleep 600' > /dev/null 2>&1 < /dev/null &); exit 0"),
    py("daemon without descriptors", "#@MARK@\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0:\n    os.closerange(0, 4096)\n    import time; time.sleep(600)\n  os._exit(0)\nos.wait()"),
    sh("fork bomb", "f() { f | f & }; f; sleep 600 #@MARK@", ends="stopped", seconds=5),
    py("fork bomb of orphans", "#@MARK@\nwhile True:\n  try:\n    if os.fork(): os._exit(0)\n    os.fork()\n  except OSError: pass", seconds=9),
    py("threads without end", "#@MARK@\nimport threading, time\nwhile True:\n  try: threading.Thread(target=time.sleep, args=(600,)).start()\n  except RuntimeError: time.sleep(600)", ends="stopped", seconds=4),
    py("memory", "#@MARK@\nimport time\nheld = []\ntry:\n  while True: held.append(bytearray(b'x') * 20_000_000)\nexcept MemoryError: time.sleep(600)", ends="stopped", seconds=15),
    py("memory in many processes", "#@MARK@\nimport time\nfor _ in range(5): os.fork()\nheld = bytearray(b'x') * 40_000_000\ntime.sleep(600)", ends="stopped", seconds=15),
    sh("disk in /tmp", "head -c 3000000000 /dev/zero > /tmp/x 2> e; ls -l /tmp/x | awk '{ if ($5 > 200000000) print \"ESCAPED\" }'; for n in $(seq 9); do head -c 90000000 /dev/zero > /dev/shm/$n 2>> e; done; du -sm /dev/shm | awk '{ if ($1 > 200) print \"ESCAPED\" }'; true"),
    sh("one large file", "head -c 300000000 /dev/zero > big; ls -l big | awk '{ if ($5 > 60000000) print \"ESCAPED\" }'; rm -f big; true"),
    sh("output without end", "yes @MARK@", ends="stopped", seconds=60),
    sh("input that never comes", "read -r x < /dev/tcp/127.0.0.1/9; cat; read x; echo went on"),
    py("processor", "#@MARK@\nwhile True: pass", ends="stopped", seconds=2),
    py("waits for a pipe", "#@MARK@\nos.mkfifo('p'); open('p')", ends="stopped", seconds=1),
]  # fmt: skip

PROBES = [*READS, *WRITES, *NETWORK, *RIGHTS, *LASTS]
