churn --nodes trace/nodes.csv --pods trace/mixed.csv --pods trace/models.csv --policy binpack,bestfit --load 0.9,1.1 --seeds 3
