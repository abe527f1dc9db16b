# shellcheck shell=bash
# Functions that the scripts share; sourced, never run. The caller has set -euo pipefail.

# shellcheck disable=SC2034 # for the callers
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
me=$(basename "$0")

# The packages for building and testing, with Debian 12's names.
# shellcheck disable=SC2034
readonly BUILD_PACKAGES=(gcc libc6-dev binutils meson ninja-build pkgconf python3 openssl check
    libmicrohttpd-dev libgnutls28-dev libcurl4-openssl-dev libyaml-dev libnghttp2-dev libjansson-dev)

# The packages for building the Debian package; dpkg-buildpackage needs build-essential by name.
# shellcheck disable=SC2034
readonly DEB_PACKAGES=(build-essential dpkg-dev debhelper fakeroot meson ninja-build pkgconf libmicrohttpd-dev
    libgnutls28-dev libcurl4-openssl-dev libyaml-dev libnghttp2-dev)

say() { printf '[%4ds] %s: %s\n' "$SECONDS" "$me" "$*"; }

die() {
    say "$*" >&2
    exit 1
}

installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q '^install ok installed$'; }

apt_get() { # ARGUMENT...; under a lock of ours, as apt-get waits for dpkg's lock, but not for its lists'
    DEBIAN_FRONTEND=noninteractive flock "$root/scripts/lib.sh" \
        apt-get -qq -o DPkg::Lock::Timeout=300 "$@" </dev/null
}

install_missing() { # NAME...; installs those packages that are missing, or says which they are
    local name missing=()
    command -v dpkg-query >/dev/null ||
        die "this is not Debian: see to it that you have what these packages of Debian 12 hold: $*"
    for name; do
        installed "$name" || missing+=("$name")
    done
    if ((${#missing[@]} == 0)); then
        say 'all packages are there'
        return 0
    fi
    ((EUID == 0)) || die "not root, and packages are missing; install them, and start me again:
  sudo apt-get update && sudo apt-get install --no-install-recommends ${missing[*]}"
    command -v apt-get >/dev/null || die "no apt-get, and these packages are missing: ${missing[*]}"
    say 'apt-get update'
    apt_get update
    say "install ${missing[*]}"
    apt_get -y install --no-install-recommends "${missing[@]}" >/dev/null
}

configure() { # FOLDER OPTION...; a meson build folder; makes a half-made one again
    local dir=$1
    shift
    if [[ -f $dir/build.ninja ]]; then
        say "$dir is configured"
        return
    fi
    say "configure $dir"
    rm -rf "${root:?}/$dir"
    meson setup "$root/$dir" "$root" "$@" >/dev/null || {
        tail -n 20 "$root/$dir/meson-logs/meson-log.txt" >&2
        die "cannot configure $dir"
    }
}

build() { # FOLDER [TARGET ...]; on a terminal one line that moves, else one for each step that there was
    say "build $1"
    if [[ -t 1 ]]; then
        ninja -C "$root/$1" "${@:2}" || die "$1 does not build"
    else
        ninja -C "$root/$1" "${@:2}" | grep --line-buffered -v '^ninja: Entering' ||
            ((PIPESTATUS[0] == 0)) || die "$1 does not build"
    fi
}

# The version of the tree; meson.build is the only place that has it.
tree_version() { sed -n "s/^  version: '\(.*\)',$/\1/p" "$root/meson.build"; }

# This machine, as builders of images name it. podman 4 does not set BUILDPLATFORM itself.
build_platform() {
    case $(uname -m) in
        x86_64) echo linux/amd64 ;;
        aarch64) echo linux/arm64 ;;
        *) die "an image can't be built on $(uname -m), only on x86_64 and aarch64" ;;
    esac
}

# Prints the files that git tracks or would track, each with a NUL; without git, all but build folders.
tree_files() {
    git -C "$root" ls-files -coz --exclude-standard --deduplicate 2>/dev/null ||
        (cd "$root" && find . -name 'build*' -prune -o -name __pycache__ -prune -o -type f -print0)
}
