explain
fit -f - --replicas 40 -o wide
metadata: {name: p}
spec: {containers: [{name: c, resources: {limits: {aliyun.com/gpu-mem: 7}}}]}
