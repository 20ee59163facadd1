# SPDX-License-Identifier: Apache-2.0
"""The two compared programs. Each is a process that polls two net_pcap devices from one CPU. Each can be
stopped as a whole, so that they run alternately on that CPU."""
import json
import os
import re
import signal
import subprocess
import time

import frames
from bed import FIRST_IN_LINE, let_session_go_first

OVS_MB = 2048  # its packet buffers, 262,144 of them by default
PENSTOCK_MB = 1024
VSWITCHD = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"


def pcap(index, path, endless):
    """The device string, the same for both."""
    return f"net_pcap{index},rx_pcap={path}" + (",infinite_rx=1" if endless else "")


class Side:
    def start(self, namespace, words, log, **how):
        process = subprocess.Popen(["ip", "netns", "exec", namespace, *FIRST_IN_LINE, *words], stderr=log, start_new_session=True, text=True, **how)
        let_session_go_first(process.pid)
        return process

    def sleep(self):
        os.kill(self.polls.pid, signal.SIGSTOP)

    def wake(self):
        os.kill(self.polls.pid, signal.SIGCONT)
        time.sleep(0.05)  # until the caches are warm and the clock's jump is past

    def end(self):
        os.kill(self.polls.pid, signal.SIGCONT)
        self.polls.terminate()
        self.polls.wait(timeout=15)


class Penstock(Side):
    def __init__(self, run, namespace, program, main_cpu, worker_cpu):
        self._run, self._namespace, self._program, self._cpus = run, namespace, program, (str(main_cpu), str(worker_cpu))
        self.fingerprint = []

    def begin(self, devices, connections, mbufs):
        with open(self._run.file("replay.log"), "ab") as log:
            self.polls = self.start(self._namespace, [self._program, *self._cpus, str(PENSTOCK_MB), str(connections), str(mbufs), *devices], log,
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.fingerprint = []
        while (line := self._line()).startswith(("fingerprint", "#")):
            self.fingerprint.append(line)

    def connections(self):
        return self._ask("totals")["connections"]

    def totals(self):
        return self._per_packet(self._ask("totals"))

    def window(self, seconds):
        return self._per_packet(self._ask(f"window {seconds}"))

    def end(self):
        os.kill(self.polls.pid, signal.SIGCONT)
        self.polls.stdin.close()
        self.polls.wait(timeout=15)

    @staticmethod
    def _per_packet(seen):
        packets = max(1, seen["received"])
        return {"packets": seen["received"], "sent_share": seen["sent"] / packets, "cycles": seen["busy_ticks"] / packets}

    def _ask(self, words):
        print(words, file=self.polls.stdin, flush=True)
        return json.loads(self._line())

    def _line(self):
        line = self.polls.stdout.readline()
        if not line:
            with open(self._run.file("replay.log"), errors="replace") as log:
                raise RuntimeError(f"replay ended with {self.polls.wait()}: {log.read().strip()[-400:]}")
        return line.rstrip("\n")


class Ovs(Side):
    """A bridge of the DPDK datapath with one PMD thread; database, sockets and logs in a directory of its
    own."""

    def __init__(self, run, namespace, main_cpu, worker_cpu):
        self._run, self._namespace = run, namespace
        self._directory = run.file("ovs")
        os.mkdir(self._directory)
        os.environ.update({f"OVS_{kind}DIR": self._directory for kind in ("RUN", "LOG", "DB", "SYSCONF")})
        self._database = f"unix:{self._file('db.sock')}"
        _checked("ovsdb-tool", "create", self._file("conf.db"), SCHEMA)
        with open(run.file("ovs.log"), "ab") as log:
            self._server = self.start(namespace, ["ovsdb-server", self._file("conf.db"), f"--remote=punix:{self._file('db.sock')}",
                                                  f"--unixctl={self._file('db.ctl')}", "-vconsole:off"], log)
            until("ovsdb-server", lambda: os.path.exists(self._file("db.sock")))
            self._vsctl("--no-wait", "init")
            self._vsctl("--no-wait", "set", "Open_vSwitch", ".", "other_config:dpdk-init=true", f"other_config:dpdk-lcore-mask={1 << main_cpu:x}",
                        f"other_config:pmd-cpu-mask={1 << worker_cpu:x}", f"other_config:dpdk-socket-mem={OVS_MB}",
                        "other_config:dpdk-extra=--no-pci --in-memory")
            self.polls = self.start(namespace, [VSWITCHD, self._database, f"--unixctl={self._file('vs.ctl')}", f"--log-file={self._file('vs.log')}",
                                                "-vconsole:off"], log)
        until("ovs-vswitchd", lambda: subprocess.run(self._appctl_words("version"), capture_output=True).returncode == 0, 30)
        self._vsctl("add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev")
        self._add_flows()

    def set_emc(self, on):
        # One of N missed packets enters the cache. OVS's default is N = 100; 0 disables the cache.
        self._vsctl("set", "Open_vSwitch", ".", f"other_config:emc-insert-inv-prob={100 if on else 0}")

    def begin(self, devices):
        """Polling begins while the rest of OVS still adds the ports."""
        for number, name, device in ((2, "cluster", devices[1]), (1, "up", devices[0])):
            self._vsctl("add-port", "br0", name, "--", "set", "Interface", name, "type=dpdk", f'options:dpdk-devargs="{device}"',
                        f"ofport_request={number}")
            wrong = self._vsctl("get", "Interface", name, "error").strip()
            if wrong != "[]":
                raise RuntimeError(f"OVS refuses {device}: {wrong}")

    def remove_ports(self):
        for name in ("up", "cluster"):
            self._vsctl("del-port", "br0", name)
        self._appctl("dpctl/flush-conntrack")

    def connections(self):
        return int(self._appctl("dpctl/ct-get-nconns", "netdev@ovs-netdev"))

    def clear(self):
        self._appctl("dpif-netdev/pmd-stats-clear")

    def totals(self):
        """The counts since clear()."""
        shown = self._appctl("dpif-netdev/pmd-stats-show").split("main thread")[0]
        number = lambda what: int((re.search(what + r": (\d+)", shown) or [0, 0])[1])
        packets = number("packets received")
        return {"packets": packets, "cycles": number("processing cycles") / max(1, packets), "emc_hits": number("emc hits")}

    def window(self, seconds):
        before = self._port_packets()
        self.clear()
        time.sleep(seconds)
        seen = self.totals()
        received, sent = (now - then for now, then in zip(self._port_packets(), before))
        return {**seen, "sent_share": sent / max(1, received)}

    def end(self):
        super().end()
        self._server.terminate()
        self._server.wait(timeout=10)

    def _add_flows(self):
        """The same as Penstock's Keep mode: known connections are translated and forwarded, VIPs open new
        ones, all other packets are dropped."""
        towards_endpoint = "mod_dl_src:02:00:00:00:00:0b,mod_dl_dst:02:00:00:00:02:02,dec_ttl,output:2"
        towards_client = "mod_dl_src:02:00:00:00:00:0a,mod_dl_dst:02:00:00:00:01:02,dec_ttl,output:1"
        flows = ["table=0,in_port=1,ip,actions=ct(zone=1,nat,table=1)", "table=0,in_port=2,ip,actions=ct(zone=1,nat,table=2)",
                 f"table=0,priority=40000,dl_dst={frames.LEAD_MAC.hex(':')},actions=drop", "table=0,priority=0,actions=drop",
                 f"table=1,priority=90,ct_state=+trk+est,ip,actions={towards_endpoint}",
                 # Until a reply has arrived conntrack classifies UDP as "new", although the flow is known and
                 # translated.
                 f"table=1,priority=80,ct_state=+trk,ip,nw_dst=10.80.2.0/24,actions={towards_endpoint}",
                 f"table=2,priority=90,ct_state=+trk+est+rpl,ip,actions={towards_client}", "table=2,priority=0,actions=drop"]
        for service in range(frames.SERVICES):
            vip, endpoint = dotted(frames.VIP + service), dotted(frames.endpoint_of(service))
            flows.append(f"table=1,priority=100,ct_state=+trk+new,udp,nw_dst={vip},tp_dst=80,"
                         f"actions=ct(commit,zone=1,nat(dst={endpoint}:9376)),{towards_endpoint}")
        path = self._file("flows")
        with open(path, "w") as file:
            file.write("\n".join(flows) + "\n")
        _checked("ovs-ofctl", "del-flows", self._bridge())
        _checked("ovs-ofctl", "add-flows", self._bridge(), path)

    def _port_packets(self):
        """Packets received and sent by both devices."""
        shown = _checked("ovs-ofctl", "dump-ports", self._bridge())
        ports = re.findall(r'port\s+"?(\S+?)"?: rx pkts=(\d+).*?\n\s+tx pkts=(\d+)', shown)
        devices = [(int(received), int(sent)) for name, received, sent in ports if name in ("up", "cluster", "1", "2")]
        return [sum(column) for column in zip(*devices)]

    def _bridge(self):
        return f"unix:{self._file('br0.mgmt')}"

    def _file(self, name):
        return os.path.join(self._directory, name)

    def _vsctl(self, *words):
        return _checked("ovs-vsctl", f"--db={self._database}", "--timeout=30", *words)

    def _appctl_words(self, *words):
        return ["ovs-appctl", "-t", self._file("vs.ctl"), *words]

    def _appctl(self, *words):
        return _checked(*self._appctl_words(*words))


def dotted(address):
    return ".".join(str(address >> shift & 255) for shift in (24, 16, 8, 0))


def _checked(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=40)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def until(what, condition, patience_s=10):
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {patience_s} s: {what}")
        time.sleep(0.05)
