{{/* The specification of memgate's pods. */}}
{{- define "memgate.pod" -}}
serviceAccountName: {{ include "memgate.account" . }}
automountServiceAccountToken: false
{{- /* 20 s more than the drain, so that no kubelet ends it halfway. */}}
terminationGracePeriodSeconds: {{ add 20 (ternary .Values.settings.drain 100 (hasKey .Values.settings "drain")) }}
{{- with .Values.podSecurityContext }}
securityContext: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .Values.hostNetwork.enabled }}
hostNetwork: true
{{- end }}
{{- with default (ternary "ClusterFirstWithHostNet" "" .Values.hostNetwork.enabled) .Values.dnsPolicy }}
dnsPolicy: {{ . }}
{{- end }}
{{- if kindIs "invalid" .Values.affinity }}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels: {{- include "memgate.selector" . | nindent 14 }}
{{- else }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- if kindIs "invalid" .Values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - topologyKey: {{ . }}
    maxSkew: 1
    whenUnsatisfiable: {{ ternary "DoNotSchedule" "ScheduleAnyway" (and $.Values.ha.enabled (hasSuffix "zone" .)) }}
    labelSelector:
      matchLabels: {{- include "memgate.selector" $ | nindent 8 }}
  {{- end }}
{{- else }}
{{- with .Values.topologySpreadConstraints }}
topologySpreadConstraints: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
containers:
  - name: memgate
    image: {{ include "memgate.image" . }}
    {{- with .Values.image.pullPolicy }}
    imagePullPolicy: {{ . }}
    {{- end }}
    args: {{- include "memgate.arguments" . | nindent 6 }}
    {{- with .Values.extraEnv }}
    env: {{- toYaml . | nindent 6 }}
    {{- end }}
    ports:
      - {name: webhook, containerPort: {{ include "memgate.webhookPort" . }}}
      - {name: health, containerPort: {{ include "memgate.healthPort" . }}}
    startupProbe:
      httpGet: {path: /livez, port: health}
      periodSeconds: 1
      failureThreshold: 60
    livenessProbe:
      httpGet: {path: /livez, port: health}
      timeoutSeconds: 5
    readinessProbe:
      httpGet: {path: /readyz, port: health}
      periodSeconds: 5
    resources: {{- toYaml .Values.resources | nindent 6 }}
    {{- with .Values.securityContext }}
    securityContext: {{- toYaml . | nindent 6 }}
    {{- end }}
    volumeMounts:
      - {name: account, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
      {{- if ne .Values.certs.mode "builtin" }}
      - {name: tls, mountPath: /etc/memgate/tls, readOnly: true}
      {{- end }}
      {{- if .Values.mtls.enabled }}
      - {name: client-ca, mountPath: /etc/memgate/client-ca, readOnly: true}
      {{- end }}
      {{- with .Values.extraVolumeMounts }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
volumes:
  - name: account
    projected:
      sources:
        - serviceAccountToken: {path: token, expirationSeconds: 3600}
        - configMap:
            name: kube-root-ca.crt
            items: [{key: ca.crt, path: ca.crt}]
        - downwardAPI:
            items: [{path: namespace, fieldRef: {fieldPath: metadata.namespace}}]
  {{- if eq .Values.certs.mode "csi" }}
  - name: tls
    csi:
      driver: csi.cert-manager.io
      readOnly: true
      volumeAttributes:
        csi.cert-manager.io/issuer-name: {{ default (printf "%s-ca" (include "memgate.name" .)) .Values.certs.issuerRef.name }}
        {{- with .Values.certs.issuerRef.kind }}
        csi.cert-manager.io/issuer-kind: {{ . }}
        {{- end }}
        {{- with .Values.certs.issuerRef.group }}
        csi.cert-manager.io/issuer-group: {{ . }}
        {{- end }}
        csi.cert-manager.io/dns-names: {{ include "memgate.name" . }}.{{ .Release.Namespace }}.svc
        csi.cert-manager.io/key-algorithm: ECDSA
        csi.cert-manager.io/key-size: "256"
        csi.cert-manager.io/key-usages: digital signature,server auth
        csi.cert-manager.io/fs-group: "65532"
  {{- else if ne .Values.certs.mode "builtin" }}
  - name: tls
    secret: {secretName: {{ include "memgate.tlsSecret" . }}}
  {{- end }}
  {{- if .Values.mtls.enabled }}
  - name: client-ca
    configMap: {name: {{ .Values.mtls.clientCA }}}
  {{- end }}
  {{- with .Values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

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
{{- with .Values.policies.audit }}
{{- include "memgate.flags" (dict "audit-interval" .interval) }}
{{- end }}
{{- include "memgate.flags" (dict "log" .Values.log.level "log-format" .Values.log.format) }}
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}
