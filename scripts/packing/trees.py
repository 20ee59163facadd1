# SPDX-License-Identifier: Apache-2.0
"""Trees of Debian without a network: a pool with each package that our packages depend on or recommend, and a base
system. Both are made by mmdebstrap from the registry that this machine's APT uses, and kept in the cache."""
import glob
import hashlib
import os
import shutil
import subprocess
import time

from testbed.api_servers import NotToBeHad, cache

SUITE = "bookworm"
AGE_MAX_S = 24 * 3600
# A machine: service manager, and what the pages use.
MACHINE = ("systemd", "systemd-sysv", "iproute2", "procps", "less")
# In place of systemd, in an image. usr-is-merged: in place of usrmerge, which needs all of Perl.
WITHOUT_SYSTEMD = ("systemd-standalone-sysusers", "systemd-standalone-tmpfiles", "usr-is-merged")
MERGED_USR = "/usr/share/mmdebstrap/hooks/merged-usr"


def debs_in(folder):
    """{package: path} of our packages."""
    found = {os.path.basename(path).split("_")[0]: path for path in glob.glob(os.path.join(folder, "*.deb"))}
    if not found:
        raise NotToBeHad(f"no packages in {folder}: scripts/package builds them")
    return found


def field(deb, name):
    return subprocess.run(["dpkg-deb", "--field", deb, name], capture_output=True, text=True, check=True).stdout.strip()


def sources():
    """Lines for sources.list: Debian's registries of this machine, from its own configuration."""
    listed = subprocess.run(["apt-get", "indextargets", "--format", "deb $(REPO_URI) $(RELEASE) $(COMPONENT)",
                             "Created-By: Packages", "Origin: Debian"], capture_output=True, text=True, check=True).stdout
    lines = sorted(set(listed.splitlines()))
    if not lines:
        raise NotToBeHad("APT of this machine has no registry of Debian, or no lists yet (apt-get update)")
    return lines


def apt_options():
    """Options of this machine's APT that reach the registry: its proxies."""
    dumped = subprocess.run(["apt-config", "dump", "--no-empty"], capture_output=True, text=True, check=True).stdout
    lines = [line.strip().rstrip(";") for line in dumped.splitlines() if line.startswith(("Acquire::http", "Acquire::https")) and "roxy" in line]
    return [f"--aptopt={line}" for line in lines]


def mmdebstrap(log, *words, lines=None):
    """Raises NotToBeHad with the last lines of the log."""
    if not shutil.which("mmdebstrap"):
        raise NotToBeHad("mmdebstrap is missing: scripts/setup package")
    with open(log, "w") as output:
        done = subprocess.run(["mmdebstrap", "--verbose", *words], stdout=output, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, timeout=900)
    if done.returncode != 0:
        with open(log, errors="replace") as file:
            raise NotToBeHad("mmdebstrap: " + " | ".join(line.strip() for line in file.readlines()[-6:]))


def pool(debs):
    """The folder of a pool for these packages: `base.tar`, a machine without them, and `debs`, a repository with all
    packages of Debian that they and the image need. Made anew after a day."""
    wanted = [*MACHINE, *WITHOUT_SYSTEMD, "ca-certificates"]
    needs = [field(path, name) for _, path in sorted(debs.items()) for name in ("Depends", "Recommends")]
    lines = sources()
    key = hashlib.sha256("\n".join([*lines, *needs, *wanted, "1"]).encode()).hexdigest()[:16]
    folder = os.path.join(cache(), "package", key)
    done = os.path.join(folder, "done")
    if os.path.exists(done) and time.time() - os.path.getmtime(done) < AGE_MAX_S:
        return folder
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    work = f"{folder}.{os.getpid()}"
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(os.path.join(work, "debs"))
    try:
        _make_pool(work, debs, lines)
        open(os.path.join(work, "done"), "w").close()
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(work, folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    for old in glob.glob(os.path.join(cache(), "package", "*")):
        if time.time() - os.path.getmtime(old) > 7 * AGE_MAX_S:
            shutil.rmtree(old, ignore_errors=True)
    return folder


def _make_pool(work, debs, lines):
    names = " ".join(f"./{os.path.basename(path)}" for path in debs.values())
    # One of the alternatives is part of the machine; the image needs the other one. Both cannot be installed together.
    download = "apt-get --yes --download-only --install-recommends -o APT::Sandbox::User=root install"
    hooks = [f"copy-in {' '.join(debs.values())} /root",
             f'chroot "$1" sh -c "cd /root && {download} {names}"',
             f'chroot "$1" sh -c "cd /root && apt-get --yes -o APT::Sandbox::User=root download {" ".join(WITHOUT_SYSTEMD)} && mv *-standalone-*.deb usr-*.deb /var/cache/apt/archives"',
             f'chroot "$1" sh -c "{download} ca-certificates"',
             f"sync-out /var/cache/apt/archives {os.path.join(work, 'debs')}",
             'rm -rf "$1"/root/*.deb']
    mmdebstrap(os.path.join(work, "log"), "--mode=root", "--variant=apt", f"--include={','.join(MACHINE)}",
               f"--hook-dir={MERGED_USR}", "--skip=essential/unlink", *apt_options(), *(f"--customize-hook={hook}" for hook in hooks), SUITE,
               os.path.join(work, "base.tar"), *lines)
    for junk in ("partial", "lock"):
        path = os.path.join(work, "debs", junk)
        shutil.rmtree(path) if os.path.isdir(path) else os.path.exists(path) and os.unlink(path)
    index(os.path.join(work, "debs"))


def index(folder):
    """Makes a folder of packages a repository."""
    with open(os.path.join(folder, "Packages"), "w") as file:
        subprocess.run(["dpkg-scanpackages", "--multiversion", "."], cwd=folder, stdout=file, stderr=subprocess.DEVNULL, check=True)
