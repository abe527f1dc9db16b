#!/usr/bin/env bash
# sim SIM: if a signal ends the simulation, its output still has the seed for a replay, which
# scripts/soak needs to continue with the next seed.
set -uo pipefail
readonly sim=$1
status=0
number=0

signals=(SEGV BUS ILL FPE ABRT)
echo "1..${#signals[@]}"
for signal in "${signals[@]}"; do
    number=$((number + 1))
    if out=$("$sim" --seeds 3..5 --crash "$(kill -l "$signal")" 2>&1); then
        echo "not ok $number - $signal ends the simulation"
        status=1
    elif [[ $(grep -c '^seed=' <<<"$out") != 1 ]] || ! grep -q '^seed=5 step=[0-9]*: ' <<<"$out"; then
        printf '%s\n' "$out" | tail -n 5 | sed 's/^/# /'
        echo "not ok $number - $signal prints the seed"
        status=1
    else
        echo "ok $number - $signal prints the seed"
    fi
done
exit "$status"
