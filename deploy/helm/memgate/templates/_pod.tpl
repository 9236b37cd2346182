{{/* The command line of memgate. */}}

{{/* Flags by name, for the values that are set, including zero. */}}
{{- define "memgate.flags" -}}
{{- range $flag, $value := . }}
{{- if not (or (kindIs "invalid" $value) (eq (toString $value) "")) }}
- --{{ $flag }}={{ include "memgate.number" $value }}
{{- end }}
{{- end }}
{{- end }}

{{/* The command line of memgate, as a list, in the order of `memgate manifests`. */}}
{{- define "memgate.arguments" -}}
- serve
- --listen=[::]:{{ include "memgate.webhookPort" . }}
- --health=[::]:{{ include "memgate.healthPort" . }}
- --certs={{ ternary "files" .Values.certs.mode (eq .Values.certs.mode "csi") }}
{{- if not .Values.policies.enabled }}
- --no-policies
{{- end }}
{{- range (include "memgate.families" . | fromJson).families }}
- --family={{ .name }}
{{- end }}
{{- with .Values.settings }}
- {{ printf "--settings=%s" (toJson .) | quote }}
{{- end }}
{{- if .Values.mtls.enabled }}
- --client-ca=/etc/memgate/client-ca/ca.crt
{{- range .Values.mtls.subjects }}
- --client-name={{ . }}
{{- end }}
{{- end }}
{{- if .Values.policies.arkBrokers }}
- --ark-brokers
{{- end }}
{{- if ne .Values.certs.mode "builtin" }}
- --tls-cert=/etc/memgate/tls/tls.crt
- --tls-key=/etc/memgate/tls/tls.key
{{- end }}
{{- if not .Values.events.enabled }}
- --no-events
{{- end }}
{{- if ne (include "memgate.configuration" .) "memgate" }}
- --webhook-configuration={{ include "memgate.configuration" . }}
{{- end }}
{{- if ne (include "memgate.name" .) "memgate" }}
- --service={{ include "memgate.name" . }}
{{- end }}
{{- if eq .Values.certs.mode "builtin" }}
{{- if ne (include "memgate.caSecret" .) "memgate-ca" }}
- --ca-secret={{ include "memgate.caSecret" . }}
{{- end }}
{{- end }}
{{- include "memgate.flags" (dict "log" .Values.log.level "log-format" .Values.log.format) }}
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{/* The arguments of an audit beyond those of the base. */}}
{{- define "memgate.auditArguments" -}}
{{- range (include "memgate.families" . | fromJson).families }}
- --family={{ .name }}
{{- end }}
{{- with .Values.settings }}
- {{ printf "--settings=%s" (toJson .) | quote }}
{{- end }}
{{- if .Values.policies.arkBrokers }}
- --ark-brokers
{{- end }}
{{- end }}
