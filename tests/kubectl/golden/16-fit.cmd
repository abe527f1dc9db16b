explain
fit -f - --replicas 40
metadata: {name: p}
spec: {containers: [{name: c, resources: {limits: {aliyun.com/gpu-mem: 7}}}]}
