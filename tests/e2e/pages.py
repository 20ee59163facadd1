# SPDX-License-Identifier: Apache-2.0
"""Pages of docs/ whose commands a suite runs."""


def blocks_of(page):
    """The blocks of commands of a page: those without a language."""
    blocks, language, lines = [], None, []
    with open(page) as file:
        for line in file:
            if line.startswith("```"):
                if language is None:
                    language, lines = line.strip("`\n"), []
                else:
                    if not language:
                        blocks.append("".join(lines))
                    language = None
            elif language is not None:
                lines.append(line)
    return blocks
