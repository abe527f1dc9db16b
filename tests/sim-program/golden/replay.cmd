replay --nodes trace/nodes.csv --pods trace/mixed.csv --pods trace/models.csv --policy binpack,spread,bestfit --seeds 5
