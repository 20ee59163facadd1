# SPDX-License-Identifier: Apache-2.0
"""Checks the links of a built site: each has its file, and each anchor its element."""
import html.parser
import os
import urllib.parse


class _Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.anchors = [], set()

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def broken(site):
    """"PAGE: LINK" of each link within the site that leads nowhere. Links to other sites are not followed."""
    pages = {}
    for folder, _, names in os.walk(site):
        for name in names:
            if name.endswith(".html"):
                page = _Page()
                with open(os.path.join(folder, name)) as file:
                    page.feed(file.read())
                pages[os.path.join(folder, name)] = page
    found = []
    for path, page in sorted(pages.items()):
        if os.path.basename(path) == "404.html":  # its links begin at the root of the server
            continue
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(parts.path))) if parts.path else path
            if os.path.isdir(target):
                target = os.path.join(target, "index.html")
            fragment = urllib.parse.unquote(parts.fragment)
            if not os.path.exists(target) or fragment and target in pages and fragment not in pages[target].anchors and fragment != "__search":
                found.append(f"{os.path.relpath(path, site)}: {link}")
    return found, len(pages)
