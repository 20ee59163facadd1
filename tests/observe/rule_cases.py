# SPDX-License-Identifier: Apache-2.0
"""The files of scripts/monitoring without a gateway."""
import os
import subprocess

from fixture import case, check, equal
from monitor import render


def promtool(*words):
    done = subprocess.run(["promtool", *words], capture_output=True, text=True, timeout=200)
    equal(done.returncode, 0, f"exit code of promtool {' '.join(words[:2])}: {done.stdout}{done.stderr}")


@case()
def promtool_accepts_the_rules(lab):
    render.write(lab.run.path, "docs")
    promtool("check", "rules", lab.run.file(render.RULES))


@case()
def each_alert_fires_and_is_silent(lab):
    render.load()
    files = render.write_rule_tests(lab.run.path, "docs")
    promtool("test", "rules", *files)
    lab.remarks.append(f"{len(files)} alerts")


@case()
def each_runbook_is_a_section(lab):
    render.load()
    with open(os.path.join(render.ROOT, "docs/monitoring.md")) as page:
        sections = {line[3:].strip().lower() for line in page if line.startswith("## ")}
    for one in render.alerts.ALERTS:
        check(one.group in sections, f"docs/monitoring.md has no section {one.group}, to which {one.name} refers")
