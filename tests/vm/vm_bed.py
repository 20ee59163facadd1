# SPDX-License-Identifier: Apache-2.0
"""The laboratory of suite e2e with one part replaced: penstockd runs in a virtual machine, on PCI cards.

client ---- gw-up =(br-up)= tap-...-up ---- card | penstockd | card ---- tap-...-cl =(br-cl)= gw-cl ---- switch
                                                                                                           |
                                                                                                        backends

The client, the switch and the backends are the host's own namespaces with real programs, new for each case.
Another namespace holds QEMU, its TAPs and the two bridges. Cases use one machine after another; each case
starts with a machine that is as it was after its boot.
"""
import os
import sys

import manifests
from fixture import Lab
from lab import gateway as gw
from lab import network as net
from lab import servers, state
from testbed import vm
from testbed.vm import Card

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# In the guest, which runs one gateway at a time.
SOCKET = "/run/penstockd.sock"
LAST_GOOD = "/run/last-good.pb"
# Time limit for a program's start: the processor is emulated, and so is the disk that holds the program.
PATIENCE_S = 60
# The processors of the guest: one for control, one for all workers.
MAIN_CORE, WORKER_CORE = 0, 1
HOST = "gateway-vm"  # the namespace of QEMU
PENSTOCKD_LOG = "share/penstockd.log"
WIRES = ("up", "cl")  # created by scripts/lab; any other card ends in a TAP without a wire
SPARE_PORTS = (("spare0", "192.0.2.1/30"),)  # twin and address of a third card
VIRTIO = "disable-legacy=on,iommu_platform=on,ats=on"  # behind the IOMMU like the other cards


def _rss(queues):
    """A virtio-net card's options. It needs an interrupt for each queue's two rings, one for control and one
    for its configuration."""
    return f"mq=on,rss=on,hash=on,vectors={2 * queues + 2},{VIRTIO}"


# Kinds of cards: QEMU's name, queues and options. "host" is a card of a host beside the gateway: no checksum
# or segmentation is left to a card, as could happen on a virtual wire.
KINDS = {"e1000e": ("e1000e", 1, ""), "vmxnet3": ("vmxnet3", 1, ""), "virtio-net-pci": ("virtio-net-pci", 1, VIRTIO),
         "rss-2": ("virtio-net-pci", 2, _rss(2)), "rss-4": ("virtio-net-pci", 4, _rss(4)),
         "host": ("virtio-net-pci", 1, f"{VIRTIO},csum=off,gso=off")}
_FIRST_SLOT = 0x10


def card(kind, side):
    model, queues, options = KINDS[kind]
    place = 2 * list(KINDS).index(kind) + WIRES.index(side)
    return Card(f"{kind}-{side}", model, f"tap-{place}-{side}", _FIRST_SLOT + place, queues, options)


def pair_of(kind):
    """Two equal cards, one on each wire."""
    return [card(kind, side) for side in WIRES]


def spare(kind):
    """A card without a wire, to be pulled out."""
    model, queues, options = KINDS[kind]
    place = 2 * len(KINDS) + list(KINDS).index(kind)
    return Card(f"{kind}-spare", model, f"tap-{place}", _FIRST_SLOT + place, queues, options, pulled=True)


# The cards of a machine. Cards to be pulled out belong to a machine of their own.
ALL_PAIRS = tuple(one for kind in KINDS for one in pair_of(kind))
SPARES = (*pair_of("e1000e"), *(spare(kind) for kind in ("e1000e", "vmxnet3", "virtio-net-pci")))


def pulls_a_card(function):
    """Marks a case that needs one of SPARES."""
    function.cards = SPARES
    return function


def cards_for(case):
    return getattr(case.function, "cards", ALL_PAIRS)


class Host:
    """A virtual machine that serves one case after another, and the namespace that it runs in."""
    LOGS = (PENSTOCKD_LOG, "console.log", "qemu.log")

    def __init__(self, image, cards, visible):
        self._run, self._wired = state.Run.start("machine"), []
        self.network = net.Network(self._run)
        try:
            self.network.add(HOST)
            for side in WIRES:
                self.network.ip(HOST, f"link add br-{side} type bridge mcast_snooping 0\nlink set br-{side} up")
            for one in cards:
                kind = "tap multi_queue" if one.queues > 1 else "tap"
                self.network.ip(HOST, f"tuntap add {one.tap} mode {kind}\nlink set {one.tap} up")
            self.machine = vm.Machine(self._run, image, cards, visible=visible)
            self.booted_s = self.machine.start(lambda words, log: self.network.start(HOST, words, log))
            self.machine.clear()
        except vm.GuestError as error:
            words = self.last_words()
            self.end()
            raise vm.GuestError(f"{error}\n{words}") from error
        except BaseException:
            self.end()
            raise

    def log(self, name):
        return self._run.file(name)

    def last_words(self):
        return "".join(f"--- {name}\n{text}" for name in self.LOGS if (text := _tail(self.log(name))))

    def wire(self, network, cards):
        """Connects these cards with the wires of a case's network."""
        for side in WIRES:
            network.ip("gateway", f"link set gw-{side} netns {self.network.namespace(HOST)}")
            self._wired.append(f"gw-{side}")
            self.network.ip(HOST, f"link set gw-{side} master br-{side} up")
        for one in cards:
            if (side := one.tap.rpartition("-")[2]) in WIRES:
                self.network.ip(HOST, f"link set {one.tap} master br-{side}")

    def clear(self):
        """Makes it ready for the next case. Returns what could not be undone."""
        for end in self._wired:
            self.network.ip(HOST, f"link del {end}")
        self._wired = []
        for one in self.machine.cards:
            self.network.ip(HOST, f"link set {one.tap} nomaster")
        return self.machine.clear()

    def end(self):
        if hasattr(self, "machine"):
            self.machine.end()
        self._run.undo()


def _tail(path):
    try:
        with open(path, errors="replace") as file:
            return "".join(file.readlines()[-60:])
    except FileNotFoundError:
        return ""


class Hosts:
    """The machine for the next case: the one of the last case, if that left it as it was."""

    def __init__(self, image, build):
        self._image, self._visible = image, (ROOT, os.path.realpath(build))
        self._host = self._cards = None

    def with_cards(self, cards):
        """Returns the Host, and whether it is new."""
        if self._host and self._cards == cards:
            return self._host, False
        self.discard()
        self._host, self._cards = Host(self._image, cards, self._visible), cards
        return self._host, True

    def discard(self):
        host, self._host = self._host, None
        if host:
            host.end()


class VmGateway(gw.Gateway):
    """penstockd inside the machine. penstock-sync and penstockctl reach it from the host."""

    def __init__(self, lab):
        super().__init__(lab.network, lab.run, lab.build, workers=lab.variant.get("workers", 1))
        self._lab = lab
        self.table_dir = "off"
        self.devices = []  # values of --port: one on each wire, then the spare ones

    @property
    def memory_mb(self):
        return 384 + self.more_memory_mb

    def daemon_words(self):
        words = [self.program("penstockd"), "--listen", f"unix:{SOCKET}", "--state-file", LAST_GOOD,
                 "--table-dir", self.table_dir, "--mode", "node",
                 "--gateway-name", self._place.name, "--node-name", self._place.name, "--memory-mb", str(self.memory_mb),
                 "--main-core", str(MAIN_CORE), "--worker-cores", ",".join([str(WORKER_CORE)] * self._workers)]
        ports = [*((twin, addresses) for _, twin, addresses in self._place.ports), *SPARE_PORTS][:len(self.devices)]
        for device, (twin, addresses) in zip(self.devices, ports, strict=True):
            words += ["--port", f"device={device};twin={twin};address={addresses}"]
        return words + self.more_options

    def start_daemon(self):
        machine, log = self._lab.machine, self._lab.host.log(PENSTOCKD_LOG)
        self.daemon = machine.spawn(self.daemon_words(), "penstockd.log")
        self._until("penstockd listens", lambda: machine.exists(SOCKET), self.daemon, log, PATIENCE_S)
        self._lab.listeners.append(machine.listen(self.socket, SOCKET))
        self._until("penstockd answers", lambda: self.ctl("get", "ports").returncode == 0, self.daemon, log, PATIENCE_S)

    def until_served(self, services, patience_s=PATIENCE_S, backends=True):
        super().until_served(services, patience_s, backends)

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
    logs = ("penstock-sync.log",)

    def __init__(self, case, build, hosts):
        self.build = os.path.realpath(build)
        super().__init__(self.build, case.variant, "vm")
        self._cards, self._hosts = cards_for(case), hosts
        self.host, self.listeners = None, []
        self.gateway = VmGateway(self)

    @property
    def machine(self):
        return self.host.machine

    def boot(self, cards, vfio=True):
        """Creates the namespaces, and connects these cards of a machine with them. With `vfio`, the cards are
        bound to vfio-pci and become the gateway's ports."""
        self.network.build()
        self.host, booted = self._hosts.with_cards(self._cards)
        if booted:
            self.remarks.append(f"booted in {self.host.booted_s:.0f} s")
        self.host.wire(self.network, cards)
        if vfio:
            for one in cards:
                self.machine.give_to_vfio(one)
            self.gateway.devices = [self.machine.address_of(one) for one in cards]

    def serve(self, *objects):
        """Starts servers, penstockd and penstock-sync; returns when the Services among the objects are
        served."""
        servers.start(self.network, self.run)
        self.apply(*objects)
        self.gateway.start_daemon()
        self.gateway.start_sync(self.manifests)
        self.gateway.until_served(manifests.service_ports_of(objects), backends=False)

    def reason_of_abort(self):
        """The assertion by which QEMU has ended; None: it runs."""
        return self.host and self.host.machine.failed_assertion()

    def last_words(self):
        return (self.host.last_words() if self.host else "") + super().last_words()

    def drops(self):
        """{reason: packets}, for the reasons with at least one packet. Without the reason that depends on
        time: a packet waits for its next hop for a second, and the guest's kernel and the worker, both
        emulated, may take longer for the neighbour's answer. The client's kernel then sends it again."""
        return {reason: packets for reason, packets in self.gateway.drops().items() if packets and reason != "next_hop_unresolved"}

    def end(self):
        try:
            for listener in self.listeners:
                listener.shutdown(2)
            if self.host and (left := self.host.clear()):
                _tell(f"the machine is not used again: {', '.join(left)}")
                self._hosts.discard()
        except Exception as error:  # noqa: BLE001: it is replaced, whatever is wrong with it
            _tell(f"the machine is not used again: {error}")
            self._hosts.discard()
        finally:
            super().end()


def _tell(what):
    # One write, so that lines of two processes do not mix.
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()
