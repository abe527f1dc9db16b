explain
fit -f -
metadata: {labels: {aliyun.com/gpu-count: "2"}}
spec: {containers: [{name: c, resources: {limits: {aliyun.com/gpu-mem: 7}}}]}
