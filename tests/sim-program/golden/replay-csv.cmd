replay --nodes trace/nodes.csv --pods trace/mixed.csv --policy spread,binpack --seeds 2 --fill 40 -o csv
