# SPDX-License-Identifier: Apache-2.0
"""The documentation as a site (scripts/docs-site)."""
import json
import os
import re
import shutil
import time

from docs_site import build, stage
from fixture import Skip, case, check, equal

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def built(lab, root, name):
    try:
        build.environment()
    except build.Failed as why:
        raise Skip(str(why).split("\n")[0]) from why
    work = lab.file(f"work-{name}")
    os.mkdir(work)
    site = lab.file(name)
    return site, build.build(root, work, site)


@case()
def it_builds_without_a_warning_and_can_be_searched(lab):
    began = time.monotonic()
    site, count = built(lab, ROOT, "site")
    check(count >= len(stage.pages(ROOT)), f"{count} pages of {len(stage.pages(ROOT))}")
    with open(os.path.join(site, "search/search_index.json")) as file:
        documents = json.load(file)["docs"]
    places = {document["location"] for document in documents if "connection-draining" in document["text"]}
    check(any(place.startswith("docs/operations.html#") for place in places), f"a search finds {sorted(places)}")
    for path in ("index.html", "docs/operations.html", "docs/adr/0001-separate-processes-for-data-plane-control-plane-and-cli.html"):
        check(os.path.exists(os.path.join(site, path)), f"{path} is missing")
    with open(os.path.join(site, "docs/operations.html")) as file:
        page = file.read()
    check(not re.search(r'(src|href)="https?://(?!penstock\.example|squidfunk)', re.sub(r"<article.*?</article>", "", page, flags=re.DOTALL)),
          "the theme loads files of other sites")
    check("<!-- contents -->" not in page and page.count("<ol") + page.count("<ul") > 20, "lists are missing")
    lab.remarks.append(f"{count} pages, {len(documents)} sections to search, {time.monotonic() - began:.0f} s")


@case()
def a_broken_link_or_anchor_fails_the_build(lab):
    for name, link in (("page", "[there](sizing-of-nothing.md)"), ("anchor", "[there](sizing.md#no-such-section)")):
        root = lab.file(f"root-{name}")
        shutil.copytree(ROOT, root, ignore=lambda folder, names: [each for each in names if each.startswith(("build", ".git"))])
        with open(os.path.join(root, "docs/monitoring.md"), "a") as file:
            file.write(f"\n{link}\n")
        try:
            built(lab, root, name)
        except build.Failed as failure:
            check("monitoring.md" in str(failure), f"{name}: {failure}")
        else:
            check(False, f"a broken {name} is accepted")


@case()
def lists_are_those_of_the_pages(lab):
    equal(stage.converted("Text:\n- a\n  more\n\n      code\n- b\n  1. c\n     d\n\nend\n\n    - code\n      more\n"),
          "Text:\n\n- a\n    more\n\n        code\n- b\n    1. c\n        d\n\nend\n\n    - code\n      more\n", "converted lists")
