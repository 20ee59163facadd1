-- Pktgen-DPDK: the clients of README.md. Prints the frames sent and received on port 0,
-- and the received share.
package.path = package.path .. ";?.lua"
require "Pktgen"

local gateway_mac = "02:00:00:00:00:0a" -- of uplink0: ip link show uplink0
-- 1, 17, 61 or 151: prime, so that ranges that move together still have every combination
local clients = 17
local rate = 10                         -- percent of the line
local seconds = 60
-- true: each frame is a new flow, until 198.18.0.0/16 x 64,511 ports wrap
local fresh = false

local port = "0"

-- The n-th address of 198.18.0.0/15, as text.
local function client(n)
    return string.format("198.%d.%d.%d", 18 + math.floor(n / 65536), math.floor(n / 256) % 256, n % 256)
end

local function range(set, first, last)
    set(port, "start", first)
    set(port, "min", first)
    set(port, "max", last)
end

pktgen.range.dst_mac(port, "start", gateway_mac)
pktgen.range.ip_proto(port, "udp")
pktgen.range.pkt_size(port, "start", 64)
pktgen.range.pkt_size(port, "min", 64)
pktgen.range.pkt_size(port, "max", 64)
pktgen.range.pkt_size(port, "inc", 0)
pktgen.range.dst_port(port, "start", 80)
pktgen.range.dst_port(port, "min", 80)
pktgen.range.dst_port(port, "max", 80)
pktgen.range.dst_port(port, "inc", 0)
range(pktgen.range.dst_ip, "203.0.113.1", "203.0.113.16")
pktgen.range.dst_ip(port, "inc", "0.0.0.1")
-- 4,095 ports have no factor in common with 16 VIPs, nor 64,511 with 65,536 clients.
range(pktgen.range.src_port, 1024, fresh and 65534 or 5118)
pktgen.range.src_port(port, "inc", 1)
range(pktgen.range.src_ip, client(0), client(fresh and 65535 or clients - 1))
pktgen.range.src_ip(port, "inc", "0.0.0.1")
pktgen.set_range(port, "on")

pktgen.set(port, "rate", rate)
pktgen.set(port, "count", 0)
pktgen.clr()
pktgen.start(port)
pktgen.delay(seconds * 1000)
pktgen.stop(port)
pktgen.delay(1000) -- for frames in flight

local seen = pktgen.portStats(port, "port")[tonumber(port)]
printf("sent %d received %d share %.6f missed here %d\n", seen.opackets, seen.ipackets, seen.ipackets / seen.opackets, seen.imissed)
