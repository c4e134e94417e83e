{{- /* The rules that `moorage manifests` prints for the default plugins, by pack. */ -}}
{{- define "moorage.rules.base" }}
- apiGroups: [""]
  resources: [namespaces, nodes]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [pods/binding]
  verbs: [create]
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end }}
{{- define "moorage.rules.delegated-auth" }}
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end }}
{{- define "moorage.rules.preemption" }}
- apiGroups: [""]
  resources: [pods]
  verbs: [delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch]
{{- end }}
{{- define "moorage.rules.spread-defaults" }}
- apiGroups: [""]
  resources: [replicationcontrollers, services]
  verbs: [list, watch]
- apiGroups: [apps]
  resources: [replicasets, statefulsets]
  verbs: [list, watch]
{{- end }}
{{- define "moorage.rules.volumes" }}
- apiGroups: [""]
  resources: [persistentvolumeclaims, persistentvolumes]
  verbs: [list, watch, patch]
- apiGroups: [storage.k8s.io]
  resources: [csidrivers, csinodes, csistoragecapacities, storageclasses, volumeattachments]
  verbs: [list, watch]
{{- end }}
