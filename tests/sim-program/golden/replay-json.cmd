replay --nodes trace/nodes.csv --pods trace/models.csv --policy bestfit --seeds 2 --fill 60 -o json
