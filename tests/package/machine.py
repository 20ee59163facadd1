# SPDX-License-Identifier: Apache-2.0
"""A machine with a service manager: a tree of Debian, booted by systemd-nspawn in a network namespace of a lab, with
a repository of packages in place of Debian's, which the namespace cannot reach."""
import os
import shutil
import signal
import subprocess
import time

from fixture import Skip, check, until

POOL = "/var/lib/pool"  # in the machine
# systemd's own tree of control groups: the unified one, or the named one of version 1 and the unified one beside it.
CGROUPS = ("/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified") if os.path.isdir("/sys/fs/cgroup/systemd") else ("/sys/fs/cgroup",)
BOOT_S = 60
# /sys and /proc/sys are those of the host, because DPDK reads /sys/module, which nspawn's own /sys does not have. These
# units would write to them.
MASKED = ("systemd-sysctl.service", "systemd-modules-load.service", "systemd-udevd.service", "systemd-udevd-control.socket",
          "systemd-udevd-kernel.socket", "systemd-udev-trigger.service", "systemd-udev-settle.service", "systemd-random-seed.service")


class Machine:
    def __init__(self, lab, role, pool):
        """pool: of trees.pool()."""
        if not shutil.which("systemd-nspawn"):
            raise Skip("systemd-nspawn is missing: scripts/setup package")
        self._lab, self._role, self._pool = lab, role, pool
        self.folder = os.path.join("/var/tmp", f"penstock-machine-{lab.run.number}")
        self.root = os.path.join(self.folder, "root")
        self._nspawn = self._init = None

    def make(self):
        """The file system: Debian without our packages."""
        self._lab.run.record("folder", path=self.folder)
        os.makedirs(self.root)
        subprocess.run(["tar", "-C", self.root, "-xf", os.path.join(self._pool, "base.tar"), "--numeric-owner"], check=True)
        self._write("etc/hostname", "edge-1\n")
        self._write("etc/hosts", "127.0.0.1 localhost\n127.0.1.1 edge-1\n")
        self._write("etc/apt/sources.list", f"deb [trusted=yes] file:{POOL} ./\n")
        os.makedirs(os.path.join(self.root, POOL.lstrip("/")))
        for unit in MASKED:
            os.symlink("/dev/null", os.path.join(self.root, "etc/systemd/system", unit))

    def _write(self, name, text):
        path = os.path.join(self.root, name)
        if os.path.lexists(path):
            os.unlink(path)
        with open(path, "w") as file:
            file.write(text)

    def boot(self):
        name = f"penstock-{self._lab.run.number}"
        groups = []
        for root in CGROUPS:
            if os.path.isdir(root):
                groups.append(os.path.join(root, name))
                self._lab.run.record("cgroup", path=groups[-1])
                os.makedirs(groups[-1])
        words = ["systemd-nspawn", "--quiet", "--boot", "--directory", self.root, "--machine", name, "--register=no", "--keep-unit",
                 "--network-namespace-path", f"/run/netns/{self._lab.network.namespace(self._role)}", "--capability=all",
                 "--system-call-filter=bpf perf_event_open", "--bind-ro", f"{self._pool}/debs:{POOL}", "--link-journal=no",
                 "--resolv-conf=off", "--timezone=off", "--settings=no", "--console=pipe", "systemd.unit=multi-user.target"]
        environment = {**os.environ, "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "1"}
        entered = "".join(f"echo $$ >{group}/cgroup.procs\n" for group in groups)
        self._nspawn = self._lab.run.spawn(["sh", "-ec", f'{entered}exec "$@"', "sh", *words], "machine.log", environment)
        until(f"the machine boots: {self.tail()}", self._has_booted, BOOT_S, 0.1)

    def tail(self):
        with open(self._lab.run.file("machine.log"), errors="replace") as file:
            return "".join(file.readlines()[-15:])

    def _has_booted(self):
        check(self._nspawn.poll() is None, f"systemd-nspawn has ended with {self._nspawn.poll()}: {self.tail()}")
        self._init = self._init or self._find_init()
        return self._init and self.run("systemctl is-system-running").stdout.strip() in ("running", "degraded")

    def _find_init(self):
        """The process that is 1 in the machine's own namespace of process ids."""
        wanted = os.stat(self.root)
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/status") as file:
                    ids = next(line for line in file if line.startswith("NSpid:")).split()[1:]
                if len(ids) > 1 and ids[-1] == "1" and os.path.samestat(os.stat(f"/proc/{name}/root"), wanted):
                    return int(name)
            except (OSError, StopIteration):
                continue
        return None

    def run(self, command, timeout_s=300, stdin=None):
        """A shell command in the machine, as root."""
        words = ["nsenter", "--target", str(self._init), "--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd",
                 "env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8",
                 "DEBIAN_FRONTEND=noninteractive", "TERM=dumb", "bash", "-ec", f"cd\n{command}"]
        return subprocess.run(words, capture_output=True, text=True, timeout=timeout_s, input=stdin)

    def succeed(self, command, timeout_s=300):
        """Its standard output; a failure raises with all that it has printed, and the journal's end."""
        done = self.run(command, timeout_s)
        if done.returncode != 0:
            journal = self.run("journalctl --no-pager --lines 40 --output cat").stdout
            raise AssertionError(f"{command}\nends with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}\n--- journal\n{journal}")
        return done.stdout

    def show(self, unit, name):
        return self.succeed(f"systemctl show --property {name} --value {unit}").strip()

    def stop(self):
        if self._nspawn is None or self._nspawn.poll() is not None:
            return
        if self._init is not None:
            os.kill(self._init, signal.SIGKILL)  # and with it all processes of the machine
        else:
            self._nspawn.kill()
        began = time.monotonic()
        while self._nspawn.poll() is None and time.monotonic() - began < 20:
            time.sleep(0.02)
