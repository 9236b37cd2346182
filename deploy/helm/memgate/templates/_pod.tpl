{{/* The specification of memgate's pods. */}}
{{- define "memgate.pod" -}}
serviceAccountName: {{ include "memgate.account" . }}
automountServiceAccountToken: false
{{- /* 20 s more than the drain, so that no kubelet ends it halfway. */}}
terminationGracePeriodSeconds: {{ add 20 (ternary 100 .Values.timeouts.drain (kindIs "invalid" .Values.timeouts.drain)) }}
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
      {{- if include "memgate.settings" . }}
      - {name: settings, mountPath: /etc/memgate/settings, readOnly: true}
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
  {{- if include "memgate.settings" . }}
  - name: settings
    configMap: {name: {{ include "memgate.name" . }}-settings}
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

{{/* The keys of the settings file, for the values that are set, including zero; empty if there are none. */}}
{{- define "memgate.settings" -}}
{{- $keys := dict }}
{{- with .Values.policies.audit }}
{{- $_ := set $keys "auditRate" .rate }}
{{- $_ := set $keys "maxReports" .maxReports }}
{{- end }}
{{- with .Values.limits }}
{{- $_ := set $keys "maxBodyBytes" .bodyBytes }}
{{- $_ := set $keys "maxBytesInFlight" .inFlightBytes }}
{{- $_ := set $keys "maxConnections" .connections }}
{{- $_ := set $keys "maxRequests" .inFlight }}
{{- $_ := set $keys "queueWait" .queue }}
{{- end }}
{{- with .Values.timeouts }}
{{- $_ := set $keys "drain" .drain }}
{{- $_ := set $keys "timeoutBody" .body }}
{{- $_ := set $keys "timeoutHandshake" .handshake }}
{{- $_ := set $keys "timeoutHead" .header }}
{{- $_ := set $keys "timeoutIdle" .idle }}
{{- $_ := set $keys "timeoutWrite" .write }}
{{- end }}
{{- if eq .Values.certs.mode "builtin" }}
{{- with .Values.certs }}
{{- $_ := set $keys "caValidity" .caValidity }}
{{- $_ := set $keys "keyAlgorithm" .keyAlgorithm }}
{{- $_ := set $keys "leafValidity" .leafValidity }}
{{- $_ := set $keys "renewFraction" .renewFraction }}
{{- end }}
{{- end }}
{{- range $key, $value := $keys }}
{{- if not (or (kindIs "invalid" $value) (eq (toString $value) "")) }}
{{ $key }}: {{ include "memgate.number" $value }}
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
{{- range .Values.inject.ark.sidecars }}
- --ark-sidecar={{ . }}
{{- end }}
{{- range .Values.inject.orloj.jobNamespaces }}
- --orloj-job-namespace={{ . }}
{{- end }}
{{- range .Values.inject.orloj.sharedSecrets }}
- --orloj-shared-secret={{ . }}
{{- end }}
{{- range .Values.inject.orloj.sourceNamespaces }}
- --orloj-source-namespace={{ . }}
{{- end }}
{{- with .Values.inject.sympozium }}
{{- include "memgate.flags" (dict "sympozium-memory-mode" .memoryMode "sympozium-writer-tokens" .writerTokens) }}
{{- include "memgate.flags" (dict "sympozium-wait-image" .waitImage) }}
{{- include "memgate.flags" (dict "sympozium-memory-image" .memoryImage) }}
{{- include "memgate.flags" (dict "sympozium-wait" .wait) }}
{{- with .resources }}
- {{ printf "--sympozium-resources=%s" (toJson .) | quote }}
{{- end }}
{{- range .imagePullSecrets }}
- --sympozium-image-pull-secret={{ . }}
{{- end }}
{{- end }}
{{- include "memgate.flags" (dict "cluster-domain" .Values.policies.clusterDomain) }}
{{- range .Values.policies.excludeNamespaces }}
- --policy-exclude-namespace={{ . }}
{{- end }}
{{- if .Values.mtls.enabled }}
- --client-ca=/etc/memgate/client-ca/ca.crt
{{- range .Values.mtls.subjects }}
- --client-name={{ . }}
{{- end }}
{{- end }}
{{- if include "memgate.settings" . }}
{{- range .Values.extraArgs }}
{{- if hasPrefix "--config" . }}
{{- fail "extraArgs has --config, and limits, timeouts, certs or policies.audit have values of which the chart makes that file: move these values into your file" }}
{{- end }}
{{- end }}
- --config=/etc/memgate/settings/settings.yaml
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
{{- include "memgate.flags" (dict "reference-grace" .Values.referenceGrace) }}
{{- with .Values.policies.audit }}
{{- include "memgate.flags" (dict "audit-interval" .interval) }}
{{- end }}
{{- with .Values.limits }}
{{- include "memgate.flags" (dict "max-state" .stateBytes) }}
{{- end }}
{{- include "memgate.flags" (dict "log" .Values.log.level "log-format" .Values.log.format) }}
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}
