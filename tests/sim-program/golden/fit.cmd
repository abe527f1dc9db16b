fit --cluster ../../config/example-cluster.yaml -f -
kind: Pod
metadata: {name: notebook, namespace: team-a}
spec:
  containers:
  - name: main
    resources:
      requests: {cpu: 6}
      limits: {aliyun.com/gpu-mem: 8}
