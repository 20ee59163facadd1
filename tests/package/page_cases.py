# SPDX-License-Identifier: Apache-2.0
"""Generated manual pages and completions, read by mandoc and by the shells themselves."""
import os
import re
import subprocess

from fixture import case, check, equal


def pages(lab):
    folder = lab.run.file("pages")
    os.mkdir(folder)
    subprocess.run([os.path.join(lab.gateway.build, "control/pages/generate-pages"), folder], check=True)
    return folder


@case()
def mandoc_reads_the_manual_pages_without_a_warning(lab):
    folder = pages(lab)
    manuals = [name for name in sorted(os.listdir(folder)) if name.rsplit(".", 1)[1].isdigit()]
    equal(manuals, ["penstock-sync.8", "penstock-sync.ini.5", "penstockctl.1", "penstockd.8", "penstockd.ini.5"], "manual pages")
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *manuals], cwd=folder, capture_output=True, text=True)
    equal((done.returncode, done.stdout), (0, ""), "mandoc")
    for manual in manuals:
        shown = subprocess.run(["mandoc", "-T", "utf8", "-O", "width=100", manual], cwd=folder, capture_output=True, text=True, check=True).stdout
        shown = re.sub(".\b", "", shown)  # bold is overstruck
        check("SEE ALSO" in shown and "\\f" not in shown, f"{manual}:\n{shown[-400:]}")


# Answers of a gateway and of penstock-sync, and the words of the last call.
FAKE = """#!/bin/sh
echo "$*" >"$(dirname "$0")/called"
case "$*" in
    *"get services"*) printf 'default  web  80\\nshop  web  80\\nshop  web  443\\n' ;;
    *"get contexts"*) printf 'edge-1  192.0.2.1:9106\\nedge-2  192.0.2.2:9106\\n' ;;
    *"get shares"*) printf '0  edge-1  edge-2\\n1  edge-2  edge-1\\n12  edge-2  edge-1\\n' ;;
    *"get pools"*) printf 'internal  10.9.0.0/24  0/11\\npublic  203.0.113.0/24  2/256\\n' ;;
esac
"""

# The stubs print what the shell would offer for the word under the cursor.
ZSH = """offered() { local word; for word in "$@"; do [[ $word == ${words[CURRENT]}* ]] && print -r -- "$word"; done; return 0; }
compadd() { while [[ $1 == -* ]]; do [[ $1 == -- ]] && { shift; break; }; [[ $1 == -S ]] && shift; shift; done; offered "$@"; }
_describe() { local -a all; all=("${(@P)4}"); offered "${(@)all%%:*}"; }
_files() { print FILES; }
compset() { [[ ${words[CURRENT]} == $2* ]]; }
compdef() { :; }
source penstockctl.zsh
words=(%s) CURRENT=$#words
_penstockctl
"""

COMPLETIONS = (
    ("penstockctl ge", ["get"]),
    ("penstockctl get ro", ["routes"]),
    ("penstockctl get routes --no-h", ["--no-headers"]),
    ("penstockctl get routes -o j", ["json"]),
    ("penstockctl explain --proto s", ["sctp"]),
    ("penstockctl set log-level w", ["warn"]),
    ("penstockctl completion f", ["fish"]),
    ("penstockctl explain annotations penstock.io/sch", ["penstock.io/scheduler"]),
    ("penstockctl --no-headers -w ge", ["get"]),
    ("penstockctl --gateway unix:/run/x.sock get ro", ["routes"]),
    ("penstockctl --gateway uni", ["unix:"]),
    ("penstockctl get ro --context edge-", ["edge-1", "edge-2"]),
    ("penstockctl describe service sho", ["shop/web"]),
    ("penstockctl get services -n sh", ["shop"]),
    ("penstockctl capture --service sho", ["shop/web"]),
    ("penstockctl top sho", ["shop/web"]),
    ("penstockctl describe pool pub", ["public"]),
    ("penstockctl describe share 1", ["1", "12"]),
)


def fake_programs(lab, folder):
    programs = lab.run.file("bin")
    os.mkdir(programs)
    with open(os.path.join(programs, "penstockctl"), "w", encoding="ascii") as file:
        file.write(FAKE)
    os.chmod(file.name, 0o755)
    return {"cwd": folder, "capture_output": True, "text": True, "env": {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "HOME": folder}}


def called(lab):
    with open(lab.run.file("bin", "called"), encoding="utf-8") as file:
        return file.read().strip()


@case(shell=("zsh", "fish"))
def a_shell_completes_commands_options_values_and_names(lab):
    shell, folder = lab.variant["shell"], pages(lab)
    how = fake_programs(lab, folder)
    checked = subprocess.run([shell, "-n", f"penstockctl.{shell}"], **how)
    equal((checked.returncode, checked.stderr), (0, ""), f"{shell} -n")

    def completed(line):
        if shell == "zsh":
            words = line.split(" ")
            script = ["zsh", "-f", "-c", ZSH % " ".join(f"'{word}'" for word in words)]
        else:
            script = ["fish", "--no-config", "-c", f"source penstockctl.fish; complete -C '{line}'"]
        done = subprocess.run(script, **how)
        equal((done.returncode, done.stderr), (0, ""), f"{shell}: {line}")
        return sorted({text.split("\t")[0] for text in done.stdout.splitlines()})
    for line, expected in COMPLETIONS:
        equal(completed(line), expected, f"{shell}: {line}")
    completed("penstockctl --gateway unix:/run/x.sock describe service sho")
    equal(called(lab), "--gateway unix:/run/x.sock get services --no-headers --timeout 1", "query for names")
    completed("penstockctl --context edge-2 describe service sho")
    equal(called(lab), "--context edge-2 get services --no-headers --timeout 1", "query for names of a context")
    completed("penstockctl --config /c.ini --context e")
    equal(called(lab), "--config /c.ini get contexts --no-headers", "query for contexts")
    completed("penstockctl --gateway unix:/run/x.sock describe share 1")
    equal(called(lab), "--gateway unix:/run/x.sock get shares --no-headers --timeout 1", "query for shares")
    completed("penstockctl --sync-server unix:/run/y.sock describe pool pub")
    equal(called(lab), "--sync-server unix:/run/y.sock get pools --no-headers --timeout 1", "query for pools")
    check("--syn" not in completed("penstockctl get "), "options without a dash")
