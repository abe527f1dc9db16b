explain
explain -f - -o wide
metadata: {name: p}
spec: {nodeName: nowhere, containers: [{name: c, resources: {limits: {aliyun.com/gpu-mem: 7}}}]}
status: {phase: Running, conditions: [{type: PodScheduled, status: "True", lastTransitionTime: "2026-11-22T05:40:00Z"}]}
