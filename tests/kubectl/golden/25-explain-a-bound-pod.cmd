explain
explain -n x t0
