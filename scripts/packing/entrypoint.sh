#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Entry point of the image: the first word is the program.
case ${1:-} in
    penstockd | penstock-sync | penstockctl) exec "$@" ;;
    -h | --help)
        echo "usage: penstockd|penstock-sync|penstockctl [options]; each has a --help"
        exit 0 ;;
    *)
        echo "penstock: the first word must be penstockd, penstock-sync or penstockctl, not '${1:-}'" >&2
        exit 2 ;;
esac
