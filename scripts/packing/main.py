# SPDX-License-Identifier: Apache-2.0
"""main.py image FOLDER: builds the image from the packages in the folder. Called by scripts/package."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from packing import image  # noqa: E402
from testbed.api_servers import NotToBeHad  # noqa: E402


def main():
    if len(sys.argv) != 3 or sys.argv[1] != "image":
        print(__doc__, file=sys.stderr)
        return 2
    try:
        layout, archive, listing, size_mb = image.build(os.path.abspath(sys.argv[2]))
    except (NotToBeHad, RuntimeError) as why:
        print(f"scripts/package: {why}", file=sys.stderr)
        return 1
    print(f"image {archive}: {size_mb:.0f} MB unpacked, {os.path.getsize(archive) / 1e6:.0f} MB packed")
    print(f"the same as a folder: {layout}; contents: {listing}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
