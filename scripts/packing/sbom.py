# SPDX-License-Identifier: Apache-2.0
"""The list of an image's contents (SBOM): an SPDX 2.3 document in JSON, from dpkg's list of the packages in it."""
import datetime
import re

DOCUMENT, IMAGE = "SPDXRef-DOCUMENT", "SPDXRef-Image"


def installed(status):
    """Fields of each installed package, from the text of /var/lib/dpkg/status."""
    for paragraph in status.split("\n\n"):
        fields = dict(re.findall(r"^([A-Za-z-]+):[ \t]*(.*)$", paragraph, re.MULTILINE))
        if fields.get("Status", "").endswith(" installed"):
            yield fields


def identifier(name):
    return "SPDXRef-Package-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def purl(fields, distribution):
    version = fields["Version"].replace("+", "%2B").replace(":", "%3A").replace("~", "~")
    name = fields["Package"].replace("+", "%2B")
    return f"pkg:deb/{distribution}/{name}@{version}?arch={fields['Architecture']}"


def package_of(fields, own):
    """The SPDX package of one package. `own`: names of our packages."""
    is_own = fields["Package"] in own
    source, _, source_version = fields.get("Source", fields["Package"]).partition(" ")
    return {
        "SPDXID": identifier(fields["Package"]),
        "name": fields["Package"],
        "versionInfo": fields["Version"],
        "supplier": "Organization: Penstock" if is_own else "Organization: Debian",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "primaryPackagePurpose": "APPLICATION" if is_own else "LIBRARY" if fields.get("Section", "").endswith("libs") else "INSTALL",
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "Apache-2.0" if is_own else "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "sourceInfo": f"built from source package {source} {source_version.strip('()') or fields['Version']}",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                          "referenceLocator": purl(fields, "penstock" if is_own else "debian")}],
    }


def document(name, version, architecture, digest, status, own, epoch):
    """name, version: of the image. digest: SHA-256 of its layer. status: text of dpkg's list. epoch: its time."""
    packages = [package_of(fields, own) for fields in sorted(installed(status), key=lambda one: one["Package"])]
    image = {
        "SPDXID": IMAGE,
        "name": name,
        "versionInfo": version,
        "supplier": "Organization: Penstock",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "primaryPackagePurpose": "CONTAINER",
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "checksums": [{"algorithm": "SHA256", "checksumValue": digest}],
        "comment": f"OCI image for {architecture}; the checksum is that of its layer, uncompressed",
    }
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": DOCUMENT,
        "name": f"{name}-{version}-{architecture}",
        "documentNamespace": f"https://penstock.example/spdx/{name}-{version}-{architecture}-{digest}",
        "creationInfo": {
            "created": datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": ["Organization: Penstock", f"Tool: penstock-scripts-package-{version}"],
        },
        "packages": [image, *packages],
        "relationships": [
            {"spdxElementId": DOCUMENT, "relationshipType": "DESCRIBES", "relatedSpdxElement": IMAGE},
            *({"spdxElementId": IMAGE, "relationshipType": "CONTAINS", "relatedSpdxElement": package["SPDXID"]} for package in packages),
        ],
    }
