replay --cluster ../../config/example-cluster.yaml --policy binpack,spread --seeds 3
