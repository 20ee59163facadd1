# SPDX-License-Identifier: Apache-2.0
"""The OCI image: configuration, size, list of its contents, and its programs as containers run them: a read-only root
file system, few capabilities, and no user with privileges where none is needed."""
import json
import os
import re
import stat
import subprocess

from fixture import VIP, Lab, case, check, equal
from manifests import endpoints, service

import products
from packing import image

PURL = re.compile(r"^pkg:deb/(debian|penstock)/[a-z0-9.%+-]+@[^?]+\?arch=(amd64|arm64|all)$", re.IGNORECASE)
# In its mount namespace: the root file system is read-only, and the files of the run are at their own path.
ENTER = """set -e
root=$1 run=$2
shift 2
mount --make-rprivate /
mount --bind "$root" "$root"
for folder in proc sys dev; do mkdir -p "$root/$folder"; mount --rbind /$folder "$root/$folder"; done
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs tmpfs "$root/run"
mkdir -p "$root$run" "$root/run/penstock"
mount --bind "$run" "$root$run"
mount -o remount,bind,ro "$root"
exec chroot "$root" "$@"
"""


def unpacked():
    """(root file system, configuration) of the image."""
    bundle = products.had("bundle")
    with open(os.path.join(bundle, "config.json")) as file:
        return os.path.join(bundle, "rootfs"), json.load(file)["process"]


def blob(layout, digest):
    with open(os.path.join(layout, "blobs", *digest.split(":")), "rb") as file:
        return json.load(file)


@case()
def programs_of_the_image_forward_traffic(lab: Lab):
    root, process = unpacked()
    # penstockctl of the case; the daemons are those of the image.
    products.extract("penstockctl", lab.run.file("programs"))
    lab.gateway.build = lab.run.file("programs/usr/bin")

    def inside_image(user, capabilities, words):
        """As the chart runs it."""
        kept = "".join(f",+{name}" for name in capabilities)
        return ["unshare", "--mount", "sh", "-c", ENTER, "enter", root, lab.run.path, "/usr/bin/setpriv", "--reuid", str(user), "--regid", "0",
                "--clear-groups", f"--bounding-set=-all{kept}", f"--inh-caps=-all{kept}", "--no-new-privs",
                *process["args"][:1], os.path.basename(words[0]), *words[1:]]
    daemon, sync = lab.gateway.daemon_words, lab.gateway.sync_words
    lab.gateway.daemon_words = lambda: inside_image(0, ("net_admin", "net_raw", "ipc_lock"), daemon())
    lab.gateway.sync_words = lambda manifests: inside_image(65532, (), sync(manifests))
    os.chmod(lab.run.path, 0o770)  # group 0, as for an emptyDir of the chart
    lab.start(service("web", external_ips=[VIP]), endpoints("web"))
    equal(sorted(lab.answered_by(30)), ["backend-1", "backend-2", "backend-3"], "backends that have answered")
    for program, user in (("daemon", 0), ("sync", 65532)):
        pid = getattr(lab.gateway, program).pid
        equal(os.stat(f"/proc/{pid}").st_uid, user, f"user of {program}")
        check(os.path.samefile(f"/proc/{pid}/root/usr", os.path.join(root, "usr")), f"root of {program}")


@case()
def the_entry_point_starts_each_program_and_nothing_else(lab):
    root, process = unpacked()
    equal(process["args"], ["/usr/bin/penstock", "--help"], "entry point and default")
    equal((process["user"]["uid"], process["user"]["gid"]), (65532, 65532), "user")
    check(any(one.startswith("PATH=") and "/usr/sbin" in one for one in process["env"]), f"environment {process['env']}")

    def run(*words):
        done = subprocess.run(["chroot", "--userspec=65532:65532", root, "/usr/bin/penstock", *words], capture_output=True, text=True,
                              env=dict(one.split("=", 1) for one in process["env"]))
        return done.returncode, (done.stdout + done.stderr).strip()
    version = products.fields("penstockctl")["Version"]
    for program in ("penstockd", "penstock-sync", "penstockctl"):
        equal(run(program, "--version"), (0, f"{program} {version}"), program)
    equal(run("--help")[0], 0, "exit code of --help")
    equal((run("sh", "-c", "true")[0], run()[0]), (2, 2), "exit codes of other words")


@case()
def the_image_is_small_and_complete(lab):
    layout, archive, _, size_mb = products.had("image")
    lab.remarks.append(f"{size_mb:.0f} MB unpacked, {os.path.getsize(archive) / 1e6:.0f} MB packed")
    check(size_mb < image.SIZE_MAX_MB, f"{size_mb:.0f} MB")
    with open(os.path.join(layout, "index.json")) as file:
        manifests = json.load(file)["manifests"]
    equal(len(manifests), 1, "images in the layout")
    manifest = blob(layout, manifests[0]["digest"])
    equal(len(manifest["layers"]), 1, "layers")
    config = blob(layout, manifest["config"]["digest"])
    architecture = products.fields("penstockctl")["Architecture"]
    equal((config["architecture"], config["os"]), (architecture, "linux"), "platform")
    root, _ = unpacked()
    there = os.listdir(os.path.join(root, next(f"usr/lib/{name}/dpdk" for name in os.listdir(os.path.join(root, "usr/lib"))
                                               if os.path.isdir(os.path.join(root, "usr/lib", name, "dpdk")))))
    equal(there, ["pmds-23.0"], "folder of drivers")
    for name in ("usr/bin/apt", "usr/bin/apt-get", "etc/resolv.conf", "usr/share/man/man8/penstockd.8.gz"):
        check(not os.path.lexists(os.path.join(root, name)), f"{name} is in the image")
    others = [path for folder, _, names in os.walk(os.path.join(root, "usr")) for name in names
              if not os.path.islink(path := os.path.join(folder, name)) and os.lstat(path).st_mode & stat.S_IWOTH]
    equal(others, [], "files that every user can write")


def check_spdx(document):
    """The fields that SPDX 2.3 requires, and their forms."""
    equal((document["spdxVersion"], document["dataLicense"], document["SPDXID"]), ("SPDX-2.3", "CC0-1.0", "SPDXRef-DOCUMENT"), "head")
    check(re.match(r"^https?://\S+$", document["documentNamespace"]) and "#" not in document["documentNamespace"], "documentNamespace")
    check(document["name"], "name")
    check(re.match(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$", document["creationInfo"]["created"]), "created")
    check(all(re.match(r"^(Tool|Organization|Person): \S", one) for one in document["creationInfo"]["creators"]), "creators")
    known = {document["SPDXID"]}
    for package in document["packages"]:
        check(re.match(r"^SPDXRef-[A-Za-z0-9.-]+$", package["SPDXID"]), package["SPDXID"])
        check(package["SPDXID"] not in known, f"{package['SPDXID']} twice")
        known.add(package["SPDXID"])
        check(package["name"] and package["versionInfo"] and package["downloadLocation"], f"{package}")
        check(package["filesAnalyzed"] is False, f"files of {package['name']}")
        check(re.match(r"^(Organization|Person): \S|^NOASSERTION$", package["supplier"]), f"supplier of {package['name']}")
        check(package["primaryPackagePurpose"] in ("APPLICATION", "LIBRARY", "CONTAINER", "INSTALL"), f"purpose of {package['name']}")
        for checksum in package.get("checksums", []):
            check(checksum["algorithm"] == "SHA256" and re.match(r"^[0-9a-f]{64}$", checksum["checksumValue"]), "checksum")
    for relation in document["relationships"]:
        check({relation["spdxElementId"], relation["relatedSpdxElement"]} <= known, f"{relation} names an unknown element")
        check(relation["relationshipType"] in ("DESCRIBES", "CONTAINS"), f"{relation}")
    check(any(one["relationshipType"] == "DESCRIBES" and one["spdxElementId"] == "SPDXRef-DOCUMENT" for one in document["relationships"]), "nothing is described")


def validated(lab, document, name):
    """(exit code, mistakes) of the validator of the SPDX project."""
    path = lab.run.file(name)
    with open(path, "w") as file:
        json.dump(document, file)
    done = subprocess.run([products.had("spdx"), "--infile", path], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stderr


@case()
def the_validator_of_spdx_accepts_the_list_of_contents(lab):
    _, _, listing, _ = products.had("image")
    with open(listing) as file:
        document = json.load(file)
    equal(validated(lab, document, "whole.spdx.json"), (0, ""), "the validator")
    for what, spoil in (("an unknown licence", lambda one: one["packages"][0].update(licenseDeclared="Nonsense-1.0")),
                        ("no version of SPDX", lambda one: one.pop("spdxVersion")),
                        ("a relation to nothing", lambda one: one["relationships"][1].update(relatedSpdxElement="SPDXRef-Nothing")),
                        ("an identifier", lambda one: one["packages"][1].update(SPDXID="SPDXRef-a_b"))):
        spoilt = json.loads(json.dumps(document))
        spoil(spoilt)
        code, mistakes = validated(lab, spoilt, "spoilt.spdx.json")
        check(code != 0 and mistakes, f"{what} is accepted")


@case()
def the_list_of_contents_is_valid_and_complete(lab):
    layout, _, listing, _ = products.had("image")
    with open(listing) as file:
        document = json.load(file)
    check_spdx(document)
    root, _ = unpacked()
    listed = subprocess.run(["dpkg-query", f"--root={root}", "--show", "--showformat=${Package} ${Version}\\n"], capture_output=True, text=True,
                            check=True).stdout.splitlines()
    packages = [package for package in document["packages"] if package["primaryPackagePurpose"] != "CONTAINER"]
    equal(sorted(f"{package['name']} {package['versionInfo']}" for package in packages), sorted(listed), "packages")
    for package in packages:
        (reference,) = package["externalRefs"]
        check((reference["referenceCategory"], reference["referenceType"]) == ("PACKAGE-MANAGER", "purl") and PURL.match(reference["referenceLocator"]),
              f"reference of {package['name']}: {reference}")
    with open(os.path.join(layout, "index.json")) as file:
        manifest = blob(layout, json.load(file)["manifests"][0]["digest"])
    (container,) = [package for package in document["packages"] if package["primaryPackagePurpose"] == "CONTAINER"]
    equal(blob(layout, manifest["config"]["digest"])["rootfs"]["diff_ids"], [f"sha256:{container['checksums'][0]['checksumValue']}"], "checksum of the layer")
