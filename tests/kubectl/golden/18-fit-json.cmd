explain
fit -f - --replicas 2 -o json
metadata: {name: p}
spec: {containers: [{name: c, resources: {limits: {aliyun.com/gpu-mem: 7}}}]}
