#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Converts the result lines of scripts/bench to one JSON object: to_json.py LINES FILE"""
import json
import sys


def main(lines_path, json_path):
    document = {"fingerprint": {}, "results": [], "gates": [], "aims": [], "remarks": []}
    with open(lines_path) as lines:
        for line in lines:
            words = line.split()
            if not words:
                continue
            if words[0].startswith("#"):
                document["remarks"].append(line.lstrip("# ").rstrip("\n"))
            elif words[0] == "fingerprint":
                document["fingerprint"][words[1]] = " ".join(words[2:])
            elif words[0] in ("gate", "aim") and len(words) == 5:
                document[words[0] + "s"].append({"id": words[1], "value": float(words[2]), "limit": words[3], "verdict": words[4]})
            elif len(words) == 3:
                document["results"].append({"name": words[0], "value": float(words[1]), "unit": words[2]})
            else:
                document["remarks"].append(line.rstrip("\n"))
    with open(json_path, "w") as out:
        json.dump(document, out, indent=2)
        out.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
