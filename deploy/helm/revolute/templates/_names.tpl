{{- define "revolute.labels" -}}
app.kubernetes.io/name: revolute
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "revolute.store" -}}
{{ .Values.store | default (printf "redis://%s-redis:6379/0" .Release.Name) }}
{{- end }}
