{{- define "cardpack.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The Deployment or DaemonSet that the mode has, and what its app.kubernetes.io/name is. */}}
{{- define "cardpack.workload" -}}
{{ include "cardpack.fullname" . }}{{ if eq .Values.mode "second-scheduler" }}-scheduler{{ end }}
{{- end -}}
{{- define "cardpack.app" -}}
{{ default .Chart.Name .Values.nameOverride }}{{ if eq .Values.mode "second-scheduler" }}-scheduler{{ end }}
{{- end -}}

{{- define "cardpack.selector" -}}
app.kubernetes.io/name: {{ include "cardpack.app" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "cardpack.labels" -}}
{{ include "cardpack.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "cardpack.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "cardpack.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{ required "serviceAccount.name is wanted where serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end -}}
{{- end -}}

{{/* REPOSITORY@DIGEST or REPOSITORY:TAG, of a dict with image and tag, the default. */}}
{{- define "cardpack.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ default .tag .image.tag }}
{{- end -}}
{{- end -}}

{{/* v1.29.3 of v1.29.3-gke.1282000: what upstream calls it. */}}
{{- define "cardpack.release" -}}
{{- $v := semver .Capabilities.KubeVersion.Version -}}
{{ printf "v%d.%d.%d" $v.Major $v.Minor $v.Patch }}
{{- end -}}

{{- define "cardpack.replicas" -}}
{{- if and .Values.highAvailability.enabled (eq .Values.mode "service") -}}
{{ .Values.highAvailability.replicas }}
{{- else -}}
{{ .Values.replicas }}
{{- end -}}
{{- end -}}

{{/* A setting of cardpack as it will be in force: the last of extraArgs, config, or the default. */}}
{{- define "cardpack.setting" -}}
{{- $value := dig .name .default .root.Values.config -}}
{{- $flag := printf "--%s=" .name -}}
{{- range .root.Values.extraArgs }}
{{- if hasPrefix $flag . }}{{ $value = trimPrefix $flag . }}{{ end -}}
{{- end -}}
{{ $value }}
{{- end -}}

{{/* 90000 of 1m30s. */}}
{{- define "cardpack.milliseconds" -}}
{{- $units := dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000 -}}
{{- $sum := 0 -}}
{{- range regexFindAll "[0-9]+(ms|s|m|h)" . -1 -}}
{{- $sum = add $sum (mul (regexFind "^[0-9]+" .) (get $units (regexFind "[a-z]+$" .))) -}}
{{- end -}}
{{ $sum }}
{{- end -}}

{{- define "cardpack.leaseName" -}}
{{ dig "leader-elect-resource-name" "cardpack" .Values.config }}
{{- end -}}
{{- define "cardpack.leaseNamespace" -}}
{{- $set := dig "leader-elect-resource-namespace" "" .Values.config -}}
{{ default .Release.Namespace $set }}
{{- end -}}

{{/* Whether the API server checks requests: auto means where it can, which is 1.30 and newer. */}}
{{- define "cardpack.admission" -}}
{{- if eq (toString .Values.admission.enabled) "auto" -}}
{{- if .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy" }}yes{{ end -}}
{{- else if .Values.admission.enabled }}yes{{ end -}}
{{- end -}}

{{/* Whether there is a port for probes and metrics: not on the host's network, unless it is asked for. */}}
{{- define "cardpack.probePort" -}}
{{- if or (ne .Values.mode "beside-scheduler") .Values.metrics.annotations .Values.metrics.podMonitor.enabled }}yes{{ end -}}
{{- end -}}

{{- define "cardpack.args" -}}
{{- if eq .Values.mode "service" }}
- --listen-address=0.0.0.0
{{- else }}
- --listen-address=127.0.0.1
{{- end }}
- --port={{ .Values.ports.http }}
{{- if and (eq .Values.mode "service") (not .Values.tls.enabled) }}
- --allow-plain-http=true
{{- end }}
{{- if include "cardpack.probePort" . }}
- --probe-address=0.0.0.0
- --probe-port={{ .Values.ports.probes }}
{{- end }}
{{- if .Values.tls.enabled }}
- --tls-cert-file=/etc/cardpack/tls/tls.crt
- --tls-key-file=/etc/cardpack/tls/tls.key
- --client-ca-file=/etc/cardpack/client-ca/ca.crt
{{- with .Values.tls.clientNames }}
- --client-names={{ join "," . }}
{{- end }}
{{- end }}
{{- if .Values.evictForCards.enabled }}
- --evict-for-cards=true
{{- end }}
{{- if .Values.config }}
- --config=/etc/cardpack/settings/cardpack.yaml
{{- end }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "cardpack.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* Whom a probe asks: the port for probes, or the loopback that is the host's. */}}
{{- define "cardpack.probe" -}}
{{- if eq .root.Values.mode "beside-scheduler" -}}
httpGet: {host: 127.0.0.1, path: {{ .path }}, port: {{ .root.Values.ports.http }}}
{{- else -}}
httpGet: {path: {{ .path }}, port: probes}
{{- end }}
{{- with .more }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "cardpack.container" -}}
name: cardpack
image: {{ include "cardpack.image" (dict "image" .Values.image "tag" .Chart.AppVersion) }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args:
{{- include "cardpack.args" . }}
{{- $service := eq .Values.mode "service" }}
{{- if or $service .Values.extraEnv }}
env:
{{- if $service }}
- {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
- {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
- {name: POD_UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}
ports:
{{- if eq .Values.mode "service" }}
- {name: http, containerPort: {{ .Values.ports.http }}}
{{- else if eq .Values.mode "beside-scheduler" }}
- {name: http, containerPort: {{ .Values.ports.http }}, hostPort: {{ .Values.ports.http }}, hostIP: 127.0.0.1}
{{- end }}
{{- if include "cardpack.probePort" . }}
- {name: probes, containerPort: {{ .Values.ports.probes }}}
{{- end }}
readinessProbe:
  {{- include "cardpack.probe" (dict "root" . "path" "/readyz" "more" .Values.readinessProbe) | nindent 2 }}
livenessProbe:
  {{- include "cardpack.probe" (dict "root" . "path" "/livez" "more" .Values.livenessProbe) | nindent 2 }}
{{- with .Values.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- include "cardpack.containerSecurity" . | nindent 2 }}
{{- if or .Values.config .Values.tls.enabled .Values.extraVolumeMounts }}
volumeMounts:
{{- if .Values.tls.enabled }}
- {name: tls, mountPath: /etc/cardpack/tls, readOnly: true}
- {name: client-ca, mountPath: /etc/cardpack/client-ca, readOnly: true}
{{- end }}
{{- if .Values.config }}
- {name: settings, mountPath: /etc/cardpack/settings, readOnly: true}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "cardpack.schedulerContainer" -}}
{{- $image := .Values.secondScheduler.image -}}
name: kube-scheduler
image: {{ include "cardpack.image" (dict "image" $image "tag" (include "cardpack.release" .)) }}
imagePullPolicy: {{ $image.pullPolicy }}
command:
- kube-scheduler
- --config=/etc/kube-scheduler/kube-scheduler.yaml
- --bind-address=0.0.0.0
- --secure-port=10259
ports:
- {name: healthz, containerPort: 10259}
readinessProbe:
  httpGet: {path: /healthz, port: healthz, scheme: HTTPS}
  periodSeconds: 5
livenessProbe:
  httpGet: {path: /healthz, port: healthz, scheme: HTTPS}
  initialDelaySeconds: 15
{{- with .Values.secondScheduler.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- include "cardpack.containerSecurity" . | nindent 2 }}
volumeMounts:
- {name: scheduler, mountPath: /etc/kube-scheduler, readOnly: true}
{{- end -}}

{{- define "cardpack.volumes" -}}
{{- if .Values.tls.enabled }}
- name: tls
  secret: {secretName: {{ .Values.tls.secretName }}, defaultMode: 0440}
- name: client-ca
  configMap: {name: {{ .Values.tls.clientCAConfigMap }}}
{{- end }}
{{- if .Values.config }}
- name: settings
  configMap: {name: {{ include "cardpack.fullname" . }}-settings}
{{- end }}
{{- if eq .Values.mode "second-scheduler" }}
- name: scheduler
  configMap: {name: {{ include "cardpack.workload" . }}-config}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "cardpack.antiAffinityTerm" -}}
topologyKey: kubernetes.io/hostname
labelSelector:
  matchLabels:
    {{- include "cardpack.selector" . | nindent 4 }}
{{- end -}}
