explain
explain --no-headers -f -
metadata: {name: p}
spec: {containers: [{name: c, resources: {limits: {aliyun.com/gpu-mem: 500}}}]}
