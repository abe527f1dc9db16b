explain
explain -n x first -o yaml
