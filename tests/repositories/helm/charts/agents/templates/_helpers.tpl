{{- define "agents.labels" -}}
app.kubernetes.io/part-of: {{ .Chart.Name }}
{{- end }}
