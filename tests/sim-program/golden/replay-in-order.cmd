replay --nodes trace/nodes.csv --pods trace/models.csv --policy binpack,spread --in-order --ties name
