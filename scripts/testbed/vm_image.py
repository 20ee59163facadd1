# SPDX-License-Identifier: Apache-2.0
"""The boot files of a virtual machine: Debian's kernel, extracted from its package without installing it, and
an initramfs of busybox with the modules that the tests of drivers/ need. Built once per kernel version, into
the cache.

The root file system is the host's own (vm.py), so the guest has the host's programs, libraries and Python."""
import dataclasses
import glob
import hashlib
import os
import re
import shutil
import subprocess
import tempfile

from .api_servers import NotToBeHad, cache, locked

# virtio: root file system, command channel, and the card that the kernel drives. vfio: cards for DPDK. The
# rest: twins, bridges, the TC flower classifier and actions that net_tap uses for flow rules, VLAN
# interfaces, and SCTP for hosts beside the gateway.
MODULES = ("virtio_pci", "virtio_console", "9pnet_virtio", "9p", "virtio_net", "vfio_pci", "vfio_iommu_type1", "tun", "bridge",
           "cls_flower", "sch_multiq", "sch_ingress", "act_mirred", "act_skbedit", "act_gact", "8021q", "sctp")
QEMU = "qemu-system-x86_64"
BUSYBOX = "/bin/busybox"  # from busybox-static: the C library is not mounted yet when it runs

# The kernel's command line names the agent, and the host folders below a path that tmpfs covers in the guest.
# These are bound again, because a source tree may be in /tmp.
_INIT = """#!/bin/busybox sh
PATH=/bin
b=/bin/busybox
$b mkdir -p /proc /sys /dev /host /root
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs devtmpfs /dev
for module in $($b cat /modules/order); do
    $b insmod /modules/$module || echo "penstock-vm: no $module"
done
for word in $($b cat /proc/cmdline); do
    case $word in
        penstock.python=*) python=${word#*=} ;;
        penstock.agent=*) agent=${word#*=} ;;
        penstock.bind=*) binds="$binds ${word#*=}" ;;
    esac
done
# Nothing on the host changes below a running test, so what was read once may be kept: programs are mapped page by page.
options=trans=virtio,version=9p2000.L,ro,msize=524288,cache=loose
$b mount -t 9p -o $options hostroot /host && $b mount -o bind /host /root || exec $b poweroff -f
for memory in /tmp /run /var/tmp /mnt; do
    $b mount -t tmpfs tmpfs /root$memory
done
for path in $binds; do
    $b mkdir -p /root$path
    $b mount -o bind /host$path /root$path
done
$b mkdir -p /root/mnt/share /root/run/netns
$b mount -t 9p -o trans=virtio,version=9p2000.L,rw,msize=524288,cache=none share /root/mnt/share
$b mount -t proc proc /root/proc
$b mount -t sysfs sysfs /root/sys
$b mount -o bind /dev /root/dev
$b mkdir -p /root/dev/hugepages
$b mount -t hugetlbfs hugetlbfs /root/dev/hugepages
$b ip link set lo up
# What a real first process would do when the last one ends is of no interest: the panic that follows ends the machine.
exec $b chroot /root /usr/bin/env PATH=/usr/sbin:/usr/bin:/sbin:/bin $python -B $agent
"""


@dataclasses.dataclass(frozen=True)
class Image:
    version: str  # kernel version: "6.1.0-50-amd64"
    kernel: str
    initramfs: str


def obtain(deadline):
    """The newest kernel in apt's lists, or without a network the newest one in the cache. Raises
    NotToBeHad."""
    for program, package in ((QEMU, "qemu-system-x86"), (BUSYBOX, "busybox-static"), ("modprobe", "kmod"), ("dpkg-deb", "dpkg")):
        if not shutil.which(program):
            raise NotToBeHad(f"{package} is not installed; scripts/setup vm does that")
    base = os.path.join(cache(), "vm")
    version = _version_of_apt()
    with locked(os.path.join(base, "lock"), deadline):
        if version is None or not _has_package(base, version):
            version = _downloaded(base, version)
        directory = os.path.join(base, version)
        recipe = hashlib.sha256("\n".join((_INIT, *MODULES)).encode()).hexdigest()[:12]
        image = Image(version, os.path.join(directory, "vmlinuz"), os.path.join(directory, f"initramfs-{recipe}"))
        if not os.path.exists(image.initramfs):
            _make(directory, image)
    return image


def _version_of_apt():
    """The package that Debian's metapackage currently depends on."""
    told = subprocess.run(["apt-cache", "depends", "linux-image-amd64"], capture_output=True, text=True, timeout=60).stdout
    found = re.search(r"Depends: linux-image-(\S+-amd64)$", told, re.M)
    return found[1] if found else None


def _has_package(base, version):
    return bool(glob.glob(os.path.join(base, version, "linux-image-*.deb")))


def _downloaded(base, version):
    why = "apt knows no linux-image-amd64"
    if version is not None:
        directory = os.path.join(base, version)
        os.makedirs(directory, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory) as fresh:
            done = subprocess.run(["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", f"linux-image-{version}"], cwd=fresh,
                                  capture_output=True, text=True, timeout=600)
            for package in glob.glob(os.path.join(fresh, "*.deb")):
                os.rename(package, os.path.join(directory, os.path.basename(package)))
        if _has_package(base, version):
            return version
        why = f"apt-get download linux-image-{version}: {''.join(done.stderr.strip().splitlines()[-1:])}"
    cached = [name for name in os.listdir(base) if _has_package(base, name)]
    if not cached:
        raise NotToBeHad(why)
    return max(cached, key=lambda name: [int(number) for number in re.findall(r"\d+", name)])


def _make(directory, image):
    """Unpacks the package (400 MB) temporarily, and copies a kernel and a few modules (20 MB) out of it."""
    package, = glob.glob(os.path.join(directory, "linux-image-*.deb"))
    with tempfile.TemporaryDirectory(dir=directory) as work:
        tree, root = os.path.join(work, "package"), os.path.join(work, "initramfs")
        _run("dpkg-deb", "--extract", package, tree)
        _run("depmod", "-b", tree, image.version)
        os.makedirs(os.path.join(root, "bin"))
        os.makedirs(os.path.join(root, "modules"))
        shutil.copy(BUSYBOX, os.path.join(root, "bin/busybox"))
        with open(os.path.join(root, "init"), "w") as file:
            file.write(_INIT)
        os.chmod(os.path.join(root, "init"), 0o755)
        with open(os.path.join(root, "modules/order"), "w") as order:
            for path in _in_loading_order(tree, image.version):
                shutil.copy(path, os.path.join(root, "modules"))
                order.write(os.path.basename(path) + "\n")
        names = "".join(os.path.relpath(os.path.join(place, name), root) + "\n"
                        for place, folders, files in os.walk(root) for name in (*folders, *files))
        with open(os.path.join(work, "cpio"), "wb") as archive:
            subprocess.run([BUSYBOX, "cpio", "-o", "-H", "newc"], input=names.encode(), cwd=root, stdout=archive, stderr=subprocess.DEVNULL,
                           check=True)
        shutil.move(os.path.join(tree, "boot", f"vmlinuz-{image.version}"), image.kernel)
        for older in glob.glob(os.path.join(directory, "initramfs-*")):
            os.unlink(older)
        # last: if the initramfs exists, the image is complete
        os.rename(os.path.join(work, "cpio"), image.initramfs)


def _in_loading_order(tree, version):
    """The files of MODULES and of their dependencies, each once and after its dependencies. Built-in modules
    have no file."""
    paths = []
    for module in MODULES:
        listed = _run("modprobe", "-d", tree, "-S", version, "--show-depends", module)
        for line in listed.splitlines():
            if line.startswith("insmod ") and (path := line.split()[1]) not in paths:
                paths.append(path)
    return paths


def _run(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise NotToBeHad(f"{words[0]} {words[1]} ended with {done.returncode}: {''.join(done.stderr.strip().splitlines()[-1:])}")
    return done.stdout
