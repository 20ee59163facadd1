# SPDX-License-Identifier: Apache-2.0
"""TRex, stateless: the clients of README.md, in uniform random order, and a stream for latency.

Tunables: --dst_mac (the gateway's uplink0), --clients (1, 16, 152), --new 1 to use all addresses and ports as
separate flows."""
import argparse

from trex_stl_lib.api import (CTRexVmInsFixHwCs, Ether, IP, UDP, STLFlowLatencyStats, STLPktBuilder, STLScVmRaw, STLStream, STLTXCont,
                              STLVmFixChecksumHw, STLVmFlowVar, STLVmWrFlowVar)

FRAME_BYTES = 60  # the NIC adds the FCS
LATENCY_PPS = 1_000


def address(number):
    return f"198.{18 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"


class Clients:
    def get_streams(self, direction=0, tunables=(), **_):
        parser = argparse.ArgumentParser()
        parser.add_argument("--dst_mac", default="02:00:00:00:00:0a")
        parser.add_argument("--clients", type=int, default=1)
        parser.add_argument("--new", type=int, default=0)
        options = parser.parse_args(tunables)
        if options.new:
            load = self._packet(options.dst_mac, 0, 65_536, 1024, 65_535)
        else:
            load = self._packet(options.dst_mac, 0, options.clients, 1024, 5_119)
        latency = self._packet(options.dst_mac, 2**16, 1, 1024, 5_119)
        return [STLStream(packet=load, mode=STLTXCont(percentage=100), random_seed=1),
                STLStream(packet=latency, mode=STLTXCont(pps=LATENCY_PPS), flow_stats=STLFlowLatencyStats(pg_id=1))]

    @staticmethod
    def _packet(mac, first_client, clients, first_port, last_port):
        """Client address, client port and VIP, each drawn independently. The NIC fills in both checksums;
        with a UDP checksum of zero the gateway would skip the checksum update."""
        frame = Ether(dst=mac) / IP(src=address(first_client), dst="203.0.113.1") / UDP(sport=first_port, dport=80)
        frame = frame / (b"\0" * (FRAME_BYTES - len(frame)))
        draw = STLScVmRaw([
            STLVmFlowVar("client", min_value=address(first_client), max_value=address(first_client + clients - 1), size=4, op="random"),
            STLVmFlowVar("port", min_value=first_port, max_value=last_port, size=2, op="random"),
            STLVmFlowVar("vip", min_value="203.0.113.1", max_value="203.0.113.16", size=4, op="random"),
            STLVmWrFlowVar("client", pkt_offset="IP.src"), STLVmWrFlowVar("vip", pkt_offset="IP.dst"),
            STLVmWrFlowVar("port", pkt_offset="UDP.sport"),
            STLVmFixChecksumHw(l3_offset="IP", l4_offset="UDP", l4_type=CTRexVmInsFixHwCs.L4_TYPE_UDP)])
        return STLPktBuilder(pkt=frame, vm=draw)


def register():
    return Clients()
