# SPDX-License-Identifier: Apache-2.0
"""The laboratory of suite e2e with one part replaced: the programs of the gateway's namespace run in a
virtual machine, on PCI cards.

client ---- gw-up =(br-up)= tap-up ---- card | penstockd | card ---- tap-cl =(br-cl)= gw-cl ---- switch
                                                                                                   |
                                                                                                backends

The client, the switch and the backends are the host's own namespaces with real programs. The gateway's
namespace holds QEMU and its TAPs.
"""
import os

import manifests
from fixture import Lab
from lab import gateway as gw
from lab import servers
from testbed import vm
from testbed.vm import Card

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# In the guest, which runs this gateway only.
MANIFESTS = "/run/manifests"
# Time limit for a program's start: the processor is emulated, and so is the disk that holds the program.
PATIENCE_S = 60
# The processors of the guest: one for control, one for all workers.
MAIN_CORE, WORKER_CORE = 0, 1
WIRES = ("up", "cl")  # created by scripts/lab; any other card ends in a TAP without a wire
SPARE_PORTS = (("spare0", "192.0.2.1/30"),)  # twin and address of a third card
VIRTIO = "disable-legacy=on,iommu_platform=on,ats=on"  # behind the IOMMU like the other cards


def pair_of(model, **changes):
    """Two equal cards, one on each wire."""
    return [Card("up", model, "tap-up", 0x10, **changes), Card("cl", model, "tap-cl", 0x11, **changes)]


class VmGateway(gw.Gateway):
    """penstockd, penstock-sync and penstockctl inside the machine."""

    def __init__(self, lab):
        super().__init__(lab.network, lab.run, lab.build, workers=lab.variant.get("workers", 1))
        self._lab = lab
        self.state_file = "/run/last-good.pb"
        self.devices = []  # values of --port: one on each wire, then the spare ones

    @property
    def address(self):
        return "unix:/run/penstockd.sock"

    @property
    def sync_address(self):
        return "unix:/run/penstock-sync.sock"

    @property
    def memory_mb(self):
        return 384

    def daemon_words(self):
        words = [self.program("penstockd"), "--listen", self.address, "--state-file", self.state_file, "--table-dir", "off",
                 "--mode", "node",
                 "--gateway-name", self._place.name, "--node-name", self._place.name, "--memory-mb", str(self.memory_mb),
                 "--main-core", str(MAIN_CORE), "--worker-cores", ",".join([str(WORKER_CORE)] * self._workers)]
        ports = [*((twin, addresses) for _, twin, addresses in self._place.ports), *SPARE_PORTS][:len(self.devices)]
        for device, (twin, addresses) in zip(self.devices, ports, strict=True):
            words += ["--port", f"device={device};twin={twin};address={addresses}"]
        return words + self.more_options

    def start_daemon(self):
        self.daemon = self._lab.machine.spawn(self.daemon_words(), "penstockd.log")
        self._until("penstockd answers", lambda: self.ctl("get", "ports").returncode == 0, self.daemon, "share/penstockd.log", PATIENCE_S)

    def start_sync(self, folder):
        self.sync = self._lab.machine.spawn(self.sync_words(folder), "penstock-sync.log")

    def until_served(self, services, patience_s=PATIENCE_S, backends=True):
        super().until_served(services, patience_s, backends)

    def ctl(self, *words, timeout_s=PATIENCE_S):
        return self._lab.machine.run(self.program("penstockctl"), "--gateway", self.address, "--timeout", str(timeout_s), *words,
                                     timeout_s=timeout_s)

    def ports(self):
        """In the order of --port: {field: value} as in `penstockctl get ports`, numbers as numbers."""
        return sorted(self.json("get", "ports"), key=lambda port: port["id"])

    def interrupts(self):
        """The granted interrupts of the first port and the idle mode of the workers, as text: all cards of a
        case are equal."""
        settings = {setting["name"]: setting for setting in self.ports()[0]["settings"]}
        told = [f"{name} {settings[name]['granted'] or 'off'}{settings[name]['reason'] and ': ' + settings[name]['reason']}"
                for name in ("rx-interrupts", "link-interrupt") if name in settings]
        idle = {worker["idle"] for worker in self.json("get", "workers")}
        return ", ".join([*told, f"idle workers: {', '.join(sorted(idle))}"])


class VmLab(Lab):
    logs = ("share/penstockd.log", "share/penstock-sync.log", "console.log", "qemu.log")

    def __init__(self, build, variant, image):
        self.build = os.path.realpath(build)
        self.machine = None
        super().__init__(self.build, variant, "vm")
        self._image = image
        self.gateway = VmGateway(self)

    def boot(self, cards, vfio=True, **machine):
        """Creates namespaces and TAPs, and boots the machine with these cards. With `vfio`, the cards are
        bound to vfio-pci and become the gateway's ports."""
        self.network.build()
        for card in cards:
            self._wire(card)
        self.machine = vm.Machine(self.run, self._image, cards, visible=(ROOT, self.build), **machine)
        booted_s = self.machine.start(lambda words, log: self.network.start("gateway", words, log))
        self.remarks.append(f"booted in {booted_s:.0f} s")
        if vfio:
            for card in cards:
                self.machine.give_to_vfio(card)
            self.gateway.devices = [self.machine.address_of(card) for card in cards]

    def serve(self, *objects):
        """Starts servers, penstockd and penstock-sync; returns when the Services among the objects are
        served."""
        servers.start(self.network, self.run)
        self.apply(*objects)
        self.gateway.start_daemon()
        self.gateway.start_sync(MANIFESTS)
        self.gateway.until_served(manifests.service_ports_of(objects), backends=False)

    def apply(self, *objects, file="objects.yaml"):
        self.machine.write(os.path.join(MANIFESTS, file), manifests.text_of(objects), replace=True)

    def drops(self):
        """{reason: packets}, for the reasons with at least one packet."""
        return {row["reason"]: int(row["packets"]) for row in self.gateway.json("stats")["drops"] if int(row["packets"])}

    def end(self):
        if self.machine:
            self.machine.end()
        super().end()

    def _wire(self, card):
        """Connects the card's TAP and its wire by a bridge."""
        side = card.tap.removeprefix("tap-")
        kind = "tap multi_queue" if card.queues > 1 else "tap"
        self.network.ip("gateway", f"tuntap add {card.tap} mode {kind}\nlink set {card.tap} up")
        if side not in WIRES:
            return
        bridge = f"br-{side}"
        self.network.ip("gateway", f"link add {bridge} type bridge mcast_snooping 0\n"
                                   f"link set {card.tap} master {bridge}\nlink set gw-{side} master {bridge} up\nlink set {bridge} up")
