explain
fit -f -
kind: List
items:
- {kind: Service, metadata: {name: s}}
- kind: Deployment
  metadata: {name: d}
  spec: {replicas: 2, template: {spec: {containers: [{name: c, resources: {limits: {aliyun.com/gpu-mem: 7}}}]}}}
