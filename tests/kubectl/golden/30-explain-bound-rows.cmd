explain
explain -n x t0 --no-headers
