{{- define "moorage.name" -}}
{{- default .Release.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "moorage.selector" -}}
app.kubernetes.io/name: moorage
app.kubernetes.io/instance: {{ include "moorage.name" . }}
{{- end -}}

{{- define "moorage.labels" -}}
{{ include "moorage.selector" . }}
app.kubernetes.io/component: scheduler
{{- end -}}

{{- define "moorage.image" -}}
{{- default (printf "moorage:%s" .Chart.AppVersion) .Values.image.reference -}}
{{- end -}}

{{- define "moorage.config" -}}
{{- if .Values.config -}}
{{ .Values.config }}
{{- else -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: {{ include "moorage.name" . }}
{{ end -}}
{{- end -}}

{{- define "moorage.subject" -}}
- kind: ServiceAccount
  name: {{ include "moorage.name" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{- define "moorage.lease" -}}
{{- default (include "moorage.name" .) .Values.leaderElection.resourceName -}}
{{- end -}}

{{- define "moorage.leaseNamespace" -}}
{{- default .Release.Namespace .Values.leaderElection.resourceNamespace -}}
{{- end -}}

{{- /* A ClusterRole and its binding. Arguments: the root context as "root", the name of the pack as "pack", and
its rules as text in "rules". */ -}}
{{- define "moorage.pack" -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ include "moorage.name" .root }}-{{ .pack }}
  labels:
    {{- include "moorage.labels" .root | nindent 4 }}
rules:
{{ .rules | trim }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ include "moorage.name" .root }}-{{ .pack }}
  labels:
    {{- include "moorage.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ include "moorage.name" .root }}-{{ .pack }}
subjects:
{{ include "moorage.subject" .root }}
{{ end -}}
