explain
explain -n x first
