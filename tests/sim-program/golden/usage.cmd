replay --nodes trace/nodes.csv --pods trace/mixed.csv --load 0.9
