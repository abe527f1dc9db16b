{{- define "cardpack.subjects" }}
subjects:
- kind: ServiceAccount
  name: {{ include "cardpack.serviceAccount" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}

{{- define "cardpack.leaseRules" }}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create] # no name can be given to this one
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "cardpack.leaseName" . }}]
  verbs: [get, update]
{{- end }}

{{- define "cardpack.roleBinding" }}
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .name }}
  namespace: {{ .namespace }}
  labels:
    {{- include "cardpack.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ .role }}
{{- include "cardpack.subjects" .root }}
{{- end }}
