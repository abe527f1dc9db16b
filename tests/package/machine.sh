# shellcheck shell=bash
# shellcheck disable=SC2154 # scratch and version are the caller's
# A separate Debian 12 in a folder, with systemd: made from packages, entered with chroot, and booted
# with systemd-nspawn, which shares only the kernel with the machine. Sourced by tests/package/run.

fresh_tar() { # prints the archive of a fresh Debian 12, made if need be
    local cache=${XDG_CACHE_HOME:-$HOME/.cache}/cardpack tar sources
    tar=$cache/debian-12.tar
    mkdir -p "$cache"
    (
        flock 9
        [[ ! -s $tar ]] || exit 0
        # shellcheck disable=SC2016 # apt's own variables
        sources=$(apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' \
            'Created-By: Packages' 'Origin: Debian' | grep ' bookworm' | sort -u)
        [[ -n $sources ]] || { echo "apt knows no archive of Debian 12's" && exit 1; }
        mmdebstrap --quiet --format=tar --variant=minbase --include=systemd-sysv,ca-certificates \
            --dpkgopt=force-unsafe-io bookworm "$tar.new" - <<<"$sources" && mv "$tar.new" "$tar"
    ) 9>"$cache/debian-12.lock" >&2 || return 1
    echo "$tar"
}

fresh_machine() { # FOLDER
    local tar
    tar=$(fresh_tar) || return 1
    mkdir -p "$1"
    tar -C "$1" --numeric-owner -xpf "$tar"
    # Uses this machine's name resolution.
    cat /etc/resolv.conf >"$1/etc/resolv.conf"
}

inside() { # MACHINE COMMAND...; without systemd
    chroot "$1" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive \
        LC_ALL=C.UTF-8 "${@:2}"
}

install_packages() { # MACHINE FOLDER
    mkdir "$1/debs"
    cp "$2"/cardpack_*.deb "$2"/kubectl-cardpack_*.deb "$2"/cardpack-node_*.deb \
        "$1/debs/"
    inside "$1" apt-get -qq update &&
        inside "$1" sh -c 'apt-get -y -o Dpkg::Options::=--force-unsafe-io install --no-install-recommends /debs/*.deb'
}

libraries_there() { # MACHINE
    inside "$1" ldd /usr/bin/cardpack /usr/bin/kubectl-cardpack /usr/bin/cardpack-node /usr/bin/cardpack-sim \
        >"$scratch/ldd" && lacks 'not found' "$scratch/ldd"
}

pages_there() { # MACHINE
    gzip -dc "$1/usr/share/man/man8/cardpack.8.gz" | cmp - docs/man/cardpack.8 &&
        gzip -dc "$1/usr/share/man/man8/cardpack-node.8.gz" | cmp - docs/man/cardpack-node.8 &&
        gzip -dc "$1/usr/share/man/man5/cardpack.yaml.5.gz" | cmp - docs/man/cardpack.yaml.5 &&
        gzip -dc "$1/usr/share/man/man1/kubectl-cardpack.1.gz" | cmp - docs/man/kubectl-cardpack.1 &&
        gzip -dc "$1/usr/share/man/man1/cardpack-sim.1.gz" | cmp - docs/man/cardpack-sim.1
}

# The names under which kubectl looks for them; the second is a link to the first and gives
# completions.
plugin_works() { # MACHINE
    local command
    inside "$1" kubectl_complete-cardpack to >"$scratch/offered" || return 1
    grep -q '^top' "$scratch/offered" || { cat "$scratch/offered" && return 1; }
    # shellcheck disable=SC2016 # the machine's
    command='cardpack --cluster /root/example-cluster.yaml --port 0 2>/root/log & trap "kill $!" EXIT
        for try in $(seq 600); do
            port=$(sed -n "s/.*\"msg\":\"listening\".*\"port\":\([0-9]*\).*/\1/p" /root/log)
            [ -z "$port" ] || break
            sleep 0.1
        done
        kubectl-cardpack top --daemon-url "http://127.0.0.1:$port" --no-headers'
    cp config/example-cluster.yaml "$1/root/"
    inside "$1" sh -c "$command" >"$scratch/top" || return 1
    cat "$scratch/top"
    rm "$1/root/example-cluster.yaml" "$1/root/log"
    grep -q '^inference-t4-0 ' "$scratch/top"
}

# Each script is in the folder where its shell looks, with the program's exact output; zsh loads it by
# file name.
completions_there() { # MACHINE
    local share=$1/usr/share command
    inside "$1" cardpack-sim completion bash | cmp - "$share/bash-completion/completions/cardpack-sim" || return 1
    inside "$1" kubectl-cardpack completion bash | cmp - "$share/bash-completion/completions/kubectl-cardpack" &&
        inside "$1" kubectl-cardpack completion fish | cmp - "$share/fish/vendor_completions.d/kubectl-cardpack.fish" &&
        inside "$1" kubectl-cardpack completion zsh | cmp - "$share/zsh/vendor-completions/_kubectl_cardpack" || return 1
    # shellcheck disable=SC2016 # zsh's own
    command='fpath=($PLACE $fpath); autoload -Uz compinit && compinit -D -u && print ${_comps[kubectl-cardpack]}'
    same _kubectl_cardpack env PLACE="$share/zsh/vendor-completions" zsh -fc "$command"
}

one_without_the_other() { # MACHINE
    inside "$1" dpkg --remove kubectl-cardpack && inside "$1" cardpack --version &&
        [[ ! -e $1/usr/bin/kubectl-cardpack && ! -e $1/usr/bin/kubectl_complete-cardpack ]]
}

config_is_default() { # MACHINE; the shipped file changes no default
    diff <(inside "$1" cardpack --check-config) \
        <(inside "$1" cardpack --config /etc/cardpack/cardpack.yaml --check-config | sed 's/ # file$//')
}

boot() { # MACHINE; runs tests/package/booted in it, and turns it off
    cp tests/package/booted config/example-cluster.yaml "$1/root/"
    cat >"$1/etc/systemd/system/booted.service" <<'END'
[Unit]
After=basic.target
SuccessAction=poweroff
FailureAction=poweroff
[Service]
Type=oneshot
TimeoutStartSec=540
ExecStart=/bin/bash -c '/root/booted >/root/booted.out 2>&1'
END
    mkdir -p "$1/etc/systemd/system/multi-user.target.wants"
    ln -sf ../booted.service "$1/etc/systemd/system/multi-user.target.wants/booted.service"
    timeout -k 10 600 systemd-nspawn --quiet --directory="$1" --boot --register=no --keep-unit \
        --private-network --console=pipe </dev/null >"$scratch/nspawn.log" 2>&1
    [[ -s $1/root/booted.out ]] || cat "$scratch/nspawn.log"
    rm "$1/etc/systemd/system/booted.service" "$1/etc/systemd/system/multi-user.target.wants/booted.service"
}

# Each line "ok NAME" or "FAILED NAME" from the machine is a check; the following lines are the reason.
booted_checks() { # FILE
    local line
    while IFS= read -r line; do
        printf '%s\n' "$line"
        case $line in
            'ok '*) passed=$((passed + 1)) ;;
            'FAILED '*) failed=$((failed + 1)) ;;
        esac
    done <"$1"
    check 'the machine came to its end' grep -qx 'the end' "$1"
}

purge_leaves_nothing() { # MACHINE
    inside "$1" apt-get -y purge cardpack cardpack-node || return 1
    rm -r "$1/debs" "$1/root/booted" "$1/root/booted.out" "$1/root/example-cluster.yaml"
    same '' find "$1" -xdev -name '*cardpack*' -o -xdev -user cardpack 2>/dev/null ||
        same '' find "$1" -xdev -name '*cardpack*' || return 1
    ! grep cardpack "$1"/etc/passwd "$1"/etc/group "$1"/etc/shadow
}

on_machine() { # MACHINE DEBS
    check 'the packages install, with what they depend on' install_packages "$1" "$2"
    check 'the program runs there' same "cardpack $version" inside "$1" cardpack --version
    check 'so does the plugin, and asks it' plugin_works "$1"
    check 'completions are where the shells look' completions_there "$1"
    check 'no library is missing' libraries_there "$1"
    check 'the manual pages are there' pages_there "$1"
    check 'the shipped configuration is right, and has every default' config_is_default "$1"
    check 'it is a conffile' grep -qx /etc/cardpack/cardpack.yaml "$1/var/lib/dpkg/info/cardpack.conffiles"
    check 'the plugin can go, and the program stays' one_without_the_other "$1"
    boot "$1"
    booted_checks "$1/root/booted.out"
    check 'purged, nothing of it is left' purge_leaves_nothing "$1"
}
