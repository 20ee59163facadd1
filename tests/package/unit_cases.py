# SPDX-License-Identifier: Apache-2.0
"""The units of systemd, without a running systemd: exposure, and what systemd-analyze finds in them and in their
drop-ins. machine_cases.py runs them."""
import os
import re
import shutil
import subprocess

from fixture import case, check, equal

import products

EXPOSURE_MAX = {"penstock-gateway": 5.0, "penstock-sync": 3.0}
EXAMPLES = os.path.join(products.DEBIAN, "examples/gateway")


@case(unit=tuple(EXPOSURE_MAX))
def a_unit_is_hardened(lab):
    unit = lab.variant["unit"]
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", f"--threshold={int(10 * EXPOSURE_MAX[unit])}",
                           os.path.join(products.DEBIAN, f"{unit}.service")], capture_output=True, text=True)
    exposure = float(re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)[1])
    lab.remarks.append(f"exposure {exposure}")
    check(done.returncode == 0 and exposure <= EXPOSURE_MAX[unit], f"{unit}: {done.stdout[-400:]}{done.stderr}")


@case()
def systemd_finds_no_mistake_in_the_units_and_drop_ins(lab):
    root = lab.run.file("root")
    os.mkdir(root)
    subprocess.run(["tar", "-C", root, "-xf", os.path.join(products.had("pool"), "base.tar")], check=True)
    for package in ("penstock-gateway", "penstock-sync", "penstockctl"):
        products.extract(package, root)
    units = [f"/lib/systemd/system/{unit}.service" for unit in EXPOSURE_MAX]

    def mistakes():
        # Without /dev, /proc and users of its own, only its syntax and commands matter here.
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", f"--root={root}", *units],
                              capture_output=True, text=True)
        return [line for line in done.stderr.splitlines() if "penstock" in line]
    equal(mistakes(), [], "mistakes in the units")
    folder = os.path.join(root, "etc/systemd/system")
    for name in sorted(os.listdir(EXAMPLES)):
        of_service = not name.endswith("-system.conf")
        drop_ins = os.path.join(folder, "penstock-gateway.service.d" if of_service else "system.slice.d")
        os.makedirs(drop_ins, exist_ok=True)
        shutil.copy(os.path.join(EXAMPLES, name), drop_ins)
    equal(mistakes(), [], "mistakes in the drop-ins")
    # The check finds mistakes.
    with open(os.path.join(folder, "penstock-gateway.service.d/wrong.conf"), "w") as file:
        file.write("[Service]\nWatchdogSecs=1\nExecStartPre=/usr/bin/no-such-program\n")
    check(len(mistakes()) >= 1, "systemd-analyze verify finds no mistake")
