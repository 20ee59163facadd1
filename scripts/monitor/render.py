# SPDX-License-Identifier: Apache-2.0
"""Turns the tables into files: Grafana's JSON, Prometheus rules, and promtool's tests of them."""
import json
import os
import re

from . import alerts, dashboards, drops, page
from .recordings import RECORDINGS

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RULES = "penstock-rules.yaml"
LICENSE = "# SPDX-License-Identifier: Apache-2.0\n"
METRIC = re.compile(r"(?<![\w:])penstock_\w+")
PANEL_WIDTH, PANEL_HEIGHT, GRID_WIDTH = 6, 7, 24


class Mismatch(Exception):
    """The tables and docs/counters.md differ."""


def load():
    """Reads the page and completes the alerts. Raises Mismatch, naming each difference."""
    counters = page.read(os.path.join(ROOT, "docs/counters.md"))
    unknown = (set(drops.ALERTED) | set(drops.SHOWN)) ^ set(counters.reasons)
    faults = [f"drop reason {name}: must be in docs/counters.md, and in one table of scripts/monitor/drops.py" for name in sorted(unknown)]
    faults += [f"drop reason {name}: is in both tables" for name in sorted(set(drops.ALERTED) & set(drops.SHOWN))]
    if not faults and not any(one.group == "drops" for one in alerts.ALERTS):
        alerts.add_drops(counters.reasons)
    for where, expression in expressions():
        faults += [f"{where}: {metric} is not in docs/counters.md" for metric in METRIC.findall(strings_removed(expression))
                   if metric not in counters.metrics]
    names = [one.name for one in alerts.ALERTS]
    faults += [f"alert {name}: is defined twice" for name in sorted({name for name in names if names.count(name) > 1})]
    faults += [f"alert {one.name}: the action names no command" for one in alerts.ALERTS
               if not re.search(r"penstockctl|kubectl|systemctl|journalctl|log|--\w|ip route", one.action)]
    if faults:
        raise Mismatch("\n".join(faults))


def strings_removed(expression):
    return re.sub(r'"[^"]*"', '""', expression)


def expressions():
    """(place, expression) of all panels and rules."""
    for name, expression in RECORDINGS.items():
        yield f"recording rule {name}", expression
    for one in alerts.ALERTS:
        yield f"alert {one.name}", one.expression
    for board in dashboards.DASHBOARDS:
        for panels in board.rows.values():
            for panel in panels:
                for expression in panel.queries:
                    yield f"{board.title}: {panel.title}", expression


def runbook(docs, one):
    return f"{docs.rstrip('/')}/monitoring.md#{one.group}"


def rules(docs, only=None):
    """The rules, or the rule of one alert, as YAML. Scalars are JSON strings, which are YAML as well."""
    quoted = json.dumps
    lines = ["groups:"]
    if only is None:
        lines += ["- name: penstock-recordings", "  rules:"]
        for name, expression in RECORDINGS.items():
            lines += [f"  - record: {name}", f"    expr: {quoted(expression)}"]
    chosen = alerts.ALERTS if only is None else [only]
    for group in dict.fromkeys(one.group for one in chosen):
        lines += [f"- name: penstock-{group}", "  rules:"]
        for one in (each for each in chosen if each.group == group):
            lines += [f"  - alert: {one.name}", f"    expr: {quoted(one.expression)}", f"    for: {one.hold}", "    labels:",
                      f"      severity: {one.severity}", "    annotations:", f"      summary: {quoted(one.summary)}",
                      f"      description: {quoted(one.action)}", f"      runbook_url: {quoted(runbook(docs, one))}"]
    return LICENSE + "\n".join(lines) + "\n"


def write_rule_tests(folder, docs):
    """promtool's test of each alert: it fires, it is silent, and it is silent before its time. Returns the files.
    promtool evaluates all rules for each test, so each alert has a rule file of its own."""
    files = []
    for one in alerts.ALERTS:
        tests = []
        late = "9h" if one.hold == "6h" else "115m"
        labels = alerts.firing_labels(one)
        fired = {"exp_labels": {**labels, "severity": one.severity},
                 "exp_annotations": {"summary": filled(one.summary, labels), "description": filled(one.action, labels),
                                     "runbook_url": runbook(docs, one)}}
        if one.name == "PenstockConnectionsNotAdopted":
            late = "30m"
        for title, shown, at, expected in (("fires", one.fires, late, [fired]), ("is silent", one.rests, late, [])):
            tests.append(rule_test(f"{one.name} {title}", one.name, shown, at, expected))
        if one.hold != "0m":
            tests.append(rule_test(f"{one.name} is not early", one.name, one.fires, "0m", []))
        with open(os.path.join(folder, f"{one.name}.rules.yaml"), "w") as file:
            file.write(rules(docs, one))
        files.append(os.path.join(folder, f"{one.name}.test.yaml"))
        with open(files[-1], "w") as file:
            json.dump({"rule_files": [f"{one.name}.rules.yaml"], "evaluation_interval": "1m", "tests": tests}, file, indent=1)
    return files


def rule_test(title, name, shown, at, expected):
    return {"name": title, "interval": "1m", "input_series": [{"series": one, "values": values} for one, values in shown.items()],
            "alert_rule_test": [{"eval_time": at, "alertname": name, "exp_alerts": expected}]}


def filled(text, labels):
    return re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda found: labels.get(found[1], ""), text)


def dashboard(board):
    source = {"type": "prometheus", "uid": "${datasource}"}
    panels, y, number = [], 0, 1
    for title, row in board.rows.items():
        panels.append({"id": number, "type": "row", "title": title, "collapsed": False, "panels": [],
                       "gridPos": {"x": 0, "y": y, "w": GRID_WIDTH, "h": 1}})
        number, y = number + 1, y + 1
        for i, panel in enumerate(row):
            x = i * PANEL_WIDTH % GRID_WIDTH
            y += PANEL_HEIGHT if i and x == 0 else 0
            panels.append({
                "id": number, "type": panel.kind, "title": panel.title, "datasource": source,
                "gridPos": {"x": x, "y": y, "w": PANEL_WIDTH, "h": PANEL_HEIGHT},
                "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0 if panel.unit != "s" else None}, "overrides": []},
                "options": {"legend": {"displayMode": "list", "placement": "bottom"}} if panel.kind == "timeseries" else {},
                "targets": [{"refId": chr(ord("A") + n), "datasource": source, "expr": expression, "legendFormat": legend}
                            for n, (expression, legend) in enumerate(panel.queries.items())]})
            number += 1
        y += PANEL_HEIGHT
    variables = [{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}]
    for name, (metric, label) in board.variables.items():
        query = f"label_values({metric}, {label})"
        variables.append({"name": name, "type": "query", "datasource": source, "definition": query, "query": {"query": query, "refId": name},
                          "includeAll": True, "multi": True, "allValue": ".*", "current": {"text": "All", "value": "$__all"},
                          "refresh": 2, "sort": 1})
    return json.dumps({"uid": board.uid, "title": board.title, "tags": ["penstock"], "schemaVersion": 37, "version": 1, "editable": True,
                       "refresh": "30s", "time": {"from": "now-1h", "to": "now"}, "timezone": "browser",
                       "templating": {"list": variables}, "panels": panels, "annotations": {"list": []},
                       "links": [{"type": "dashboards", "tags": ["penstock"], "title": "Penstock", "asDropdown": True}]}, indent=1) + "\n"


def write(folder, docs):
    """Writes all files; returns their names."""
    load()
    files = {RULES: rules(docs), **{f"{board.uid}.json": dashboard(board) for board in dashboards.DASHBOARDS}}
    os.makedirs(folder, exist_ok=True)
    for name, content in files.items():
        with open(os.path.join(folder, name), "w") as file:
            file.write(content)
    return sorted(files)
