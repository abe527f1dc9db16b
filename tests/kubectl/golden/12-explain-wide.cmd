explain
explain -n x first -o wide
