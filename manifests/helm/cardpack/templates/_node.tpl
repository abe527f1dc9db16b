{{/* cardpack-node: its names, labels and flags. */}}
{{- define "cardpack.nodeName" -}}
{{ include "cardpack.fullname" . }}-node
{{- end -}}

{{/* Whether the API server holds cardpack-node to its own node: its tokens name the node since 1.32. */}}
{{- define "cardpack.ownNode" -}}
{{- if not .Values.node.enabled }}
{{- else if eq (toString .Values.node.ownNode) "auto" -}}
{{- if and (semverCompare ">=1.32.0-0" .Capabilities.KubeVersion.Version) (.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy") }}yes{{ end -}}
{{- else if .Values.node.ownNode }}yes{{ end -}}
{{- end -}}

{{- define "cardpack.nodeSelector" -}}
app.kubernetes.io/name: cardpack-node
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "cardpack.nodeLabels" -}}
{{ include "cardpack.nodeSelector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* YAML 1.1 reads on and off as booleans. */}}
{{- define "cardpack.nodeArgs" -}}
{{- range $flag, $value := .Values.node.config }}
- {{ printf "--%s=%s" $flag (kindIs "bool" $value | ternary (ternary "on" "off" (eq (toString $value) "true")) (toString $value)) | quote }}
{{- end }}
{{- if or (ne .Values.node.address "127.0.0.1") (ne (int .Values.node.port) 9410) }}
- --listen={{ .Values.node.address }}:{{ .Values.node.port }}
{{- end }}
{{- end -}}
