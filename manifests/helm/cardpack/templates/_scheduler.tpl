{{/* 1.22 to 1.24 read neither of the two that are tested. */}}
{{- define "cardpack.schedulerApi" -}}
{{- $release := include "cardpack.release" . -}}
{{- if semverCompare ">=1.25.0" $release -}}
kubescheduler.config.k8s.io/v1
{{- else if semverCompare "<1.22.0" $release -}}
kubescheduler.config.k8s.io/v1beta1
{{- else -}}
{{- fail (printf "mode: \"second-scheduler\": the chart has no KubeSchedulerConfiguration for Kubernetes %s (it has for 1.20, 1.21, and 1.25 and newer): set secondScheduler.configuration" $release) -}}
{{- end -}}
{{- end -}}

{{- define "cardpack.schedulerConfiguration" -}}
{{- if .Values.secondScheduler.configuration -}}
{{ .Values.secondScheduler.configuration }}
{{- else -}}
{{- $api := include "cardpack.schedulerApi" . -}}
{{- $old := hasSuffix "v1beta1" $api -}}
apiVersion: {{ $api }}
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  resourceNamespace: {{ .Release.Namespace }}
  resourceName: {{ include "cardpack.workload" . }}
profiles:
- schedulerName: {{ .Values.secondScheduler.schedulerName }}
{{- if $old }}
# In the clear for this pod alone; the default is every address.
healthzBindAddress: 127.0.0.1:10251
metricsBindAddress: 127.0.0.1:10251
{{- end }}
# Look at every node. The default stops once it has enough that fit, before it asks cardpack.
percentageOfNodesToScore: 100
extenders:
- urlPrefix: http://127.0.0.1:{{ .Values.ports.http }}/gpushare-scheduler
  filterVerb: filter
  prioritizeVerb: prioritize
  bindVerb: bind
{{- if not $old }}
  preemptVerb: preempt
{{- end }}
  weight: {{ .Values.secondScheduler.weight }}
  managedResources:
{{- range .Values.secondScheduler.managedResources }}
  - name: {{ . }}
    ignoredByScheduler: false
{{- end }}
  nodeCacheCapable: true
  ignorable: false
  httpTimeout: {{ .Values.secondScheduler.httpTimeout }}
{{- end -}}
{{- end -}}
