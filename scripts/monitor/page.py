# SPDX-License-Identifier: Apache-2.0
"""Reads docs/counters.md: the names of all metrics, and the drop reasons with meaning and cause."""
import dataclasses
import re

# Levels among the counters of a worker; they are exported as gauges (control/metrics/prometheus.cpp).
LEVELS = ("connections", "fragments_waiting")
HISTOGRAMS = ("penstock_sync_apply_latency_seconds",
              *(f"penstock_{kind}_{latency}_seconds" for kind in ("service", "backend") for latency in ("connect", "first_byte")))


@dataclasses.dataclass(frozen=True)
class Reason:
    name: str
    meaning: str
    action: str  # cause and action, as plain text


@dataclasses.dataclass(frozen=True)
class Page:
    metrics: frozenset
    reasons: dict  # name -> Reason


def read(path):
    metrics, reasons, section = {"penstock_drops_total"}, {}, ""
    with open(path) as file:
        for line in file:
            if line.startswith("## "):
                section = line[3:].strip()
            cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
            name = re.fullmatch(r"`(\w+)`", cells[0])
            if not line.startswith("| ") or not name:
                continue
            if section == "Drops":
                reasons[name[1]] = Reason(name[1], cells[1], plain(cells[3]))
            elif section == "Workers":
                metrics.add(f"penstock_{name[1]}" + ("" if name[1] in LEVELS else "_total"))
            elif name[1].startswith("penstock_"):
                metrics.add(name[1])
    for name in HISTOGRAMS:
        metrics |= {f"{name}_{part}" for part in ("bucket", "sum", "count")}
    return Page(frozenset(metrics), reasons)


def plain(text):
    """Markdown as text: links are replaced by their words."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("`", "")
