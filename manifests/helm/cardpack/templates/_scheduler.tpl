{{/* v1beta1 is read up to 1.22, v1beta3 from 1.23 to 1.28, v1 since 1.25. */}}
{{- define "cardpack.schedulerApi" -}}
{{- $release := include "cardpack.release" . -}}
{{- if semverCompare ">=1.25.0" $release -}}
kubescheduler.config.k8s.io/v1
{{- else if semverCompare ">=1.23.0" $release -}}
kubescheduler.config.k8s.io/v1beta3
{{- else -}}
kubescheduler.config.k8s.io/v1beta1
{{- end -}}
{{- end -}}

{{- define "cardpack.schedulerConfiguration" -}}
{{- if .Values.secondScheduler.configuration -}}
{{ .Values.secondScheduler.configuration }}
{{- else -}}
{{- $api := include "cardpack.schedulerApi" . -}}
apiVersion: {{ $api }}
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  resourceNamespace: {{ .Release.Namespace }}
  resourceName: {{ include "cardpack.workload" . }}
profiles:
- schedulerName: {{ .Values.secondScheduler.schedulerName }}
{{- if hasSuffix "v1beta1" $api }}
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
  preemptVerb: preempt
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
