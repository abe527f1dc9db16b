# shellcheck shell=bash
# shellcheck disable=SC2154 # scratch and version are the caller's
# Tests the image. podman builds it from a local Debian with the name that the Containerfile uses, as
# there may be no registry, and runs it as a cluster would: a user without a name, no writable path, no
# capability. Sourced by tests/package/run.

readonly IMAGE_BYTES=$((32 << 20)) # a ceiling, to notice what creeps in

# runc instead of crun, which refuses a machine with both kinds of cgroups; and limits that can be set
# without a capability.
readonly LIMITS=(--ulimit=nofile=1024:4096 --ulimit=nproc=4096:4096)

# A separate image store, which is deleted at the end.
engine() {
    podman --root "$scratch/store" --runroot "$scratch/store-run" --tmpdir "$scratch/store-tmp" \
        --runtime=runc --cgroup-manager=cgroupfs --events-backend=none "$@"
}

image_done() {
    [[ -d $scratch/store ]] || return 0
    engine rm --all --force --time 0 >/dev/null 2>&1
    engine image umount --all --force >/dev/null 2>&1
    umount "$scratch/store/overlay" 2>/dev/null
    true
}

base_image() {
    local tar name
    tar=$(fresh_tar) || return 1
    name=$(sed -n 's/^FROM --platform=[^ ]* \([^ ]*\) AS build$/\1/p' manifests/image/Containerfile)
    [[ -n $name ]] && engine import --quiet "$tar" "$name"
}

# BUILDER_OPTIONS: --isolation=chroot suffices for a build; and no search for a newer base image.
build_image() {
    engine build --pull=never --isolation=chroot --network=host --quiet \
        --file manifests/image/Containerfile --build-arg "VERSION=$version" --tag "cardpack:$version" .
}

build_node_image() { # the stages that both images have are there already
    engine build --pull=never --isolation=chroot --network=host --quiet --target cardpack-node \
        --file manifests/image/Containerfile --build-arg "VERSION=$version" --tag "cardpack-node:$version" .
}

# Root, as the DaemonSet starts it, without a capability; it ends at the missing name of its node.
node_image_runs() {
    local run=(engine run --rm --network=none "${LIMITS[@]}" --read-only --read-only-tmpfs=false --cap-drop=ALL
        --security-opt=no-new-privileges "cardpack-node:$version")
    same "cardpack-node $version" "${run[@]}" --version || return 1
    ! "${run[@]}" >"$scratch/log" 2>&1 && grep -F 'node-name' "$scratch/log"
}

only_the_node_program() {
    local mounted
    mounted=$(engine image mount "cardpack-node:$version") || return 1
    same "$mounted/usr/bin/cardpack-node" find "$mounted" -type f -perm /111 -not -name '*.so*' &&
        same '' find "$mounted" \( -perm /6000 -o -not -user root -o -type f -perm /022 \)
}

refuses_another_version() {
    ! scripts/image-root build/cardpack 9.9.9 "$scratch/9.9.9" >"$scratch/refused" 2>&1 &&
        grep -F 'VERSION is "9.9.9"' "$scratch/refused" && [[ ! -e $scratch/9.9.9 ]]
}

about() { engine image inspect --format "$1" "cardpack:$version"; }

small_enough() {
    local bytes
    bytes=$(about '{{.Size}}')
    echo "$bytes bytes"
    ((bytes > 0 && bytes < IMAGE_BYTES))
}

# The image has no shell and no package manager: one program, no set-uid file, no file owned by a user.
nothing_else_runs() {
    local mounted
    mounted=$(engine image mount "cardpack:$version") || return 1
    same "$mounted/usr/bin/cardpack" find "$mounted" -type f -perm /111 -not -name '*.so*' &&
        same '' find "$mounted" \( -perm /6000 -o -not -user root -o -type f -perm /022 \) &&
        grep -q 'BEGIN CERTIFICATE' "$mounted/etc/ssl/certs/ca-certificates.crt" &&
        grep -q '^Package: libcurl4$' "$mounted/var/lib/dpkg/status.d/libcurl4"
}

# Checked twice: by our own reader, and by SPDX's Python library, where there is a registry to get it from.
sbom_is_right() { # NAME
    local mounted
    mounted=$(engine image mount "$1") && /usr/bin/python3 tests/package/sbom_check "$mounted" "$version"
}

readonly SPDX_TOOLS=spdx-tools==0.8.3
spdx_tools() { # prints the program of that library
    local folder=${XDG_CACHE_HOME:-$HOME/.cache}/cardpack/$SPDX_TOOLS
    if [[ ! -x $folder/bin/pyspdxtools ]]; then
        rm -rf "$folder" && /usr/bin/python3 -m venv "$folder" >&2 || return 1
        "$folder/bin/pip" --quiet install "$SPDX_TOOLS" >&2 || return 1
    fi
    echo "$folder/bin/pyspdxtools"
}

sbom_is_valid() { # PROGRAM NAME
    local mounted
    mounted=$(engine image mount "$2") &&
        "$1" --infile "$mounted/usr/share/doc/cardpack/cardpack.spdx.json" --version SPDX-2.3
}

sbom() { # NAME; of the image
    local tool
    check 'its SBOM has all that is in it, and nothing else' sbom_is_right "$1"
    if tool=$(spdx_tools 2>/dev/null); then
        check 'the library of SPDX finds it valid' sbom_is_valid "$tool" "$1"
    else
        say "no $SPDX_TOOLS here: its check of the SBOM is left out"
    fi
}

start_container() { # NAME ARGUMENT...; as manifests/base/objects has it
    engine run --detach --name "$1" --network=host "${LIMITS[@]}" --read-only \
        --read-only-tmpfs=false --cap-drop=ALL --security-opt=no-new-privileges \
        --volume "$PWD/config/example-cluster.yaml:/cluster.yaml:ro" "cardpack:$version" "${@:2}"
}

container_port() { # NAME; prints the port that it took
    local try port
    for try in {1..600}; do
        port=$(engine logs "$1" 2>&1 | sed -n 's/.*"msg":"listening".*"port":\([0-9]*\).*/\1/p')
        [[ -z $port ]] || break
        ((try < 600)) && sleep 0.1
    done
    echo "$port"
    [[ -n $port ]]
}

is_unprivileged() { # NAME
    local status
    status=/proc/$(engine inspect --format '{{.State.Pid}}' "$1")/status
    grep -E '^(Uid|Cap|NoNew|Seccomp)' "$status"
    grep -q '^Uid:.65532.65532' "$status" && grep -q '^CapBnd:.*0000000000000000$' "$status" &&
        grep -q '^NoNewPrivs:.1$' "$status" && grep -q '^Seccomp:.2$' "$status"
}

ends_with_0() { # NAME
    engine kill --signal TERM "$1" && same 0 engine wait "$1" &&
        engine logs "$1" 2>&1 | grep -q '"msg":"stopped"'
}

log_of() { # NAME
    engine logs "$1" >"$scratch/log" 2>&1
    cat "$scratch/log"
    lacks '"msg":"running as root' "$scratch/log" && lacks 'not all that the process' "$scratch/log"
}

# Name resolution and TLS work: only the server is missing, not a library or a file.
looks_for_a_server() {
    cat >"$scratch/kubeconfig" <<'END'
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://localhost:9"}}]
users: [{name: u, user: {token: t}}]
END
    chmod 644 "$scratch/kubeconfig"
    engine run --detach --name seeker --network=host "${LIMITS[@]}" --read-only \
        --volume "$scratch/kubeconfig:/kubeconfig:ro" "cardpack:$version" --kubeconfig /kubeconfig --port 0
    local try
    for try in {1..600}; do
        engine logs seeker >"$scratch/log" 2>&1
        ! grep -qiE 'refused|could.?n.?t connect|failed to connect' "$scratch/log" || break
        ((try < 600)) && sleep 0.1
    done
    cat "$scratch/log"
    grep -qiE 'refused|could.?n.?t connect|failed to connect' "$scratch/log"
}

image() {
    local port=''
    check 'a base image is there' base_image
    check 'the image builds' build_image
    check 'not as a version that it is not' refuses_another_version
    check 'it is labelled with its version' same "$version" \
        about '{{index .Labels "org.opencontainers.image.version"}}'
    check 'its user is a number' same 65532:65532 about '{{.Config.User}}'
    check 'it is small' small_enough
    about '{{.Size}} bytes' | sed 's/^/    /'
    check 'there is nothing to run in it but cardpack' nothing_else_runs
    sbom "cardpack:$version"
    check 'it starts with nothing writable and no right' start_container served --cluster /cluster.yaml --port 0
    check 'it listens' container_port served
    port=$(container_port served)
    check 'it is a user without a name and confined' is_unprivileged served
    check 'filter, bind and inspect work' scripts/burst --url "http://127.0.0.1:$port"
    check 'it has nothing to complain about' log_of served
    check 'SIGTERM ends it with status 0' ends_with_0 served
    check 'it looks for an API server by name' looks_for_a_server
    check 'the image of cardpack-node builds' build_node_image
    check 'it starts as root without a capability' node_image_runs
    check 'there is nothing to run in it but cardpack-node' only_the_node_program
}
