# SPDX-License-Identifier: Apache-2.0
"""The OCI image with the three programs: a root file system from our packages and Debian's, made by mmdebstrap, as one
layer of an image, made by umoci. No container daemon is used."""
import hashlib
import json
import os
import shutil
import subprocess
import tarfile

from . import sbom, trees
from testbed.api_servers import NotToBeHad

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = ("penstock-gateway", "penstock-sync", "penstockctl")
SIZE_MAX_MB = 200
# The user of the chart for penstock-sync. penstockd needs root, and gets it from the chart.
USER = "65532:65532"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Everything that is read by persons. Licences stay.
LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*", "/usr/share/lintian/*",
            "/usr/share/bash-completion/*", "/usr/share/zsh/*", "/usr/share/fish/*", "/usr/share/bug/*")
KEPT = ("/usr/share/doc/*/copyright",)


def build(out):
    """Builds `out`/penstock_VERSION_ARCH.oci (a folder in OCI layout), the same as .oci.tar, and .spdx.json from the
    packages in `out`, unless these exist already. Returns the three paths and the size of the root file system in MB."""
    for program in ("mmdebstrap", "umoci"):
        if not shutil.which(program):
            raise NotToBeHad(f"{program} is missing: scripts/setup package")
    if os.geteuid() != 0:
        raise NotToBeHad("root is needed for the owners of the files in the image")
    debs = trees.debs_in(out)
    version = trees.field(debs["penstock-gateway"], "Version")
    architecture = trees.field(debs["penstock-gateway"], "Architecture")
    epoch = int(subprocess.run(["dpkg-parsechangelog", "--show-field", "Timestamp", "--file", os.path.join(HERE, "../../debian/changelog")],
                               capture_output=True, text=True, check=True).stdout)
    base = os.path.join(out, f"penstock_{version}_{architecture}")
    layout, archive, listing = f"{base}.oci", f"{base}.oci.tar", f"{base}.spdx.json"
    pool = trees.pool(debs)
    stamp, made_of = f"{base}.image-stamp", _inputs(pool, debs)
    if os.path.exists(stamp):
        with open(stamp) as file:
            former, size_mb = file.read().split()
        if former == made_of and all(map(os.path.exists, (layout, archive, listing))):
            return layout, archive, listing, float(size_mb)
        os.unlink(stamp)
    work = os.path.join(out, "image")
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(layout, ignore_errors=True)
    os.makedirs(work)
    layer = os.path.join(work, "layer.tar")
    _root_file_system(layer, pool, debs, work, epoch)
    size_mb = _unpacked_mb(layer)
    document = sbom.document("penstock", version, architecture, _sha256(layer), _member(layer, "var/lib/dpkg/status"), set(debs), epoch)
    with open(listing, "w") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
    _layout(layout, layer, version, epoch)
    subprocess.run(["tar", "--sort=name", "--numeric-owner", "--owner=0", "--group=0", f"--mtime=@{epoch}", "-C", layout, "-cf", archive, "."], check=True)
    shutil.rmtree(work)
    if size_mb > SIZE_MAX_MB:
        raise RuntimeError(f"the image has {size_mb:.0f} MB, more than {SIZE_MAX_MB} MB")
    with open(stamp, "w") as file:
        file.write(f"{made_of} {size_mb}")
    return layout, archive, listing, size_mb


def _inputs(pool, debs):
    """A digest of all that the image is made of."""
    digest = hashlib.sha256(str(os.path.getmtime(os.path.join(pool, "done"))).encode())
    for path in (*(debs[name] for name in PROGRAMS), *(os.path.join(HERE, name) for name in sorted(os.listdir(HERE)) if not name.startswith("__"))):
        digest.update(_sha256(path).encode())
    return digest.hexdigest()


def _root_file_system(layer, pool, debs, work, epoch):
    own = os.path.join(work, "own")
    os.makedirs(own)
    for name in PROGRAMS:
        shutil.copy(debs[name], own)
    trees.index(own)
    recommended = [word for word in trees.field(debs["penstock-gateway"], "Recommends").replace(",", " ").split() if word.startswith("librte-")]
    included = [*trees.WITHOUT_SYSTEMD, *PROGRAMS, *recommended, "ca-certificates"]
    # Debian's merged /usr, before the first package.
    folders = " ".join(["bin", "sbin", "lib", *(["lib64"] if os.path.islink("/lib64") else [])])
    merged = f'for folder in {folders}; do mkdir -p "$1/usr/$folder" && ln -s "usr/$folder" "$1/$folder"; done'
    hooks = [f"upload {os.path.join(HERE, 'entrypoint.sh')} /usr/bin/penstock", 'chmod 755 "$1"/usr/bin/penstock',
             # A name for the number.
             'echo "nonroot:x:65532:65532:Penstock:/nonexistent:/usr/sbin/nologin" >>"$1"/etc/passwd',
             'echo "nonroot:x:65532:" >>"$1"/etc/group',
             'rm -f "$1"/etc/apt/sources.list "$1"/etc/resolv.conf "$1"/etc/hostname; rm -rf "$1"/var/cache/* "$1"/var/log/*']
    words = ["--mode=root", "--variant=custom", f"--setup-hook={merged}", "--include=?essential", f"--include={','.join(included)}", "--aptopt=APT::Install-Recommends \"false\"",
             *(f"--dpkgopt=path-exclude={path}" for path in LEFT_OUT), *(f"--dpkgopt=path-include={path}" for path in KEPT),
             *(f"--customize-hook={hook}" for hook in hooks), "--skip=check/signed-by,output/dev", trees.SUITE, layer,
             *(f"deb [trusted=yes] copy:{folder} ./" for folder in (own, os.path.join(pool, "debs")))]
    former = os.environ.get("SOURCE_DATE_EPOCH")
    os.environ["SOURCE_DATE_EPOCH"] = str(epoch)
    try:
        trees.mmdebstrap(os.path.join(work, "log"), *words)
    finally:
        os.environ.pop("SOURCE_DATE_EPOCH") if former is None else os.environ.update(SOURCE_DATE_EPOCH=former)


def _layout(layout, layer, version, epoch):
    image = f"{layout}:{version}"
    created = subprocess.run(["date", "--utc", "--iso-8601=seconds", f"--date=@{epoch}"], capture_output=True, text=True, check=True).stdout.strip()
    created = created.replace("+00:00", "Z")
    for words in (("init", "--layout", layout),
                  ("new", "--image", image),
                  ("raw", "add-layer", "--image", image, "--history.created", created, "--history.created_by", "scripts/package --image", layer),
                  ("config", "--image", image, "--no-history", "--created", created, "--config.user", USER, "--config.workingdir", "/",
                   "--config.entrypoint", "/usr/bin/penstock", "--config.cmd=--help", "--config.env", f"PATH={PATH}",
                   "--config.label", "org.opencontainers.image.title=penstock",
                   "--config.label", f"org.opencontainers.image.version={version}",
                   "--config.label", "org.opencontainers.image.licenses=Apache-2.0"),
                  ("gc", "--layout", layout)):
        done = subprocess.run(["umoci", *words], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"umoci {' '.join(words[:2])}: {done.stderr.strip()}")


def _unpacked_mb(layer):
    with tarfile.open(layer) as files:
        return sum(member.size for member in files if member.isfile()) / 1e6


def _member(layer, name):
    with tarfile.open(layer) as files:
        for member in files:
            if member.name.removeprefix("./") == name:
                return files.extractfile(member).read().decode()
    raise RuntimeError(f"no file {name} in the image")


def _sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
