churn --nodes trace/nodes.csv --pods trace/mixed.csv --load 1 --seeds 2 -o json
