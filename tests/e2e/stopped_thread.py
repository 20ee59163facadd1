# SPDX-License-Identifier: Apache-2.0
"""Stops one thread of a process, as a defect in it would, while the others continue; SIGSTOP would stop the
whole process. Uses ptrace: if this process ends for any reason, the kernel resumes the thread."""
import contextlib
import ctypes
import os

PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17
WAIT_FOR_THREADS = 0x40000000  # __WALL

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


def _ptrace(request, thread):
    if _libc.ptrace(request, thread, None, None) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def threads_of(process, name):
    """Ids of the process's threads whose name begins with `name`."""
    tasks = f"/proc/{process}/task"
    found = []
    for thread in os.listdir(tasks):
        with open(f"{tasks}/{thread}/comm") as comm:
            if comm.read().startswith(name):
                found.append(int(thread))
    return sorted(found)


@contextlib.contextmanager
def stopped(thread):
    """Stops the thread inside the block. The calling thread must also leave the block, because the kernel has
    registered it as the tracer."""
    _ptrace(PTRACE_SEIZE, thread)
    try:
        _ptrace(PTRACE_INTERRUPT, thread)
        os.waitpid(thread, WAIT_FOR_THREADS)
        yield
    finally:
        _ptrace(PTRACE_DETACH, thread)
