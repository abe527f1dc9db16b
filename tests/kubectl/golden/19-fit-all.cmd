explain
fit -f - --replicas 2 --color always
metadata: {name: p}
spec: {containers: [{name: c, resources: {limits: {aliyun.com/gpu-mem: 7}}}]}
