replay --nodes trace/nodes.csv --pods trace/mixed.csv --pods trace/models.csv --policy binpack --seeds 2 --ties pod --check
