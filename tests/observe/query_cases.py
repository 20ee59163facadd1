# SPDX-License-Identifier: Apache-2.0
"""Expressions on a Prometheus that scrapes a live gateway and its penstock-sync."""
import json
import re
import subprocess
import time
import urllib.parse
import urllib.request

from fixture import LB_IP, Background, case, check, equal, until
from lab.network import inside
from manifests import endpoints, service
from monitor import alerts, dashboards, render

GATEWAY, SYNC, PROMETHEUS = "127.0.0.1:9105", "127.0.0.1:9106", "127.0.0.1:9190"
# Values of the variables of dashboards and of Grafana.
VARIABLES = {"$__rate_interval": "10s", "$instance": ".*", "$namespace": ".*", "$service": ".*"}
# Metrics without series in this lab, with the reason.
ABSENT = {
    "penstock_tls_": "gRPC listens on a Unix socket only",
    "penstock_sync_tls_": "the gateway is reached by a Unix socket",
    "penstock_rpc_": "gRPC listens on a Unix socket only",
    "penstock_share_copies": "the plan has one gateway",
    "penstock_share_channel_state": "the plan has one gateway",
    "penstock_share_records_": "the plan has one gateway",
    "penstock_share_stray_target": "the plan has one gateway",
    "penstock_leader": "a folder of manifests has no Lease",
    "penstock_lease_": "a folder of manifests has no Lease",
    "penstock_status_writes": "a folder of manifests has no status",
    "penstock_sync_errors_total": "no request has failed",
    "penstock_sync_events_": "a folder of manifests has no Events",
    "penstock_pool_addresses": "no addresses are assigned from pools",
    "penstock_services_without_address": "no addresses are assigned from pools",
    "penstock_services_with_refused_request": "no addresses are assigned from pools",
    "penstock_adoption_lost": "no former process",
    "absent(": "a row only while no gateway is scraped",
}


def start(lab):
    with open(lab.run.file("shares"), "w") as plan:
        plan.write("version 1\ngateway edge-1\nend\n")
    lab.gateway.more_options = ["--vip-presence", "routes", "--shares", lab.run.file("shares"), "--metrics-listen", GATEWAY,
                                "--flow-log", lab.run.file("flows"),
                                "--flow-services", "all", "--metrics-backends", "100", "--latency-histograms", "backends"]
    words = lab.gateway.sync_words
    lab.gateway.sync_words = lambda manifests: [*words(manifests), "--http", SYNC]
    lab.start(service("web", 80, ingress_ips=[LB_IP]), endpoints("web"))
    render.write(lab.run.path, "docs")
    jobs = {alerts.GATEWAY_JOB: GATEWAY, alerts.SYNC_JOB: SYNC}
    with open(lab.run.file("prometheus.yaml"), "w") as file:
        json.dump({"global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}, "rule_files": [render.RULES],
                   "scrape_configs": [{"job_name": job, "static_configs": [{"targets": [at]}]} for job, at in jobs.items()]}, file)
    lab.network.start("gateway", ["prometheus", f"--config.file={lab.run.file('prometheus.yaml')}", f"--web.listen-address={PROMETHEUS}",
                                  f"--storage.tsdb.path={lab.run.file('tsdb')}"], "prometheus.log")


def fetch(lab, url):
    with inside(lab.network.namespace("gateway")), urllib.request.urlopen(f"http://{url}", timeout=20) as response:
        return response.read().decode()


def ask(lab, path, **parameters):
    return json.loads(fetch(lab, f"{PROMETHEUS}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"))["data"]


def rows(lab, expression):
    # Rates over a few minutes have rows after two scrapes.
    return ask(lab, "query", query=expression)["result"]


def scrapes(lab):
    try:
        return [int(float(row["value"][1])) for row in rows(lab, 'min by (job) (count_over_time(up[10m]) * up)')]
    except (OSError, json.JSONDecodeError):
        return []


def expressions():
    for name, expression in render.RECORDINGS.items():
        yield name, expression
    for one in alerts.ALERTS:
        yield one.name, one.of
    for board in dashboards.DASHBOARDS:
        for panels in board.rows.values():
            for panel in panels:
                for expression in panel.queries:
                    yield f"{board.title}: {panel.title}", expression


def concrete(expression):
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    return expression


@case()
def each_expression_has_rows_and_no_alert_fires_on_a_healthy_gateway(lab):
    start(lab)
    began = time.monotonic()
    with Background(lambda: lab.get(LB_IP), pause_s=0.05):
        until("each job has been scraped six times", lambda: len(counts := scrapes(lab)) == 2 and min(counts) >= 6, patience_s=60)
        empty, unexpected, asked = [], [], 0
        for place, expression in expressions():
            asked += 1
            absent = any(name in expression for name in ABSENT)
            got = rows(lab, concrete(expression))
            if not got and not absent:
                empty.append(f"{place}: {expression}")
        # Without `for`: an alert that holds for one moment would fire on this gateway some day.
        for one in alerts.ALERTS:
            if got := rows(lab, one.expression):
                unexpected.append(f"{one.name}: {one.expression}: {got}")
    equal(empty, [], "expressions without rows")
    equal(unexpected, [], "alerts on a healthy gateway")
    rules = [rule for group in ask(lab, "rules")["groups"] for rule in group["rules"]]
    equal([rule["name"] for rule in rules if rule["health"] == "err"], [], "rules with an error")
    lab.remarks.append(f"{asked} expressions, {len(rules)} rules, {time.monotonic() - began:.0f} s")


@case()
def promtool_accepts_the_metrics(lab):
    start(lab)
    for at in (GATEWAY, SYNC):
        page = fetch(lab, f"{at}/metrics")
        check(len(re.findall("^# TYPE ", page, re.MULTILINE)) > 30, f"{at} serves too few metrics")
        done = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True, timeout=60)
        equal((done.returncode, done.stdout + done.stderr), (0, ""), f"promtool check metrics of {at}")
