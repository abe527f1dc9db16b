{{/* The pod of every mode. */}}
{{- define "cardpack.podTemplate" -}}
metadata:
  labels:
    {{- include "cardpack.selector" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- if or .Values.podAnnotations .Values.config .Values.metrics.annotations (eq .Values.mode "second-scheduler") }}
  annotations:
    {{- if .Values.config }}
    checksum/settings: {{ toYaml .Values.config | sha256sum }}
    {{- end }}
    {{- if eq .Values.mode "second-scheduler" }}
    checksum/scheduler: {{ include "cardpack.schedulerConfiguration" . | sha256sum }}
    {{- end }}
    {{- if .Values.metrics.annotations }}
    prometheus.io/scrape: "true"
    prometheus.io/port: {{ .Values.ports.probes | quote }}
    prometheus.io/path: /metrics
    {{- end }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
spec:
  serviceAccountName: {{ include "cardpack.serviceAccount" . }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
  {{- end }}
  {{- $class := eq .Values.mode "beside-scheduler" | ternary "system-node-critical" "system-cluster-critical" }}
  priorityClassName: {{ default $class .Values.priorityClassName }}
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- if eq .Values.mode "beside-scheduler" }}
  hostNetwork: true
  {{- end }}
  nodeSelector:
    kubernetes.io/os: linux
    {{- if eq .Values.mode "beside-scheduler" }}
    node-role.kubernetes.io/control-plane: ""
    {{- end }}
    {{- with .Values.nodeSelector }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- include "cardpack.placement" . | nindent 2 }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    {{- if .Values.tls.enabled }}
    fsGroup: 65532
    {{- end }}
    seccompProfile:
      {{- toYaml .Values.seccompProfile | nindent 6 }}
  containers:
  - {{ include "cardpack.container" . | nindent 4 | trim }}
  {{- if eq .Values.mode "second-scheduler" }}
  - {{ include "cardpack.schedulerContainer" . | nindent 4 | trim }}
  {{- end }}
  {{- with include "cardpack.volumes" . | trim }}
  volumes:
    {{- . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* Tolerations, affinity and spreading: the values', or what the mode has. */}}
{{- define "cardpack.placement" -}}
{{- if .Values.tolerations }}
tolerations:
{{ toYaml .Values.tolerations }}
{{- else if eq .Values.mode "beside-scheduler" }}
tolerations:
- {operator: Exists}
{{- else if eq .Values.mode "service" }}
tolerations:
- {key: node-role.kubernetes.io/control-plane, operator: Exists, effect: NoSchedule}
- {key: node-role.kubernetes.io/master, operator: Exists, effect: NoSchedule}
{{- end }}
{{- if .Values.affinity }}
affinity:
  {{- toYaml .Values.affinity | nindent 2 }}
{{- else if ne .Values.mode "beside-scheduler" }}
affinity:
  {{- if eq .Values.mode "service" }}
  nodeAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      preference:
        matchExpressions:
        - {key: node-role.kubernetes.io/control-plane, operator: Exists}
  {{- end }}
  podAntiAffinity:
    {{- if and .Values.highAvailability.enabled (eq .Values.mode "service") }}
    requiredDuringSchedulingIgnoredDuringExecution:
    - {{ include "cardpack.antiAffinityTerm" . | nindent 6 | trim }}
    {{- else }}
    preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        {{- include "cardpack.antiAffinityTerm" . | nindent 8 }}
    {{- end }}
{{- end }}
{{- if .Values.topologySpreadConstraints }}
topologySpreadConstraints:
{{ toYaml .Values.topologySpreadConstraints }}
{{- else if or (eq .Values.mode "second-scheduler") (and .Values.highAvailability.enabled (eq .Values.mode "service")) }}
topologySpreadConstraints:
- maxSkew: 1
  topologyKey: topology.kubernetes.io/zone
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "cardpack.selector" . | nindent 6 }}
{{- end }}
{{- end -}}
