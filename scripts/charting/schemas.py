# SPDX-License-Identifier: Apache-2.0
"""JSON schemas for kubeconform, one file for each kind. Made from the OpenAPI document of a Kubernetes release, which
is part of its Go module, and from CustomResourceDefinitions. Nothing is downloaded from elsewhere."""
import json
import os

KIND = "x-kubernetes-group-version-kind"
EITHER = {"oneOf": [{"type": "string"}, {"type": "integer"}]}
# kubeconform's name of a schema below the folder.
LOCATION = "{{ .ResourceKind }}{{ .KindSuffix }}.json"


def file_name(api_version, kind):
    """As kubeconform derives it: the first word of the group, and the version."""
    group, _, version = api_version.rpartition("/")
    return "-".join([kind.lower(), *([group.split(".")[0]] if group else []), version.lower()]) + ".json"


def of_openapi(document):
    """{file name: schema} of every kind of an OpenAPI 2 document. Fields that are not in it are refused."""
    definitions = document["definitions"]

    def expand(node, above):
        if isinstance(node, list):
            return [expand(each, above) for each in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            name = node["$ref"].rpartition("/")[2]
            return {} if name in above else expand(definitions[name], (*above, name))
        if node.get("format") == "int-or-string":
            return EITHER
        made = {key: {name: expand(each, above) for name, each in value.items()} if key == "properties" else expand(value, above)
                for key, value in node.items() if not key.startswith("x-") and key != "description"}
        if "properties" in made:
            made.setdefault("additionalProperties", False)
        return made
    made = {}
    for name, definition in definitions.items():
        for kind in definition.get(KIND, ()):
            api_version = f"{kind['group']}/{kind['version']}" if kind["group"] else kind["version"]
            made[file_name(api_version, kind["kind"])] = expand(definition, (name,))
    return made


def of_crd(crd):
    """{file name: schema} of each version of a CustomResourceDefinition."""
    def strict(node):
        if isinstance(node, list):
            return [strict(each) for each in node]
        if not isinstance(node, dict):
            return node
        if node.get("x-kubernetes-int-or-string"):
            return EITHER
        made = {key: {name: strict(each) for name, each in value.items()} if key == "properties" else strict(value)
                for key, value in node.items() if not key.startswith("x-") and key != "description"}
        if "properties" in made and not node.get("x-kubernetes-preserve-unknown-fields"):
            made.setdefault("additionalProperties", False)
        return made
    spec = crd["spec"]
    return {file_name(f"{spec['group']}/{version['name']}", spec["names"]["kind"]): strict(version["schema"]["openAPIV3Schema"])
            for version in spec["versions"]}


def write(folder, schemas):
    os.makedirs(folder, exist_ok=True)
    for name, schema in schemas.items():
        with open(os.path.join(folder, name), "w") as file:
            json.dump(schema, file)
