# SPDX-License-Identifier: Apache-2.0
"""A virtual machine by software emulation, with the network cards and the IOMMU that a test needs.

The guest mounts the host's root file system read-only, so it tests the programs that were just built. Its
output folder (/mnt/share) is a folder of the run. Commands are executed by vm_agent.py; cards are removed
through QEMU's monitor. QEMU runs inside a network namespace of the run, with the TAPs that its cards are
connected to. The run ends QEMU."""
import dataclasses
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time

from . import vm_image
from .relay import Relay

AGENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "vm_agent.py")
SHARE = "/mnt/share"
BOOT_PATIENCE_S = 300  # ten seconds on two idle cores, minutes while compilers run
COVERED = ("/tmp", "/run", "/var/tmp", "/mnt")  # folders that tmpfs covers in the guest


@dataclasses.dataclass(frozen=True)
class Card:
    """A PCI network card. `tap` is the interface in the namespace that it is connected to."""
    id: str
    model: str  # QEMU's name: e1000e, vmxnet3, virtio-net-pci
    tap: str
    slot: int   # on the root complex: slot of the card, or of its root port
    queues: int = 1
    options: str = ""
    pulled: bool = False  # hot-unpluggable

    @property
    def mac(self):
        return f"52:54:00:00:00:{self.slot:02x}"

    def words(self):
        queues = f",queues={self.queues}" if self.queues > 1 else ""
        options = f",{self.options}" if self.options else ""
        bus = "pcie.0"
        words = ["-netdev", f"tap,id=net-{self.id},ifname={self.tap},script=no,downscript=no,vhost=off{queues}"]
        if self.pulled:
            bus = f"port-{self.id}"
            words += ["-device", f"pcie-root-port,id={bus},bus=pcie.0,addr={self.slot:#x},chassis={self.slot},slot={self.slot}"]
        place = f"bus={bus}" + ("" if self.pulled else f",addr={self.slot:#x}")
        return [*words, "-device", f"{self.model},id={self.id},netdev=net-{self.id},mac={self.mac},{place}{options}"]


class GuestError(Exception):
    pass


class GuestProcess:
    """The counterpart of subprocess.Popen for a process in the guest."""

    def __init__(self, machine, pid):
        self._machine, self.pid = machine, pid

    def poll(self):
        return self._machine.ask("poll", pid=self.pid)["code"]

    def signal(self, number):
        self._machine.ask("signal", pid=self.pid, number=int(number))

    def wait(self, timeout_s):
        return self._machine.ask("wait", 5 + timeout_s, pid=self.pid, timeout_s=timeout_s)["code"]


class Machine:
    """The virtual machine of one run. `start_inside(words, log)` starts a process inside the namespace with
    the TAPs."""

    def __init__(self, run, image, cards=(), processors=2, memory_mb=1536, hugepages_mb=512, visible=()):
        self._run, self._image, self.cards = run, image, tuple(cards)
        self._processors, self._memory_mb, self._hugepages_mb = processors, memory_mb, hugepages_mb
        # Folders of the host below a path that tmpfs covers in the guest.
        self._visible = [path for path in {os.path.dirname(AGENT), *visible} if path.startswith(tuple(f"{place}/" for place in COVERED))]
        self.share = run.file("share")
        os.mkdir(self.share)
        self._channel = self._monitor = self._relayed = self._relay = self._qemu = None
        self._known = self._clean_state = None
        self._pending, self._asked = {"_channel": b"", "_monitor": b""}, 0

    def words(self):
        iommu = "intel-iommu,intremap=on,device-iotlb=on"
        # On a busy machine the emulated processor may be stopped for longer than the kernel tolerates. These
        # options prevent a panic about missing timer interrupts early in the boot, and keep the kernel's
        # clock source.
        arguments = ["console=ttyS0", "quiet", "panic=-1", "no_timer_check", "tsc=reliable", "nowatchdog", "intel_iommu=on",
                     f"hugepages={self._hugepages_mb // 2}",
                     f"penstock.python={sys.executable}", f"penstock.agent={AGENT}", *(f"penstock.bind={path}" for path in self._visible)]
        words = ["nice", "-n", "5", vm_image.QEMU, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
                 # Always emulation, so that a run is the same on machines with KVM. The processors run in turns:
                 # when a driver releases a card, or the card is pulled out, its memory is unmapped. QEMU 7.2
                 # replaces the table of memory regions before it flushes the other processor's TLB, and that
                 # processor's next register access reaches a wrong region (fixed in QEMU 8.2: "softmmu: Use
                 # async_run_on_cpu in tcg_commit").
                 "-machine", "q35,kernel-irqchip=split", "-accel", "tcg,thread=single", "-cpu", "max", "-smp", str(self._processors),
                 "-m", str(self._memory_mb), "-device", iommu, "-kernel", self._image.kernel, "-initrd", self._image.initramfs,
                 "-append", " ".join(arguments), "-serial", f"file:{self._run.file('console.log')}",
                 "-virtfs", "local,path=/,mount_tag=hostroot,security_model=none,readonly=on,multidevs=remap",
                 "-virtfs", f"local,path={self.share},mount_tag=share,security_model=none",
                 "-device", "virtio-serial-pci", "-chardev", f"socket,id=agent,path={self._run.file('agent.sock')}",
                 "-device", "virtserialport,chardev=agent,name=penstock",
                 "-chardev", f"socket,id=relay,path={self._run.file('relay.sock')}", "-device", "virtserialport,chardev=relay,name=penstock-relay",
                 "-qmp", f"unix:{self._run.file('monitor.sock')}"]
        for card in self.cards:
            words += card.words()
        return words

    def start(self, start_inside):
        """Returns when the guest accepts commands."""
        listeners = {name: _listener(self._run.file(f"{name}.sock")) for name in ("agent", "relay", "monitor")}
        began = time.monotonic()
        try:
            self._qemu = start_inside(self.words(), "qemu.log")
            self._monitor = self._accepted(listeners["monitor"], began)
            self._channel = self._accepted(listeners["agent"], began)
            self._relayed = self._accepted(listeners["relay"], began)
        finally:
            for listener in listeners.values():
                listener.close()
        self._line("_monitor", began + BOOT_PATIENCE_S)  # QEMU's greeting
        self.monitor("qmp_capabilities")
        self._line("_channel", began + BOOT_PATIENCE_S)  # the agent's greeting
        self._relay = Relay(self._relayed.recv, self._relayed.send)
        threading.Thread(target=self._relay.deliver, daemon=True).start()
        return time.monotonic() - began

    # Commands in the guest.

    def run(self, *words, timeout_s=30, stdin=None):
        """Runs words in the guest. Returns a subprocess.CompletedProcess."""
        answer = self.ask("run", 10 + timeout_s, words=list(words), timeout_s=timeout_s, stdin=stdin)
        return subprocess.CompletedProcess(words, answer["code"], answer["out"], answer["err"])

    def command(self, *words, timeout_s=30, stdin=None):
        """Returns the command's output; raises if the command fails."""
        done = self.run(*words, timeout_s=timeout_s, stdin=stdin)
        if done.returncode != 0:
            raise GuestError(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def spawn(self, words, log):
        """Starts a background process; its output is written to the share."""
        return GuestProcess(self, self.ask("start", words=list(words), log=os.path.join(SHARE, log))["pid"])

    def write(self, path, text, replace=False):
        self.ask("write", path=path, text=text, replace=replace)

    def read(self, path):
        return self.ask("read", path=path)["text"]

    def exists(self, path):
        return self.ask("exists", path=path)["exists"]

    def listen(self, path, server_path):
        """Lets programs of the host reach the guest's Unix socket `server_path` at `path`. The returned socket
        ends this: shutdown()."""
        return self._relay.listen(path, server_path)

    def give_to_vfio(self, card):
        """Unbinds the card from its kernel driver, if it has one, and makes it available to DPDK."""
        address = self.address_of(card)
        device = f"/sys/bus/pci/devices/{address}"
        self.write(f"{device}/driver_override", "vfio-pci")
        if self.exists(f"{device}/driver"):
            self.write(f"{device}/driver/unbind", address)
        self.write("/sys/bus/pci/drivers_probe", address)
        if not self.exists(f"/sys/bus/pci/drivers/vfio-pci/{address}"):
            raise GuestError(f"{address} was not taken by vfio-pci")

    def address_of(self, card):
        """The PCI address in the guest's kernel. The firmware assigned the bus number of a root port."""
        address = f"0000:00:{card.slot:02x}.0"
        if not card.pulled:
            return address
        listed = self.command("ls", f"/sys/bus/pci/devices/{address}").split()
        return next(name for name in listed if re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", name))

    def drive_by_kernel(self, card):
        """The interface of the guest's kernel for the card: up, and without GRO, which merges frames."""
        if not self.exists(f"/sys/bus/pci/devices/{self.address_of(card)}/driver"):
            self.write("/sys/bus/pci/drivers_probe", self.address_of(card))
        interface = self.command("sh", "-c", f"grep -l {card.mac} /sys/class/net/*/address").split("/")[4]
        self.command("ip", "link", "set", interface, "up")
        self.command("ethtool", "-K", interface, "gro", "off")
        return interface

    # Tests that follow one another.

    def clear(self):
        """Ends what the last test started and releases the cards. Returns what is different from the state
        after the first call, by name."""
        self.ask("clear", 60, cards=self._addresses())
        for name in os.listdir(self.share):
            os.unlink(os.path.join(self.share, name))
        state = self.ask("state", cards=self._addresses())
        del state["id"]
        if self._clean_state is None:
            self._clean_state = state
        return [name for name in state if state[name] != self._clean_state.get(name)]

    def _addresses(self):
        """The PCI addresses of all cards that were there when they were first asked for."""
        if self._known is None:
            self._known = [self.address_of(card) for card in self.cards]
        return self._known

    def ask(self, do, patience_s=30, **arguments):
        self._asked += 1
        self._channel.sendall(json.dumps({"id": self._asked, "do": do, **arguments}).encode() + b"\n")
        deadline = time.monotonic() + patience_s
        while (answer := self._line("_channel", deadline))["id"] != self._asked:
            pass  # answer to an interrupted request
        if "error" in answer:
            raise GuestError(answer["error"])
        return answer

    # QEMU's side.

    def monitor(self, command, patience_s=30, **arguments):
        self._monitor.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        deadline = time.monotonic() + patience_s
        while True:
            answer = self._line("_monitor", deadline)
            if "error" in answer:
                raise GuestError(f"{command}: {answer['error'].get('desc')}")
            if "return" in answer:
                return answer["return"]  # other messages are events

    def end(self):
        """Ends QEMU by its PID. The guest needs no orderly shutdown."""
        for channel in (self._channel, self._monitor, self._relayed):
            if channel:
                channel.close()
        if self._qemu and self._qemu.poll() is None:
            self._qemu.kill()
            self._qemu.wait(10)

    def failed_assertion(self):
        """The line of QEMU's log if an assertion of its own has ended it, else None."""
        try:
            code = self._qemu.wait(2)
        except subprocess.TimeoutExpired:
            return None
        with open(self._run.file("qemu.log"), errors="replace") as log:
            lines = [line.strip() for line in log if "Assertion" in line and "failed" in line]
        return lines[-1] if code == -signal.SIGABRT and lines else None

    def _accepted(self, listener, began):
        while not select.select([listener], [], [], 0.2)[0]:
            self._must_be_alive(began + BOOT_PATIENCE_S, "QEMU's start")
        return listener.accept()[0]

    def _line(self, name, deadline):
        channel = getattr(self, name)
        while b"\n" not in self._pending[name]:
            self._must_be_alive(deadline, "an answer of the virtual machine")
            if select.select([channel], [], [], 0.2)[0]:
                self._pending[name] += channel.recv(1 << 20)
        line, self._pending[name] = self._pending[name].split(b"\n", 1)
        return json.loads(line)

    def _must_be_alive(self, deadline, what):
        if self._qemu.poll() is not None:
            raise GuestError(f"waiting for {what}: QEMU ended with {self._qemu.returncode}")
        if time.monotonic() > deadline:
            raise GuestError(f"not in time: {what}")


def _listener(path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(1)
    return listener
