# SPDX-License-Identifier: Apache-2.0
"""The first process inside the virtual machine. Executes the requests of vm.py, which arrive over a
virtio-serial port: one JSON object per line, and one per answer. {"id": 7, "do": "run", "words": ["ip",
"link"], "timeout_s": 10} -> {"id": 7, "code": 0, "out": "...", "err": ""}; on failure {"id": 7, "error":
"why"}. A second port carries connections of the host's programs to Unix sockets of the guest (relay.py).

Uses only few modules of Python's own library: each import is read from the host through an emulated disk."""
import json
import os
import shutil
import signal
import subprocess
import threading
import traceback

from relay import Relay

PORTS = "/sys/class/virtio-ports"
COMMANDS, RELAY = "penstock", "penstock-relay"
PCI = "/sys/bus/pci"
NAMESPACES = "/run/netns"
SCRATCH = ("/run", "/tmp", "/var/tmp", "/dev/hugepages")
# What a test can leave in the kernel, apart from links, drivers, files and processes.
KERNEL = ("/proc/net/fib_trie", "/proc/mounts")
SETTINGS = ("ipv4", "ipv4/conf/all", "ipv4/conf/default", "ipv6/conf/all", "ipv6/conf/default")


class Agent:
    def __init__(self):
        self._processes = {}
        self._kept = {os.path.join(path, name) for path in SCRATCH for name in os.listdir(path)}

    def run(self, words, timeout_s, stdin=None):
        try:
            done = subprocess.run(words, input=stdin or "", capture_output=True, text=True, errors="replace", timeout=timeout_s)
        except subprocess.TimeoutExpired:
            return {"error": f"not within {timeout_s} s: {' '.join(words)}"}
        return {"code": done.returncode, "out": done.stdout, "err": done.stderr}

    def start(self, words, log):
        with open(log, "ab") as output:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        self._processes[process.pid] = process
        return {"pid": process.pid}

    def poll(self, pid):
        return {"code": self._processes[pid].poll()}

    def signal(self, pid, number):
        self._processes[pid].send_signal(number)
        return {}

    def wait(self, pid, timeout_s):
        try:
            return {"code": self._processes[pid].wait(timeout_s)}
        except subprocess.TimeoutExpired:
            return {"error": f"not within {timeout_s} s: the end of process {pid}"}

    def read(self, path):
        with open(path, errors="replace") as file:
            return {"text": file.read()}

    def write(self, path, text, replace=False):
        """Writes a file. With `replace` the file is replaced atomically, as editors do; sysfs needs a plain
        write."""
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + (".new" if replace else ""), "w") as file:
            file.write(text)
        if replace:
            os.rename(path + ".new", path)
        return {}

    def exists(self, path):
        return {"exists": os.path.exists(path)}

    # A machine serves several tests one after another.

    def clear(self, cards):
        """Ends what the last test started, releases these PCI cards, and removes namespaces and files."""
        for process in self._processes.values():
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        self._processes.clear()
        for name in os.listdir(NAMESPACES):
            subprocess.run(["ip", "netns", "delete", name], check=True)
        for address in cards:
            device = f"{PCI}/devices/{address}"
            if os.path.exists(f"{device}/driver"):
                _write(f"{device}/driver/unbind", address)
            if os.path.exists(device):  # not pulled out
                _write(f"{device}/driver_override", "\n")
        for path in SCRATCH:
            for name in os.listdir(path):
                if (entry := os.path.join(path, name)) not in self._kept:
                    shutil.rmtree(entry) if os.path.isdir(entry) and not os.path.islink(entry) else os.unlink(entry)
        return {}

    def state(self, cards):
        """What a test can change in the guest, as text by name."""
        told = {path: _read(path) for path in KERNEL}
        # `ip netns add` mounts its folder over itself, once.
        told["/proc/mounts"] = "".join(line for line in told["/proc/mounts"].splitlines(True) if f" {NAMESPACES} " not in line)
        told["links"] = " ".join(sorted(os.listdir("/sys/class/net")))
        told["drivers"] = " ".join(address for address in cards if os.path.exists(f"{PCI}/devices/{address}/driver"))
        told["files"] = " ".join(sorted(os.path.join(path, name) for path in SCRATCH for name in os.listdir(path)))
        told["programs"] = " ".join(sorted(_read(f"/proc/{pid}/comm").strip() for pid in os.listdir("/proc")
                                           if pid.isdigit() and os.path.exists(f"/proc/{pid}/exe")))
        told["free hugepages"] = _read("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
        for folder in SETTINGS:
            told[folder] = "".join(f"{name} {_setting(folder, name)}" for name in sorted(os.listdir(f"/proc/sys/net/{folder}"))
                                   if os.path.isfile(f"/proc/sys/net/{folder}/{name}"))
        return told

    def answer(self, request):
        try:
            return getattr(self, request.pop("do"))(**request)
        except Exception as error:  # noqa: BLE001: returned to the requester
            return {"error": f"{type(error).__name__}: {error}"}


def device(wanted):
    for name in os.listdir(PORTS):
        if _read(os.path.join(PORTS, name, "name")).strip() == wanted:
            return f"/dev/{name}"
    raise RuntimeError(f"no virtio port is called {wanted}")


def _read(path):
    with open(path) as file:
        return file.read()


def _write(path, text):
    with open(path, "w") as file:
        file.write(text)


def _setting(folder, name):
    try:
        return _read(f"/proc/sys/net/{folder}/{name}")
    except OSError:  # it can only be written
        return "\n"


def main():
    agent = Agent()
    relayed = open(device(RELAY), "r+b", buffering=0)
    threading.Thread(target=Relay(relayed.read, relayed.write).deliver, daemon=True).start()
    with open(device(COMMANDS), "r+b", buffering=0) as channel:
        channel.write(b'{"id": 0}\n')  # greeting
        pending = b""
        while came := channel.read(65536):  # empty: the requester has closed
            pending += came
            while b"\n" in pending:
                line, pending = pending.split(b"\n", 1)
                request = json.loads(line)
                number = request.pop("id")
                answer = memoryview(json.dumps({"id": number, **agent.answer(request)}).encode() + b"\n")
                while answer:
                    answer = answer[channel.write(answer):]


if __name__ == "__main__":
    try:
        main()
    except Exception:  # noqa: BLE001: only the console is left for output; the kernel's panic follows
        traceback.print_exc()
