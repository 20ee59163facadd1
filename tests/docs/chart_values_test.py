# SPDX-License-Identifier: Apache-2.0
"""Each value of the Helm chart has a comment, a type in values.schema.json, and a use in the values files of
tests/deploy; and the schema has no other value.

chart_values_test.py ROOT"""
import json
import os
import sys

try:
    import yaml
except ImportError:
    print("SKIP: no python3-yaml")
    sys.exit(77)

sys.path.insert(0, os.path.join(sys.argv[1], "scripts"))

from charting import values_page  # noqa: E402

CHART = os.path.join(sys.argv[1], "charts/penstock")
FREE = ("global",)  # helm's own
# Maps of the user's own keys.
OPEN = ("gateway.nodeSelector", "gateway.devices", "gateway.podAnnotations", "gateway.affinity", "external.nodeSelector", "external.affinity",
        "external.podAnnotations", "monitors.labels")


def of_values(values, path=""):
    for name, value in values.items():
        place = path + name
        if isinstance(value, dict) and place not in OPEN:
            yield from of_values(value, place + ".")
        else:
            yield place


def of_schema(schema, path=""):
    for name, value in schema["properties"].items():
        if path or name not in FREE:
            if "properties" in value and path + name not in OPEN:
                yield from of_schema(value, f"{path}{name}.")
                if value.get("additionalProperties") is not False:
                    yield f"{path}{name} (accepts unknown values)"
            else:
                yield path + name


def main():
    with open(os.path.join(CHART, "values.yaml")) as file:
        text = file.read()
    with open(os.path.join(CHART, "values.schema.json")) as file:
        schema = json.load(file)
    values = set(of_values(yaml.safe_load(text)))
    faults = [f"{name}: in values.yaml or in values.schema.json only" for name in sorted(values ^ set(of_schema(schema)))]
    described = {path: comment for path, _, comment, _, _ in values_page.entries(text)}
    faults += [f"{name}: values.yaml has no comment" for name in sorted(values) if not described.get(name)]
    page = values_page.page(text)
    faults += [f"{name}: not on the page of values" for name in sorted(values) if f"| `{name}` |" not in page]
    print("\n".join(faults) or f"{len(values)} values")
    return 1 if faults or len(values) < 30 else 0


if __name__ == "__main__":
    sys.exit(main())
