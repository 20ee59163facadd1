# SPDX-License-Identifier: Apache-2.0
"""Journals each resource that a run takes from the machine, before it is taken. If the run is killed, the
next run releases the resources.

A run is a directory /run/penstock-lab/NAME with a journal of JSON lines. The run holds a lock on the
directory until its process ends (the kernel releases the lock with the process, kill -9 included). A run that
outlives its process is marked `kept`. A directory that is neither locked nor kept was therefore left by a
crash. `sweep` undoes exactly the entries of its journal and nothing else."""
import fcntl
import json
import os
import shutil
import signal
import subprocess
import time

BASE = "/run/penstock-lab"
PORT_LOCKS = "/run/penstock"  # penstockd's lock files of ports
MEMORY_FOLDERS = "/dev/shm"
HUGEPAGES = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
HUGEPAGE_TURN = "/proc/sys/vm/nr_hugepages"  # the file that penstockd locks (drivers/eal/hugepages.hpp)


class Run:
    def __init__(self, path):
        self.path = path
        self.name = os.path.basename(path)
        self._lock = None

    @staticmethod
    def start(purpose):
        """A new run of this process. Its name is unique, and the names of its resources carry the name's
        number."""
        run = Run(os.path.join(BASE, f"{purpose}-{os.getpid()}"))
        with _exclusively():  # otherwise a sweep could find the directory before it is locked
            while True:
                try:
                    os.makedirs(run.path, mode=0o700)
                    break
                except FileNotFoundError:  # the last of the other runs removed BASE meanwhile
                    pass
            run._hold()
        return run

    @property
    def number(self):
        return self.name.rsplit("-", 1)[1]

    def file(self, *parts):
        return os.path.join(self.path, *parts)

    def record(self, kind, **what):
        with open(self.file("journal"), "a") as journal:
            journal.write(json.dumps({"kind": kind, **what}) + "\n")

    def recorded(self, kind):
        try:
            with open(self.file("journal")) as journal:
                # A crash may have truncated the last line. Its resource was not created yet.
                return [entry for line in journal if line.endswith("\n") and (entry := json.loads(line))["kind"] == kind]
        except FileNotFoundError:
            return []

    def keep(self):
        open(self.file("kept"), "w").close()

    @property
    def kept(self):
        return os.path.exists(self.file("kept"))

    def spawn(self, words, log, env=None):
        """A process outside all namespaces, in a session of its own. Its PID identifies it only together with
        its start time."""
        with open(self.file(log), "ab") as output:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True, env=env)
        self.record("process", pid=process.pid, started=_started(process.pid))
        return process

    def reserve_hugepages(self, megabytes):
        """Adds as many 2 MB pages. Free pages are not counted: another run may have added them and not mapped
        them yet. Returns False if the machine lacks memory or permission; penstockd then uses what is
        available."""
        wanted, got = (megabytes + 1) // 2, 0
        self.record("hugepages", added=wanted)
        try:
            with _turn_on(HUGEPAGE_TURN):
                before = _read_int(HUGEPAGES)
                _write_int(HUGEPAGES, before + wanted)
                got = _read_int(HUGEPAGES) - before
                if got < wanted:  # fragmented memory: release the partial result
                    _write_int(HUGEPAGES, before)
        except OSError:
            pass
        if got < wanted:
            self.record("hugepages", added=-wanted)
        return got >= wanted

    def memory_folder(self, name):
        """The path of a folder in memory for a program of this run. The program creates it."""
        path = os.path.join(MEMORY_FOLDERS, f"penstock-lab-{self.name}-{name}")
        self.record("folder", path=path)
        return path

    def undo(self):
        """Releases everything. Safe to repeat, and safe if only part of it was ever taken."""
        namespaces = [entry["name"] for entry in self.recorded("netns")]
        _end_processes([pid for name in namespaces for pid in pids_in(name)]
                       + [entry["pid"] for entry in self.recorded("process") if _started(entry["pid"]) == entry["started"] is not None])
        for name in namespaces:
            _remove_port_locks(name)
            subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL)
        for entry in self.recorded("folder"):
            shutil.rmtree(entry["path"], ignore_errors=True)
        for entry in self.recorded("cgroup"):
            _remove_control_groups(entry["path"])
        added = sum(entry["added"] for entry in self.recorded("hugepages"))
        if added > 0:
            with _turn_on(HUGEPAGE_TURN):
                _write_int(HUGEPAGES, max(0, _read_int(HUGEPAGES) - added))
                self.record("hugepages", added=-added)  # a repetition gives back nothing
        shutil.rmtree(self.path, ignore_errors=True)
        try:
            os.rmdir(BASE)  # fails if other runs exist
        except OSError:
            pass

    def _hold(self):
        self._lock = open(self.file("lock"), "w")
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _abandoned(self):
        try:
            with open(self.file("lock")) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except FileNotFoundError:
            return True
        except BlockingIOError:
            return False


def runs():
    try:
        return [Run(os.path.join(BASE, name)) for name in sorted(os.listdir(BASE)) if os.path.isdir(os.path.join(BASE, name))]
    except FileNotFoundError:
        return []


def sweep():
    """Undoes what crashed runs left. Returns the names of these runs."""
    if not os.path.isdir(BASE):
        return []
    with _exclusively():
        left = [run for run in runs() if not run.kept and run._abandoned()]
        for run in left:
            run.undo()
    return [run.name for run in left]


def pids_in(namespace):
    """Processes inside a namespace of the run: started by the run, or by a process inside."""
    listed = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True)
    return [int(pid) for pid in listed.stdout.split()]


def _started(pid):
    """Start time in clock ticks since boot; None if the process has ended."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return int(stat.read().rsplit(")", 1)[1].split()[19])
    except (FileNotFoundError, ProcessLookupError):
        return None


def _remove_port_locks(namespace):
    """Removes the lock files of penstockd. penstockd leaves them, because unlinking a file that another
    process may be locking is a race. Their names carry the namespace's inode; once the namespace is deleted
    no process can need them."""
    try:
        inode = os.stat(f"/run/netns/{namespace}").st_ino
        for name in os.listdir(PORT_LOCKS):
            if name.startswith(f"port-{inode}-"):
                os.unlink(os.path.join(PORT_LOCKS, name))
        os.rmdir(PORT_LOCKS)
    except OSError:  # no such namespace or folder, or lock files of other namespaces are left
        pass


def _remove_control_groups(path):
    """A group and those below it, which the kernel removes only when they are empty."""
    for folder, _, _ in os.walk(path, topdown=False):
        try:
            os.rmdir(folder)
        except OSError:  # already gone
            pass


def _end_processes(pids):
    for signal_number, patience_s in ((signal.SIGTERM, 3), (signal.SIGKILL, 3)):
        for pid in pids:
            try:
                os.kill(pid, signal_number)
            except ProcessLookupError:
                pass
        deadline = time.monotonic() + patience_s
        while (pids := [pid for pid in pids if _alive(pid)]) and time.monotonic() < deadline:
            time.sleep(0.02)
        if not pids:
            return


def _alive(pid):
    try:
        os.waitpid(pid, os.WNOHANG)  # reap it if it is a child of this process
    except ChildProcessError:
        pass
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _exclusively():
    """Serialises runs that start and sweep at the same time. The lock is on /run itself, because a lock file
    would be left behind."""
    return _turn_on(os.path.dirname(BASE))


class _turn_on:
    """Locks an existing file or directory. The pool of hugepages is locked as penstockd locks it
    (drivers/eal/hugepages.hpp). penstockd counts free pages and maps them under this lock; pages released in
    between would make that fail."""

    def __init__(self, path):
        self._path = path

    def __enter__(self):
        self._descriptor = os.open(self._path, os.O_RDONLY)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def __exit__(self, *_):
        os.close(self._descriptor)


def _read_int(path):
    with open(path) as file:
        return int(file.read())


def _write_int(path, value):
    with open(path, "w") as file:
        file.write(str(value))
