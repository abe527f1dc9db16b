explain
explain nobody
