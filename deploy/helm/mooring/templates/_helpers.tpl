{{- define "mooring.name" -}}
{{- default .Release.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "mooring.selector" -}}
app.kubernetes.io/name: mooring
app.kubernetes.io/instance: {{ include "mooring.name" . }}
{{- end -}}

{{- define "mooring.labels" -}}
{{ include "mooring.selector" . }}
app.kubernetes.io/component: scheduler
{{- end -}}

{{- define "mooring.image" -}}
{{- default (printf "mooring:%s" .Chart.AppVersion) .Values.image.reference -}}
{{- end -}}

{{- define "mooring.config" -}}
{{- if .Values.config -}}
{{ .Values.config }}
{{- else -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: {{ include "mooring.name" . }}
{{ end -}}
{{- end -}}

{{- define "mooring.subject" -}}
- kind: ServiceAccount
  name: {{ include "mooring.name" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{- define "mooring.lease" -}}
{{- default (include "mooring.name" .) .Values.leaderElection.resourceName -}}
{{- end -}}

{{- define "mooring.leaseNamespace" -}}
{{- default .Release.Namespace .Values.leaderElection.resourceNamespace -}}
{{- end -}}

{{- /* A cluster role and its binding. Takes the root as "root", the pack's name and its rules as text. */ -}}
{{- define "mooring.pack" -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ include "mooring.name" .root }}-{{ .pack }}
  labels:
    {{- include "mooring.labels" .root | nindent 4 }}
rules:
{{ .rules | trim }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ include "mooring.name" .root }}-{{ .pack }}
  labels:
    {{- include "mooring.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ include "mooring.name" .root }}-{{ .pack }}
subjects:
{{ include "mooring.subject" .root }}
{{ end -}}
