# shellcheck shell=bash
# shellcheck disable=SC2154 # scratch and version are the caller's
# The image and the plugin for arm64, from the one Containerfile: cross-compiled, and run under qemu's
# emulation of a process. Then the files for Krew, with this tree's plugin for amd64. Sourced by
# tests/package/run.

build_for() { # ARCHITECTURE OPTION...
    engine build --pull=never --isolation=chroot --network=host --quiet --platform "linux/$1" \
        --file manifests/image/Containerfile --build-arg "VERSION=$version" \
        --build-arg "BUILDPLATFORM=$(build_platform)" "${@:2}" .
}

under_qemu() { # PROGRAM ARGUMENT...; with the libraries of the image
    qemu-aarch64-static -L "$arm64_root" "$@"
}

# Serves the example cluster; sends the burst, and ends it.
serves_under_qemu() {
    local try port='' log=$scratch/arm64.log pid
    qemu-aarch64-static -L "$arm64_root" "$arm64_root/usr/bin/cardpack" --port 0 \
        --cluster config/example-cluster.yaml --log-format json 2>"$log" & # not a function: $! is qemu
    pid=$!
    for try in {1..600}; do
        port=$(sed -n 's/.*"msg":"listening".*"port":\([0-9]*\).*/\1/p' "$log")
        [[ -z $port ]] || break
        ((try < 600)) && sleep 0.1
    done
    [[ -n $port ]] && scripts/burst --url "http://127.0.0.1:$port" | tail -n 1 | tee "$scratch/burst"
    kill -TERM "$pid" || return 1
    wait "$pid" || return 1
    cat "$log"
    grep -q '^40 of 40 pods are bound$' "$scratch/burst" && grep -q '"msg":"stopped"' "$log"
}

plugin_builds() {
    build_for arm64 --target kubectl-cardpack --output "type=local,dest=$scratch/plugin"
}

krew_files() { # FOLDER
    scripts/krew "$1" https://cardpack.invalid https://cardpack.invalid/releases \
        build/kubectl-cardpack "$scratch/plugin/kubectl-cardpack"
}

krew_refuses() { # the programs in the wrong order
    local rc=0
    scripts/krew "$scratch/krew-exchanged" https://cardpack.invalid https://cardpack.invalid/releases \
        "$scratch/plugin/kubectl-cardpack" build/kubectl-cardpack 2>&1 | tee "$scratch/out.krew" || rc=$?
    ((rc != 0)) && grep -qF 'is not for amd64' "$scratch/out.krew" && [[ ! -e $scratch/krew-exchanged/cardpack.yaml ]]
}

same_archives() { # FOLDER FOLDER
    local file n=0
    for file in "$1"/*.tar.gz "$1"/cardpack.yaml; do
        cmp "$file" "$2/$(basename "$file")" || return 1
        n=$((n + 1))
    done
    ((n == 3))
}

arm64() {
    local image=cardpack:$version-arm64
    check 'a base image is there' base_image
    check 'the image for arm64 builds' build_for arm64 --tag "$image"
    check 'it is labelled so' same arm64 engine image inspect --format '{{.Architecture}}' "$image"
    sbom "$image"
    arm64_root=$(engine image mount "$image")
    check 'its program runs' same "cardpack $version" under_qemu "$arm64_root/usr/bin/cardpack" --version
    check 'filter, bind and inspect work' serves_under_qemu
    check 'the plugin builds' plugin_builds
    check 'it runs, too' under_qemu "$scratch/plugin/kubectl-cardpack" help
    check 'the files for Krew are made' krew_files "$scratch/krew"
    check 'not with the programs exchanged' krew_refuses
    check 'the manifest is right, and the archives are those that it names' \
        /usr/bin/python3 tests/package/krew_manifest "$scratch/krew" "$version" https://cardpack.invalid/releases
    check 'the plugin of the archive runs' "$scratch/krew/amd64/kubectl-cardpack" help
    krew_files "$scratch/krew-again" >/dev/null
    check 'made again, they have the same bytes' same_archives "$scratch/krew" "$scratch/krew-again"
}
