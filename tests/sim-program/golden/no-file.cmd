replay --nodes trace/none.csv --pods trace/mixed.csv
