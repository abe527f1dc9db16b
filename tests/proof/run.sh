#!/bin/sh
# gpu-proof: see `gpu-proof --help`. Needs nothing of the machine but its kernel and NVIDIA's driver: the
# programs of this folder run with the loader and the libraries of this folder.
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd) || exit 2
unset PYTHONPATH LD_PRELOAD
PYTHONHOME="$here/python" exec "$here/lib/ld-linux-x86-64.so.2" \
    --library-path "$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$here/bin/python3" -s -B "$here/py/main.py" "$here" "$@"
