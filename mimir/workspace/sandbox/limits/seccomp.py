"""Filter of system calls: only local socket families can be opened.

The network namespace does not confine every family, such as `AF_VSOCK`, which reaches the host of a virtual machine.
"""

import platform
import struct
from functools import cache

# UNIX, INET, INET6 and NETLINK; the namespace leaves only loopback to INET and INET6.
ALLOWED_FAMILIES = (1, 2, 10, 16)

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_ALLOW = 0x7FFF0000
_NOT_SUPPORTED = 0x00050000 | 97  # EAFNOSUPPORT
_NO_SUCH_CALL = 0x00050000 | 38  # ENOSYS
# System calls of x32 have this bit, and would pass a filter of x86-64.
_X32 = 0x40000000
# io_uring opens sockets without the system call `socket`; socketcall hides the family behind a pointer.
_IO_URING_SETUP, _SOCKETCALL = 425, 102

# Per machine: architectures that it executes, with `socket`, `socketpair` and refused calls.
_MACHINES = {
    "x86_64": (
        (0xC000003E, (41, 53), (_IO_URING_SETUP,)),
        (0x40000003, (359, 360), (_IO_URING_SETUP, _SOCKETCALL)),
    ),
    "aarch64": (
        (0xC00000B7, (198, 199), (_IO_URING_SETUP,)),
        (0x40000028, (281, 288), (_IO_URING_SETUP, _SOCKETCALL)),
    ),
}


@cache
def socket_filter(machine: str = platform.machine()) -> bytes | None:
    """Return the program of the kernel's packet filter; None: unknown for this machine."""
    architectures = _MACHINES.get(machine)
    if architectures is None:
        return None
    program = [_step(_LOAD, _ARCHITECTURE)]
    for architecture, sockets, refused in architectures:
        block = _block(sockets, refused, has_x32=machine == "x86_64")
        program += [_step(_EQUAL, architecture, 0, len(block)), *block]
    return b"".join([*program, _step(_RETURN, _NO_SUCH_CALL)])


def _block(sockets: tuple[int, ...], refused: tuple[int, ...], *, has_x32: bool) -> list[bytes]:
    block = [_step(_LOAD, _NUMBER)]
    if has_x32:
        block += [_step(_AT_LEAST, _X32, 0, 1), _step(_RETURN, _NO_SUCH_CALL)]
    for number in refused:
        block += [_step(_EQUAL, number, 0, 1), _step(_RETURN, _NO_SUCH_CALL)]
    family = [_step(_LOAD, _FIRST_ARGUMENT)]
    for allowed in ALLOWED_FAMILIES:
        family += [_step(_EQUAL, allowed, 0, 1), _step(_RETURN, _ALLOW)]
    family += [_step(_RETURN, _NOT_SUPPORTED)]
    for number in sockets:
        block += [_step(_EQUAL, number, 0, len(family)), *family]
    return [*block, _step(_RETURN, _ALLOW)]


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
