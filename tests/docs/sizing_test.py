# SPDX-License-Identifier: Apache-2.0
"""The tables and the example of docs/sizing.md follow from its constants, and the constants are those of
docs/performance.md and docs/operations.md.

sizing_test.py ROOT"""
import os
import re
import sys


def constants(page):
    section = page.split("| constant | value |")[1].split("\n## ")[0]
    found = re.findall(r"^\| ([a-z][^|]*?) \| ([0-9.]+)[^|]*\|$", section, re.MULTILINE)
    clock_mhz, packet, first, table, snat, link, affinity, share = (float(value) for _, value in found)
    return {"clock": clock_mhz * 1e6, "packet": packet, "first": first, "table": table, "snat": snat,
            "link": link, "affinity": affinity, "share": share / 100}


def rows(page, heading):
    section = page.split(heading)[1].split("\n\n")[0]
    for line in section.splitlines():
        cells = [cell.strip().replace(",", "") for cell in line.strip("|").split("|")]
        if re.fullmatch(r"\d+", cells[0]):
            yield cells


def cores(page, known):
    for workers, established, mixed, gbits in rows(page, "| workers | Mpps"):
        cycles = int(workers) * known["clock"] * known["share"]
        rate = cycles / known["packet"]
        expected = [f"{rate / 1e6:.1f}", f"{cycles / (0.95 * known['packet'] + 0.05 * known['first']) / 1e6:.1f}",
                    f"{rate * 700 * 8 / 1e9:.0f}"]
        if [established, mixed, gbits] != expected:
            yield f"{workers} workers: {[established, mixed, gbits]}, computed {expected}"


def memory(page, known):
    for count, *cells in rows(page, "| connections of all workers"):
        table, snat, link = (int(count) * known[name] / 1e6 for name in ("table", "snat", "link"))
        expected = [f"{value:.0f}" for value in (table, table, snat, link, 2 * table + snat + link)]
        if cells != expected:
            yield f"{count} connections: {cells}, computed {expected}"


def sources(root, known):
    """The constants on the pages that measured them."""
    for page, pattern, names in (
            ("performance.md", r"^\| Penstock worker, full NAT, to the backend \|[^|]*\|[^|]*\| \d+ / (\d+) \|", ["packet"]),
            ("performance.md", r"^\| Penstock worker, TCP \|[^|]*\| \d+ / (\d+) \|", ["first"]),
            ("performance.md", r"bytes per IPv4 connection at 10M: table ([\d.]+), SNAT ports ([\d.]+) \|", ["table", "snat"]),
            ("operations.md", r"over all Services and workers: (\d+) bytes each", ["affinity"])):
        with open(os.path.join(root, "docs", page)) as file:
            match = re.search(pattern, file.read(), re.MULTILINE)
        values = [float(value) for value in match.groups()] if match else None
        if values != [known[name] for name in names]:
            yield f"{' and '.join(names)}: {[known[name] for name in names]}, but docs/{page} has {values}"


def example(page, known):
    text = page.split("## Example")[1].split("\n## ")[0]
    (printed,) = re.findall(r"= ([\d.]+) workers", text)
    computed = (2e6 * known["packet"] + 60e3 * known["first"]) / (known["clock"] * known["share"])
    if printed != f"{computed:.1f}":
        yield f"the example has {printed} workers, computed {computed:.1f}"


def main(root):
    with open(os.path.join(root, "docs/sizing.md")) as file:
        page = file.read()
    known = constants(page)
    if len(list(rows(page, "| workers | Mpps"))) < 2 or len(list(rows(page, "| connections of all workers"))) < 2:
        print("docs/sizing.md: a table has no rows")
        return 1
    faults = [*sources(root, known), *cores(page, known), *memory(page, known), *example(page, known)]
    print("\n".join(f"docs/sizing.md: {fault}" for fault in faults) or "the tables of docs/sizing.md follow from its constants")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
