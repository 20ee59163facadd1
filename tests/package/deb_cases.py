# SPDX-License-Identifier: Apache-2.0
"""The Debian packages: contents, dependencies, scripts, profiles, and what lintian finds."""
import os
import re
import shutil
import subprocess

from fixture import Skip, case, check, equal

import products

OWN = ("penstock-doc", "penstock-gateway", "penstock-sync", "penstockctl")
SCRIPTS = ("preinst", "postinst", "prerm", "postrm")


@case()
def lintian_finds_no_error_and_no_warning(lab):
    products.debs()
    done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", products.changes()], capture_output=True, text=True, timeout=300)
    equal((done.returncode, done.stdout), (0, ""), f"lintian {done.stderr}")


@case()
def packages_have_the_files_of_the_page(lab):
    equal(tuple(sorted(products.debs())), OWN, "packages")
    expected = {
        "penstock-gateway": ("/usr/sbin/penstockd", "/usr/share/penstock/penstockd.ini", "/lib/systemd/system/penstock-gateway.service",
                             "/usr/lib/sysusers.d/penstock-gateway.conf", "/usr/lib/tmpfiles.d/penstock-gateway.conf",
                             "/etc/apparmor.d/usr.sbin.penstockd", "/usr/share/man/man8/penstockd.8.gz", "/usr/share/man/man5/penstockd.ini.5.gz",
                             "/usr/share/doc/penstock-gateway/README.Debian", "/usr/share/doc/penstock-gateway/examples/hugepages.conf"),
        "penstock-sync": ("/usr/sbin/penstock-sync", "/usr/share/penstock/penstock-sync.ini", "/lib/systemd/system/penstock-sync.service",
                          "/usr/lib/sysusers.d/penstock-sync.conf", "/usr/lib/tmpfiles.d/penstock-sync.conf",
                          "/etc/apparmor.d/usr.sbin.penstock-sync", "/usr/share/man/man8/penstock-sync.8.gz",
                          "/usr/share/man/man5/penstock-sync.ini.5.gz"),
        "penstockctl": ("/usr/bin/penstockctl", "/usr/share/man/man1/penstockctl.1.gz", "/usr/share/bash-completion/completions/penstockctl",
                        "/usr/share/zsh/vendor-completions/_penstockctl", "/usr/share/fish/vendor_completions.d/penstockctl.fish"),
        "penstock-doc": ("/usr/share/doc/penstock-doc/docs/install-bare-metal.md", "/usr/share/doc/penstock-doc/docs/examples/external-ip.yaml",
                         "/usr/share/doc/penstock-doc/charts/penstock/Chart.yaml", "/usr/share/doc/penstock-doc/README.md"),
    }
    for package, paths in expected.items():
        there = products.files(package)
        equal([path for path in paths if path not in there], [], f"missing in {package}")
        equal({owner for _, owner in there.values()}, {"root/root"}, f"owners in {package}")
        equal([path for path, (mode, _) in there.items() if "w" in mode[5] + mode[8] or "s" in mode], [],
              f"writable by others, or setuid, in {package}")


@case()
def installed_ini_files_only_have_comments(lab):
    for package, program in (("penstock-gateway", "penstockd"), ("penstock-sync", "penstock-sync")):
        folder = lab.run.file(package)
        products.extract(package, folder)
        with open(os.path.join(folder, f"usr/share/penstock/{program}.ini")) as file:
            lines = [line.strip() for line in file if line.strip()]
        equal([line for line in lines if not line.startswith("#")], [], f"options set by {program}.ini")
        options = set(re.findall(r"--([a-z0-9-]+)", subprocess.run([os.path.join(folder, "usr/sbin", program), "--help"],
                                                                   capture_output=True, text=True, check=True).stdout))
        named = set(re.findall(r"^#\s*([a-z0-9-]+) =", "\n".join(lines), re.MULTILINE))
        check(len(named) > 20 and named <= options, f"{program}.ini names {len(named)} options, unknown: {sorted(named - options)}")


@case()
def an_update_replaces_ini_files_that_were_not_changed(lab):
    """The scripts of the sources on a folder as root: their part of debhelper is a comment there."""
    for package, ini in (("penstock-gateway", "penstockd.ini"), ("penstock-sync", "penstock-sync.ini")):
        root = lab.run.file(f"root-{package}")
        template, file = os.path.join(root, "usr/share/penstock", ini), os.path.join(root, "etc/penstock", ini)
        os.makedirs(os.path.dirname(template))

        def script(name, *words):
            done = subprocess.run(["sh", os.path.join(products.DEBIAN, f"{package}.{name}"), *words], capture_output=True, text=True,
                                  env={**os.environ, "DPKG_ROOT": root})
            equal((done.returncode, done.stderr), (0, ""), f"{package}.{name} {words}")

        def content():
            return open(file).read() if os.path.exists(file) else None

        def update(version, interrupted=False):
            script("preinst", "upgrade", "1")
            if interrupted:
                script("postinst", "abort-upgrade", version)
                return
            with open(template, "w") as options:
                options.write(f"# options of {version}\n")
            script("postinst", "configure", "1")

        with open(template, "w") as options:
            options.write("# options of 1\n")
        script("preinst", "install")
        script("postinst", "configure", "")
        equal(content(), "# options of 1\n", "the file of the installation")
        update("2")
        equal(content(), "# options of 2\n", "a file that was not changed, after an update")
        update("3", interrupted=True)
        equal((content(), os.listdir(os.path.dirname(file))), ("# options of 2\n", [ini]), "after an update that was given up")
        with open(file, "a") as options:
            options.write("burst = 4\n")
        update("4")
        equal(content(), "# options of 2\nburst = 4\n", "a file that the operator has changed")
        os.remove(file)
        update("5")
        equal(content(), None, "a file that the operator has removed")
        script("postinst", "configure", "")
        script("postrm", "remove")
        equal(content(), "# options of 5\n", "after the removal of the package")
        script("postrm", "purge")
        equal(os.path.exists(os.path.dirname(file)), False, "folder after a purge")


@case()
def run_time_dependencies_are_complete(lab):
    depends = products.names_in(products.fields("penstock-gateway")["Depends"])
    # Loaded by DPDK at run time; shlibs cannot find them.
    for name in ("librte-bus-pci23", "librte-bus-vdev23", "librte-mempool-ring23"):
        check(name in depends, f"penstock-gateway does not depend on {name}")
    # Linked.
    for name in ("libc6", "librte-eal23", "librte-ethdev23", "librte-net-bond23", "libgrpc++1.51", "penstockctl"):
        check(name in depends, f"penstock-gateway does not depend on {name}: {depends}")
    check("libgrpc++1.51" in products.names_in(products.fields("penstockctl")["Depends"]), "penstockctl does not depend on gRPC")
    sync = products.names_in(products.fields("penstock-sync")["Depends"])
    check("libcurl4" in sync and not any(name.startswith("librte-") for name in sync), f"penstock-sync depends on {sync}")


@case()
def drivers_of_control_page_and_readme_are_the_same(lab):
    control = products.source_control()["penstock-gateway"]
    wanted = {name: kind for kind, field in (("yes", "Recommends"), ("no", "Suggests"))
              for name in products.names_in(control[field]) if name.startswith("librte-net-")}
    with open(products.PAGE) as file:
        page = dict(re.findall(r"^\| `(librte-net-\S+)` \| .* \| (yes|no) \|$", file.read(), re.MULTILINE))
    equal(page, wanted, "drivers on the page")
    with open(os.path.join(products.DEBIAN, "penstock-gateway.README.Debian")) as file:
        equal(set(re.findall(r"^    (librte-net-\S+) ", file.read(), re.MULTILINE)), set(wanted), "drivers in README.Debian")
    known = subprocess.run(["apt-cache", "--names-only", "--generate", "pkgnames", "librte-net-"], capture_output=True, text=True).stdout.split()
    if known:
        equal(sorted(set(wanted) - set(known)), [], "drivers that Debian does not have")


@case()
def versions_and_build_dependencies_agree_with_the_sources(lab):
    with open(os.path.join(products.ROOT, "meson.build")) as file:
        version = re.search(r"version: '([^']+)'", file.read())[1]
    with open(os.path.join(products.DEBIAN, "changelog")) as file:
        equal(re.match(r"penstock \(([^)]+)\)", file.read())[1], version, "version in debian/changelog")
    for package in OWN:
        equal(products.fields(package)["Version"], version, f"version of {package}")
    with open(os.path.join(products.ROOT, "scripts/setup")) as file:
        installed = re.search(r'^build="([^"]+)"', file.read(), re.MULTILINE)[1].split()
    needed = products.names_in(products.source_control()[""]["Build-Depends"])
    own = {"debhelper-compat", "dh-apparmor", "dh-sequence-installsysusers"}
    equal(sorted(set(needed) - own), sorted(set(installed) - {"g++"}), "Build-Depends, and group build of scripts/setup")


@case()
def maintainer_scripts_are_valid_and_enable_nothing(lab):
    for package in OWN:
        for name in SCRIPTS:
            text = products.script(package, name)
            if text:
                done = subprocess.run(["sh", "-n"], input=text, capture_output=True, text=True)
                equal((done.returncode, done.stderr), (0, ""), f"{package} {name}")
                check("deb-systemd-helper enable" not in text or "was-enabled" in text, f"{package} {name} enables its service")
    gateway = products.script("penstock-gateway", "postinst")
    at_update = gateway + products.script("penstock-gateway", "preinst")
    check(not re.search(r"deb-systemd-invoke|systemctl.* (re)?start", at_update), f"an update touches penstockd:\n{at_update}")
    check("daemon-reload" in gateway, "an update does not load the new unit")
    check('"$1" = remove' in products.script("penstock-gateway", "prerm"), "the removal does not stop penstockd")
    check("restart" in products.script("penstock-sync", "postinst"), "an update does not restart penstock-sync")
    check("systemd-sysusers" in gateway and "systemd-tmpfiles" in gateway, "users or folders are not created")


@case()
def apparmor_profiles_are_valid(lab):
    parser = shutil.which("apparmor_parser", path="/usr/sbin:/sbin:" + os.environ["PATH"])
    if not parser:
        raise Skip("apparmor_parser is missing: scripts/setup package")
    for name in sorted(os.listdir(os.path.join(products.DEBIAN, "apparmor"))):
        done = subprocess.run([parser, "--skip-kernel-load", "--skip-cache", os.path.join(products.DEBIAN, "apparmor", name)],
                              capture_output=True, text=True)
        equal((done.returncode, [line for line in done.stderr.splitlines() if "interface file missing" not in line]), (0, []), f"profile {name}")


@case()
def packaged_programs_start(lab):
    for package, program in (("penstock-gateway", "usr/sbin/penstockd"), ("penstock-sync", "usr/sbin/penstock-sync"), ("penstockctl", "usr/bin/penstockctl")):
        folder = lab.run.file(package)
        products.extract(package, folder)
        path = os.path.join(folder, program)
        shown = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
        equal(shown.strip(), f"{os.path.basename(program)} {products.fields(package)['Version']}", "version")
        with open(path, "rb") as file:
            content = file.read()
        found = [text for text in (products.ROOT.encode(), b"/build-package/", b"/build-debian/") if text in content]
        equal(found, [], f"paths of the build in {program}")
