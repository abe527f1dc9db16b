fit --nodes trace/nodes.csv -f - -o json
{"kind": "Pod", "metadata": {"name": "large"}, "spec": {"containers": [{"name": "main", "resources": {"limits": {"aliyun.com/gpu-mem": 1001}}}]}}
