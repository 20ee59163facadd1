# SPDX-License-Identifier: Apache-2.0
"""Runs mkdocs with the theme Material, in an environment of its own in the cache."""
import json
import os
import subprocess

from testbed import python_programs
from testbed.api_servers import NotToBeHad

from . import links, stage

REQUIREMENTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "requirements.txt")
# The anchors of headings are those of forges; the function and the fence can be named in YAML only by these tags.
CONFIGURATION = """site_name: Penstock
site_description: Layer-4 gateway for Kubernetes on DPDK
site_url: {url}
docs_dir: {pages}
site_dir: {site}
use_directory_urls: false
theme:
  name: material
  font: false
  features: [navigation.tabs, navigation.top, search.suggest, search.highlight, content.code.copy, toc.follow]
  palette:
    - {{media: "(prefers-color-scheme: light)", scheme: default, primary: blue grey, toggle: {{icon: material/weather-night, name: Dark}}}}
    - {{media: "(prefers-color-scheme: dark)", scheme: slate, primary: blue grey, toggle: {{icon: material/weather-sunny, name: Light}}}}
plugins: [search]
validation:
  nav: {{omitted_files: ignore, not_found: warn, absolute_links: warn}}
  links: {{not_found: warn, anchors: warn, absolute_links: warn, unrecognized_links: warn}}
markdown_extensions:
  - tables
  - sane_lists
  - pymdownx.highlight
  - toc:
      permalink: true
      toc_depth: 4
      slugify: !!python/object/apply:pymdownx.slugs.slugify
        kwds:
          case: lower
  - pymdownx.superfences:
      custom_fences:
        - name: mermaid
          class: mermaid
          format: !!python/name:pymdownx.superfences.fence_code_format
nav: {navigation}
"""


class Failed(Exception):
    pass


def environment():
    """The folder of the Python environment with mkdocs; created if it is not in the cache."""
    try:
        return python_programs.environment("docs-site", REQUIREMENTS, "mkdocs")
    except NotToBeHad as why:
        raise Failed(str(why)) from why


def build(root, work, site, url="https://penstock.example/"):
    """Builds the site from the pages below `root`. Every warning of mkdocs and every broken link raises Failed.
    Returns the number of pages. `work` is an empty folder."""
    pages = os.path.join(work, "pages")
    stage.stage(root, pages)
    configuration = os.path.join(work, "mkdocs.yml")
    with open(configuration, "w") as file:
        file.write(CONFIGURATION.format(url=url, pages=pages, site=site, navigation=json.dumps(stage.navigation(root))))
    _run([os.path.join(environment(), "bin/mkdocs"), "build", "--strict", "--config-file", configuration], "mkdocs")
    broken, count = links.broken(site)
    if broken:
        raise Failed("broken links:\n" + "\n".join(broken))
    return count


def _run(words, what):
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    if done.returncode != 0:
        raise Failed(f"{what}: {(done.stderr + done.stdout).strip()}")
