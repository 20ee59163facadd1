#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Checks the files of perf/pktgen with the generators' own parsers, as far as these are installed here, and prints what
it could not check.

clients.lua       runs in the Lua interpreter that Pktgen-DPDK embeds. Pktgen's functions are replaced by functions of the
                  same names, argument counts and types (its app/lpktgenlib.c), which record the calls. Flows are
                  counted by Pktgen's rule: all ranges advance together
trex_clients.py   is loaded by TRex's client API; the packet and the field variables are those that TRex's server would
                  receive
services.yaml     and `neighbours` are compared with both
README.md         the numbers of flows, and the command line of dpdk-testpmd, which runs on a null device

  perf/pktgen/check.py [--fetch]      --fetch installs TRex's client API into the cache"""
import argparse
import ipaddress
import json
import math
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../scripts"))

from testbed import python_programs  # noqa: E402
from testbed.api_servers import NotToBeHad  # noqa: E402

REQUIREMENTS = os.path.join(HERE, "trex-requirements.txt")
PATIENCE_S = 60

# Arguments by Pktgen-DPDK's app/lpktgenlib.c. s: string, i: integer, n: string or number.
LUA_API = {"set": "ssn", "clr": "", "start": "s", "stop": "s", "delay": "i", "portStats": "ss", "set_range": "ss",
           "range.dst_mac": "sss", "range.src_mac": "sss", "range.src_ip": "sss", "range.dst_ip": "sss", "range.ip_proto": "ss",
           "range.src_port": "ssi", "range.dst_port": "ssi", "range.pkt_size": "ssi"}
PRELUDE = """
local api = {%s}
local function check(name, kinds, ...)
    local arguments = table.pack(...)
    if arguments.n ~= #kinds then error(name .. ": " .. arguments.n .. " arguments instead of " .. #kinds, 3) end
    local line = {name}
    for i = 1, arguments.n do
        local kind, value = kinds:sub(i, i), arguments[i]
        local good = kind == "s" and type(value) == "string" or kind == "i" and math.type(value) == "integer"
            or kind == "n" and (type(value) == "number" or type(value) == "string")
        if not good then error(name .. ": argument " .. i .. " is a " .. type(value), 3) end
        line[#line + 1] = tostring(value)
    end
    print(table.concat(line, "\\t"))
end
pktgen = {range = {}}
for name, kinds in pairs(api) do
    local group, member = name:match("^range%%.(.*)$") and pktgen.range or pktgen, name:gsub("^range%%.", "")
    group[member] = function(...)
        check(name, kinds, ...)
        if name == "portStats" then
            return {[tonumber((...))] = {opackets = 4, ipackets = 3, imissed = 0, ierrors = 0, oerrors = 0}}
        end
    end
end
package.preload["Pktgen"] = function() function printf(...) io.write(string.format(...)) end return true end
"""


class Wrong(Exception):
    pass


def require(condition, what):
    if not condition:
        raise Wrong(what)


def read(name):
    with open(os.path.join(HERE, name)) as file:
        return file.read()


def services():
    """VIPs, port, endpoints and their port of services.yaml."""
    text = read("services.yaml")
    return {"vips": re.findall(r"^ {4}- (203\S+)$", text, re.MULTILINE), "port": int(re.search(r"- port: (\d+)", text)[1]),
            "endpoints": re.findall(r"addresses: \[(\S+)\]", text), "target": int(re.search(r"targetPort: (\d+)", text)[1])}


def lua_program():
    return next((path for name in ("lua5.4", "lua5.3") if (path := shutil.which(name))), None)


def lua_calls(program, text):
    """The calls of Pktgen's functions by a script, as lists of words."""
    api = ", ".join(f'["{name}"] = "{kinds}"' for name, kinds in LUA_API.items())
    done = subprocess.run([program, "-"], input=PRELUDE % api + text, capture_output=True, text=True, timeout=PATIENCE_S)
    require(done.returncode == 0, f"clients.lua: {done.stderr.strip()}")
    return [line.split("\t") for line in done.stdout.splitlines()]


def lua_ranges(calls):
    """{"src_ip": {"start": ..., "min": ..., "max": ..., "inc": ...}}, addresses as numbers."""
    ranges = {}
    for words in calls:
        if words[0].startswith("range.") and len(words) == 4:
            value = words[3]
            number = int(value) if value.isdigit() else int(ipaddress.ip_address(value)) if value.count(".") == 3 else value
            ranges.setdefault(words[0].removeprefix("range."), {})[words[2]] = number
    return ranges


def lua_flows(ranges):
    """All ranges advance together by their increments and begin again after their ends."""
    count = 1
    for name in ("src_ip", "dst_ip", "src_port", "dst_port"):
        field = ranges[name]
        require(field["min"] <= field["start"] <= field["max"], f"clients.lua: {name} starts outside its range")
        steps = (field["max"] - field["min"]) // field["inc"] + 1 if field["inc"] else 1
        count = math.lcm(count, steps)
    return count


def check_lua(program):
    text, known = read("clients.lua"), services()
    calls = lua_calls(program, text)
    require([words[0] for words in calls[-7:]] == ["clr", "start", "delay", "stop", "delay", "portStats", "sent 4 received 3 share 0.750000 missed here 0"],
            f"clients.lua: the run is {calls[-7:]}")
    ranges = lua_ranges(calls)
    require(["set_range", "0", "on"] in calls, "clients.lua: the ranges are not switched on")
    vips = [str(ipaddress.ip_address(n)) for n in range(ranges["dst_ip"]["min"], ranges["dst_ip"]["max"] + 1)]
    require(vips == known["vips"], f"clients.lua sends to {vips}, not to the VIPs of services.yaml")
    require(set(ranges["dst_port"].values()) - {0} == {known["port"]}, "clients.lua: another port than services.yaml")
    require(set(ranges["pkt_size"].values()) == {64, 0}, "clients.lua: the frames have not 64 bytes")
    rows = re.findall(r"^\| ([\d,]+) \| ([\d,]+) \|", read("README.md"), re.MULTILINE)
    require(len(rows) >= 4, "README.md: no table of clients and flows")
    for clients, flows in rows:
        changed, count = re.subn(r"^local clients = \d+$", f"local clients = {clients}", text, flags=re.MULTILINE)
        require(count == 1, "clients.lua: no line `local clients = N`")
        counted = lua_flows(lua_ranges(lua_calls(program, changed)))
        require(counted == number(flows), f"README.md: {clients} clients are {counted} flows, not {flows}")
    fresh, count = re.subn(r"^local fresh = false$", "local fresh = true", text, flags=re.MULTILINE)
    require(count == 1, "clients.lua: no line `local fresh = false`")
    counted = lua_flows(lua_ranges(lua_calls(program, fresh)))
    require(counted == 65_536 * 64_511, f"clients.lua: fresh = true has {counted} flows")
    # The check itself must fail on a mistake.
    for wrong in ('pktgen.range.dst_port("0", "start")', 'pktgen.range.dst_portt("0", "start", 80)', 'pktgen.start(0)', "if then"):
        try:
            lua_calls(program, f"{text}\n{wrong}\n")
        except Wrong:
            continue
        raise Wrong(f"the check accepts {wrong}")
    return len(rows)


def number(text):
    return int(text.replace(",", ""))


TREX = """
import json, sys
import lbr_trex_client
from trex.stl.trex_stl_streams import STLProfile
profile = STLProfile.load_py(sys.argv[1], direction=0, port_id=0, tunables=sys.argv[2:])
print(json.dumps([stream.to_json() for stream in profile.get_streams()]))
"""


def trex_streams(python, *tunables):
    done = subprocess.run([python, "-B", "-W", "ignore", "-", os.path.join(HERE, "trex_clients.py"), *tunables], input=TREX, capture_output=True, text=True,
                          timeout=PATIENCE_S)
    require(done.returncode == 0, f"trex_clients.py {' '.join(tunables)}: {done.stderr.strip()[-600:]}")
    return json.loads(done.stdout.splitlines()[-1])


def trex_flows(stream):
    """The number of flows of a stream, and its VIPs. Checks that each variable is written to its field."""
    instructions = stream["vm"]["instructions"]
    fields = {entry["name"]: entry for entry in instructions if entry["type"] == "flow_var"}
    offsets = {entry["name"]: entry["pkt_offset"] for entry in instructions if entry["type"] == "write_flow_var"}
    require(offsets == {"client": 26, "vip": 30, "port": 34}, f"trex_clients.py writes to the offsets {offsets}")
    require(any(entry["type"] == "fix_checksum_hw" for entry in instructions), "trex_clients.py leaves the checksums wrong")
    require(all(entry["op"] == "random" for entry in fields.values()), "trex_clients.py: not in random order")
    vips = [str(ipaddress.ip_address(n)) for n in range(fields["vip"]["min_value"], fields["vip"]["max_value"] + 1)]
    return math.prod(entry["max_value"] - entry["min_value"] + 1 for entry in fields.values()), vips, fields["client"]


def check_trex(python):
    known = services()
    sizes = re.findall(r"([\d,]+) is ([\d,]+)", read("README.md").split("## Clients with TRex")[1].split("##")[0].replace("\n", " "))
    require(len(sizes) >= 3, "README.md: no numbers of flows for TRex")
    for clients, flows in sizes:
        load, latency = trex_streams(python, "--dst_mac", "02:00:00:00:00:0c", "--clients", clients)
        counted, vips, _ = trex_flows(load)
        require(counted == number(flows), f"README.md: {clients} clients are {counted} flows, not {flows}")
        require(vips == known["vips"], "trex_clients.py: other VIPs than services.yaml")
        require(latency["flow_stats"]["rule_type"] == "latency", "trex_clients.py: no stream for latency")
        _, _, clients_of_load = trex_flows(load)
        _, _, clients_of_latency = trex_flows(latency)
        require(clients_of_latency["min_value"] > clients_of_load["max_value"], "trex_clients.py: the latency stream shares clients")
    check_frame(load["packet"]["binary"], known["port"])
    require(trex_flows(trex_streams(python, "--new", "1")[0])[0] == 16 * 65_536 * 64_512, "trex_clients.py --new 1: another number of flows")
    try:
        trex_streams(python, "--client", "no number")
    except Wrong:
        return len(sizes)
    raise Wrong("the check accepts a wrong tunable")


def check_frame(base64_text, port):
    import base64
    frame = base64.b64decode(base64_text)
    require(len(frame) == 60 and frame[:6].hex(":") == "02:00:00:00:00:0c" and frame[12:14] == b"\x08\0", f"trex_clients.py: the frame is {frame.hex()}")
    require(frame[23] == 17 and int.from_bytes(frame[36:38], "big") == port, "trex_clients.py: not UDP to the Service's port")
    require(int.from_bytes(frame[16:18], "big") == 46 and int.from_bytes(frame[38:40], "big") == 26, "trex_clients.py: the lengths are wrong")


def check_neighbours():
    """Every endpoint of services.yaml has a neighbour."""
    first, last = map(int, re.search(r"seq (\d+) (\d+)", read("neighbours")).groups())
    prefix = re.search(r"neigh replace (\d+\.\d+\.\d+)\.\$host", read("neighbours"))[1]
    require([f"{prefix}.{host}" for host in range(first, last + 1)] == services()["endpoints"], "neighbours and services.yaml name other endpoints")
    require(services()["target"] == 9376, "services.yaml: another port of the endpoints than README.md")


def check_testpmd(program):
    """The endpoints' command line of README.md on a null device, without hugepages."""
    words = re.search(r"^ *dpdk-testpmd (.*)$", read("README.md"), re.MULTILINE)[1].split()
    device = words.index("-a")
    cpus = sorted(os.sched_getaffinity(0))
    words[device:device + 2] = ["--no-pci", "--vdev=net_null0", "--no-huge", "--no-shconf", "--no-telemetry", "-m", "512"]
    words[words.index("-l"):words.index("-l") + 2] = ["--lcores", f"0@{cpus[0]},1@{cpus[-1]}"]
    done = subprocess.run([program, *words], input="\n", capture_output=True, text=True, timeout=PATIENCE_S)
    require(done.returncode == 0 and "5tswap packet forwarding" in done.stdout, f"README.md: testpmd refuses its arguments: {done.stdout[-300:]}{done.stderr[-300:]}")


def trex_python(fetch):
    """The interpreter with TRex's API. Without --fetch only one that is in the cache already."""
    if not fetch and not python_programs.is_ready("trex-client", REQUIREMENTS, "python"):
        raise NotToBeHad("TRex's client API is not in the cache (scripts/bench ports --check installs it)")
    return os.path.join(python_programs.environment("trex-client", REQUIREMENTS, "python"), "bin/python")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fetch", action="store_true")
    options = parser.parse_args()
    unchecked = ["Pktgen's and TRex's own processes: both need a NIC; Pktgen's functions are known by name and arguments only"]
    try:
        check_neighbours()
        print("checked: services.yaml and neighbours")
        if program := lua_program():
            print(f"checked: clients.lua in {os.path.basename(program)}, {check_lua(program)} numbers of clients")
        else:
            unchecked.append("clients.lua: no lua5.4 (scripts/setup test)")
        if program := shutil.which("dpdk-testpmd"):
            check_testpmd(program)
            print("checked: the arguments of dpdk-testpmd")
        else:
            unchecked.append("the arguments of dpdk-testpmd: it is not installed (scripts/setup load)")
        try:
            print(f"checked: trex_clients.py by TRex's client API, {check_trex(trex_python(options.fetch))} numbers of clients")
        except NotToBeHad as why:
            unchecked.append(f"trex_clients.py: {why}")
    except (Wrong, subprocess.TimeoutExpired) as why:
        print(f"FAILED: {why}")
        return 1
    for what in unchecked:
        print(f"not checked: {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
