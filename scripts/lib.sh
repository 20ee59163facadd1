# Shared by the scripts beside it; sourced, not executed. Messages, and build directories that are configured
# once and built quietly.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# ccache treats paths below it as relative, so clones share compiled files.
export CCACHE_BASEDIR=$root
me=scripts/$(basename "$0")

say() { printf '%s: %s\n' "$me" "$*" >&2; }
fail() { say "$*"; exit 1; }
# Exit code 2: invalid command line.
usage_error() { say "$* (see $me --help)"; exit 2; }
# Prints the help of a script: its opening comment.
usage_of() { sed -n '2,/^[^#]/{/^# SPDX/d;s/^# \{0,1\}//p}' "$1"; }

# use_clang: selects clang for the build directories configured from here on. Its sanitizers need an LLVM
# program for the names and lines in their reports.
use_clang() {
    local program
    for program in clang++-19 llvm-symbolizer-19; do
        command -v $program >/dev/null || fail "$program is missing: apt-get install clang-19 libclang-rt-19-dev llvm-19"
    done
    # meson adds ccache only to a compiler that it finds by itself.
    CXX="$(command -v ccache >/dev/null && echo 'ccache ')clang++-19"
    export CXX {ASAN,TSAN,UBSAN}_SYMBOLIZER_PATH=/usr/bin/llvm-symbolizer-19
}

# configure DIR [MESON-OPTION...]: a build directory with exactly these options. They are stored in it, so a
# repeated call with the same options returns at once. Other options reconfigure it; another compiler (CXX)
# needs a new build directory.
configure() {
    local dir=$1 lock
    shift
    mkdir -p "$dir"
    exec {lock}>"$dir/configure.lock"
    flock $lock
    configure_locked "$dir" "$@"
    exec {lock}>&-
}
configure_locked() {
    local dir=$1 stamp=$1/.penstock-options log again=()
    shift
    local wanted="CXX=${CXX:-} $*" had
    had=$(cat "$stamp" 2>/dev/null || true)
    if [ -f "$dir/build.ninja" ]; then
        [ "$had" != "$wanted" ] || return 0
        again=(--reconfigure)
        if [ -n "$had" ] && [ "${had%% *}" != "${wanted%% *}" ]; then
            again=(--wipe)
        fi
    fi
    log=$(mktemp)
    (cd "$root" && meson setup "${again[@]}" "$dir" "$@") >"$log" 2>&1 || { tail -20 "$log" >&2; rm -f "$log"; fail "meson setup failed (above)"; }
    rm -f "$log"
    printf '%s' "$wanted" >"$stamp"
}

# Before configure(), for builds whose programs are tested and not shipped: mold links a test program in a
# fraction of the time of GNU ld (docs/adr/0032). A folder keeps the linker that it was configured with. Not for
# another processor: its GCC 12 accepts -fuse-ld=mold, but does not find the linker.
link_with_mold() {
    if command -v mold >/dev/null; then
        export CXX_LD=mold
    fi
}

# compile DIR [TARGET...]: quiet unless it fails. Warnings of a successful build are kept in DIR/build.log. A
# second build in DIR waits for the first: ninja does not lock its folder.
compile() {
    local dir=$1 lock
    shift
    exec {lock}>"$dir/build.lock"
    flock $lock
    ninja -C "$dir" "$@" >"$dir/build.log" 2>&1 || { grep -vE '^\[[0-9]+/[0-9]+\] (Compiling|Linking|Generating)' "$dir/build.log" | tail -60 >&2; fail "build in $dir failed (above; all of it in $dir/build.log)"; }
    exec {lock}>&-
}

programs=(control/gateway/penstockd control/sync/penstock-sync control/cli/penstockctl)

# progress WHAT INTERVAL COMMAND...: runs COMMAND and logs a line every INTERVAL seconds with the progress and
# the remaining time. `progress_of` prints the progress as "DONE TOTAL", or nothing while it is unknown.
# COMMAND stays in the foreground and its exit code is returned.
progress() {
    local what=$1 interval=$2 code=0 reporter
    shift 2
    report_progress "$what" "$interval" &
    reporter=$!
    "$@" || code=$?
    kill $reporter 2>/dev/null || true
    wait $reporter 2>/dev/null || true
    return $code
}

# Ends with the script, which a failure of the command or Ctrl-C may end at any time.
report_progress() {
    local what=$1 interval=$2 began=$SECONDS at=$SECONDS done_ total elapsed
    while sleep 0.5 && kill -0 $$ 2>/dev/null; do
        [ $((SECONDS - at)) -ge "$interval" ] || continue
        at=$SECONDS elapsed=$((SECONDS - began))
        read -r done_ total <<<"$(progress_of)" || true
        if [ "${done_:-0}" -gt 0 ]; then
            say "$what: $((100 * done_ / total)) %, about $(time_text $((elapsed * (total - done_) / done_))) left"
        else
            say "$what: for $(time_text $elapsed)"
        fi
    done
}

# "45 s", "3 min"
time_text() { if [ "$1" -lt 120 ]; then echo "$1 s"; else echo "$((($1 + 30) / 60)) min"; fi; }

# build_programs [MESON-OPTION...]: the three programs as they are shipped, without the tests, in build/, as in
# README.md.
build_programs() {
    configure "$root/build" -Dtests=false --buildtype=release "$@"
    local started=$SECONDS
    # Ninja begins each line of its log with [DONE/TOTAL].
    progress_of() { tail -c 300 "$root/build/build.log" 2>/dev/null | tr '\r' '\n' | sed -n 's/^\[\([0-9]*\)\/\([0-9]*\)\].*/\1 \2/p' | tail -1; }
    progress "building the programs" 10 compile "$root/build" "${programs[@]}"
    link_programs "$root/build"
    [ $((SECONDS - started)) -lt 5 ] || say "built in $((SECONDS - started)) s"
}

# link_programs DIR: short paths for users, DIR/penstockd and its companions.
link_programs() {
    local program
    for program in "${programs[@]}"; do
        # Not again: the program of another suite may start at this moment.
        [ "$(readlink "$1/$(basename "$program")")" = "$program" ] || ln -sf "$program" "$1/$(basename "$program")"
    done
}
