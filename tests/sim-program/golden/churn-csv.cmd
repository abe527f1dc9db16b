churn --nodes trace/nodes.csv --pods trace/mixed.csv --load 1 --seeds 1 -o csv
