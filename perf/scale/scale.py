#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of "Scale" in docs/performance.md, computed from the measured constants of docs/performance.md and
docs/sizing.md.

scale.py ROOT            prints the tables
scale.py ROOT --check    compares them with the page
"""
import os
import re
import sys

BEGIN, END = "<!-- scale -->\n", "<!-- end of scale -->\n"
WORKERS = (1, 2, 4, 8, 16, 24, 32)
MILLION = 1_000_000
SIZES = (MILLION, 10 * MILLION, 50 * MILLION)  # connections of one worker


def only(pattern, text):
    found = re.findall(pattern, text, re.MULTILINE)
    if len(found) != 1:
        raise ValueError(f"{len(found)} places of the pages match {pattern}")
    return found[0]


def constants(performance, sizing):
    def of_sizing(name):
        return float(only(rf"^\| {name} \| ([0-9.]+)", sizing))
    # columns: 1k, 64k, 1M, 4M, 10M, 50M; a cell is "minimum / median"
    established = only(r"^\| Penstock worker, full NAT, to the backend \|(.*)\|$", performance).split("|")
    first = only(r"^\| Penstock worker, TCP \|(.*)\|$", performance).split("|")
    pair = only(r"^\| throughput of two workers / of one \|(.*)\|$", performance).split("|")
    def median(cell):
        return float(cell.split("/")[-1])
    return {"clock": of_sizing("clock of the machine") * 1e6,
            "packet": dict(zip(SIZES, (median(established[column]) for column in (2, 4, 5)))),
            "first": median(first[1]),
            "pair": min(float(cell) for cell in pair) / 2,
            "table": of_sizing("bytes of a connection in the table, IPv4"),
            "snat": of_sizing("bytes of a connection in the SNAT pools"),
            "link": of_sizing("bytes of a connection in the list of its endpoint")}


def millions(known, workers, cycles):
    """Of packets or connections a second: as if each worker lost what two lose, and as if none lost any."""
    most = workers * known["clock"] / cycles / 1e6
    return f"{most:.1f}" if workers == 1 else f"{most * known['pair']:.1f} to {most:.1f}"


def gigabytes(known, connections):
    """While a worker runs, and with the tables of the former process."""
    table, rest = connections * known["table"] / 1e9, connections * (known["snat"] + known["link"]) / 1e9
    return table + rest, 2 * table + rest


def rates(known):
    yield "| workers | Mpps, 1M connections each | Mpps, 10M each | Mpps, 50M each | new connections, millions a second |"
    yield "| --- | --- | --- | --- | --- |"
    for workers in WORKERS:
        cells = [millions(known, workers, known["packet"][size]) for size in SIZES]
        yield f"| {workers} | {' | '.join(cells)} | {millions(known, workers, known['first'])} |"


def memory(known):
    yield "| workers | connections, 1M each | GB | connections, 10M each | GB | connections, 50M each | GB |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for workers in WORKERS:
        cells = []
        for size in SIZES:
            runs, starts = gigabytes(known, workers * size)
            cells += [f"{workers * size // MILLION}M", f"{runs:.1f}, {starts:.1f}"]
        yield f"| {workers} | {' | '.join(cells)} |"


def hundred_million(known):
    yield "| 100M connections | GB |"
    yield "| --- | --- |"
    count = 100 * MILLION
    for name, what in (("table", "tables"), ("snat", "SNAT pools"), ("link", "lists of endpoints")):
        yield f"| {what}, {known[name]:g} bytes each | {count * known[name] / 1e9:.2f} |"
    runs, starts = gigabytes(known, count)
    yield f"| sum; during a start, with the tables of the former process | {runs:.2f}; {starts:.2f} |"


def section(root):
    def page(name):
        with open(os.path.join(root, "docs", name)) as file:
            return file.read()
    performance = page("performance.md")
    known = constants(performance, page("sizing.md"))
    tables = "\n\n".join("\n".join(table(known)) for table in (rates, memory, hundred_million))
    return performance, f"{tables}\n"


def main(root, *options):
    performance, computed = section(root)
    if options != ("--check",):
        print(computed, end="")
        return 0
    if performance.count(BEGIN) != 1 or performance.count(END) != 1:
        print("docs/performance.md: the marks of the scale tables are missing")
        return 1
    written = performance.split(BEGIN)[1].split(END)[0]
    if written != computed:
        print(f"docs/performance.md: the scale tables are out of date; scripts/bench scale prints:\n{computed}")
        return 1
    print("the scale tables of docs/performance.md follow from the measured constants")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
