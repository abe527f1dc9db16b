grow --cluster - --add cards=1,card-memory=8 -o csv
kind: List
items:
- kind: Node
  metadata: {name: full}
  status:
    capacity: {aliyun.com/gpu-mem: 16, aliyun.com/gpu-count: 1}
    allocatable: {aliyun.com/gpu-mem: 16}
- kind: Pod
  metadata: {name: there, namespace: a, annotations: {ALIYUN_COM_GPU_MEM_IDX: "0"}}
  spec: {nodeName: full, containers: [{name: main, resources: {limits: {aliyun.com/gpu-mem: 12}}}]}
- kind: Pod
  metadata: {name: first, namespace: a}
  spec: {containers: [{name: main, resources: {requests: {cpu: 10}, limits: {aliyun.com/gpu-mem: 12}}}]}
- kind: Pod
  metadata: {name: second, namespace: a}
  spec: {containers: [{name: main, resources: {requests: {cpu: 10}, limits: {aliyun.com/gpu-mem: 12}}}]}
- kind: Pod
  metadata: {name: third, namespace: a}
  spec: {containers: [{name: main, resources: {limits: {aliyun.com/gpu-mem: 4}}}]}
- kind: Pod
  metadata: {name: wrong, namespace: a}
  spec: {containers: [{name: main, resources: {limits: {aliyun.com/gpu-mem: 4.5}}}]}
