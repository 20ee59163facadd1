# SPDX-License-Identifier: Apache-2.0
"""Provides gobgpd and gobgp: built once into the cache from the published Go module."""
import os
import shutil

from .api_servers import NotToBeHad, bounded, cache, go_environment, go_version, locked

VERSION, GO = "v4.8.0", (1, 25)
MODULE = "github.com/osrg/gobgp/v4"
PROGRAMS = ("gobgpd", "gobgp")


def obtain(deadline):
    """The folder with both programs. Raises NotToBeHad."""
    directory = os.path.join(cache(), "gobgp", VERSION)
    if not _is_complete(directory):
        with locked(directory + ".lock", deadline):
            if not _is_complete(directory):  # otherwise the previous lock holder built it
                _build(directory, deadline)
    return directory


def _is_complete(directory):
    return all(os.access(os.path.join(directory, program), os.X_OK) for program in PROGRAMS)


def _build(directory, deadline):
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    version = go_version(go)
    if version is None or version < GO:
        raise NotToBeHad(f"GoBGP {VERSION} needs Go {GO[0]}.{GO[1]}, and " + ("no go is on PATH" if not go else f"{go} is older"))
    work, new = directory + ".build", directory + ".new"
    for path in (work, new):
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
    with open(os.path.join(work, "go.mod"), "w") as file:
        file.write(f"module bed\n\ngo {GO[0]}.{GO[1]}\n\nrequire {MODULE} {VERSION}\n")
    environment = go_environment(GO111MODULE="on", GOFLAGS="-mod=mod -modcacherw -buildvcs=false -p=2", GOWORK="off", CGO_ENABLED="0")
    words = [go, "build", "-ldflags", "-s -w", "-o", new + "/", *(f"{MODULE}/cmd/{program}" for program in PROGRAMS)]
    bounded(words, os.path.join(work, "log"), deadline, cwd=work, env=environment)
    # The rename is atomic: a folder that exists is complete.
    shutil.rmtree(directory, ignore_errors=True)
    os.rename(new, directory)
    shutil.rmtree(work, ignore_errors=True)
