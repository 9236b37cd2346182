{{/* The name of everything that is in the namespace. */}}
{{- define "memgate.name" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 46 | trimSuffix "-" -}}
{{- else -}}
{{- default .Chart.Name .Values.nameOverride | trunc 46 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{/* The name of cluster-scoped objects, which differs between releases. */}}
{{- define "memgate.clusterName" -}}
{{- if .Values.clusterName -}}
{{- .Values.clusterName -}}
{{- else if or .Values.fullnameOverride (eq .Release.Namespace "memgate-system") -}}
{{- include "memgate.name" . -}}
{{- else -}}
{{- printf "%s-%s" (include "memgate.name" .) .Release.Namespace -}}
{{- end -}}
{{- end }}

{{/* The name of both webhook configurations. */}}
{{- define "memgate.configuration" -}}
{{- printf "%s%s" .Values.webhooks.namePrefix (include "memgate.clusterName" .) -}}
{{- end }}

{{- define "memgate.account" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "memgate.name" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name is needed where serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end }}

{{/* The account of audits. */}}
{{- define "memgate.auditAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (printf "%s-audit" (include "memgate.name" .)) .Values.audit.serviceAccountName -}}
{{- else -}}
{{- required "audit.serviceAccountName is needed where serviceAccount.create is false; or set audit.enabled to false" .Values.audit.serviceAccountName -}}
{{- end -}}
{{- end }}

{{/* The text of a file of the chart. Arguments: the root and its path. */}}
{{- define "memgate.file" -}}
{{- $path := index . 1 -}}
{{- required (printf "the chart is damaged: %s is missing or empty" $path) ((index . 0).Files.Get $path) -}}
{{- end }}

{{/* A number as Kubernetes and memgate read it: Helm reads large ones from a file as 8.388608e+06. */}}
{{- define "memgate.number" -}}
{{- if kindIs "float64" . -}}
{{- ternary (int64 .) . (eq (floor .) .) -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end }}

{{/* How many replicas there are. */}}
{{- define "memgate.replicas" -}}
{{- include "memgate.number" (ternary 3 .Values.replicaCount .Values.ha.enabled) -}}
{{- end }}

{{/* The selector of memgate's pods; it never changes. */}}
{{- define "memgate.selector" -}}
app.kubernetes.io/name: {{ include "memgate.name" . }}
{{- end }}

{{/*
The labels that are recommended for everything. Those of the object come first, then commonLabels, then the chart's.
Arguments: the root and a dict with the object's.
*/}}
{{- define "memgate.labelsWith" -}}
{{- $root := index . 0 -}}
{{- $version := $root.Chart.AppVersion | replace "+" "_" -}}
{{- $own := dict "app.kubernetes.io/instance" $root.Release.Name "app.kubernetes.io/version" $version "app.kubernetes.io/component" "admission-webhook" "app.kubernetes.io/part-of" "memgate" "app.kubernetes.io/managed-by" $root.Release.Service -}}
{{- merge (dict) (index . 1) $root.Values.commonLabels $own | toYaml -}}
{{- end }}

{{/* The same of an object, with the chart that it comes from. Arguments as there. */}}
{{- define "memgate.objectLabels" -}}
{{- $chart := printf "%s-%s" (index . 0).Chart.Name (index . 0).Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" -}}
{{- include "memgate.labelsWith" (list (index . 0) (merge (dict) (index . 1) (dict "helm.sh/chart" $chart))) -}}
{{- end }}

{{/*
An object of files/objects.json with the names of the release, as JSON. Arguments: the root and the object. The names in
rules of roles are those of every release, but for the Secret.
*/}}
{{- define "memgate.object" -}}
{{- $root := index . 0 -}}
{{- $rules := default list (index . 1).rules -}}
{{- $text := omit (index . 1) "rules" | toJson | replace "memgate-system" "NAMESPACE" -}}
{{- $text = regexReplaceAll `"memgate((?:-[a-z]+)*(?:[.]NAMESPACE[a-z.]*)?)"` $text (printf `"%s${1}"` (include "memgate.name" $root)) -}}
{{- $text = replace "NAMESPACE:memgate'" (printf "NAMESPACE:%s'" (include "memgate.account" $root)) $text -}}
{{- $object := $text | replace "NAMESPACE" $root.Release.Namespace | replace "INSTALLATION" (include "memgate.clusterName" $root) | fromJson -}}
{{- range default list $object.subjects -}}
{{- if eq .name (include "memgate.name" $root) -}}
{{- $_ := set . "name" (include "memgate.account" $root) -}}
{{- else if eq .name (printf "%s-audit" (include "memgate.name" $root)) -}}
{{- $_ := set . "name" (include "memgate.auditAccount" $root) -}}
{{- end -}}
{{- end -}}
{{- if $rules -}}
{{- $_ := set $object "rules" (dict "of" $rules | toJson | replace `"memgate-ca"` (include "memgate.caSecret" $root | quote) | fromJson).of -}}
{{- end -}}
{{- toJson $object -}}
{{- end }}

{{- define "memgate.labels" -}}
{{- include "memgate.labelsBeside" (list . dict) -}}
{{- end }}

{{/* The same with further labels of one object. Arguments: the root and these labels. */}}
{{- define "memgate.labelsBeside" -}}
{{- include "memgate.objectLabels" (list (index . 0) (merge (dict "app.kubernetes.io/name" (include "memgate.name" (index . 0))) (index . 1))) -}}
{{- end }}

{{/* The labels of memgate's pods: without the chart, whose version must not restart them. */}}
{{- define "memgate.podLabels" -}}
{{- $own := dict "app.kubernetes.io/name" (include "memgate.name" .) -}}
{{- include "memgate.labelsWith" (list . (merge (dict) $own .Values.podLabels)) -}}
{{- end }}

{{/* The labels of the objects of `helm test`; memgate's own selectors do not match its pod. */}}
{{- define "memgate.testLabels" -}}
{{- $own := dict "app.kubernetes.io/name" (printf "%s-test" (include "memgate.name" .)) "app.kubernetes.io/component" "test" -}}
{{- include "memgate.objectLabels" (list . $own) -}}
{{- end }}

{{- define "memgate.image" -}}
{{- $repository := required "image.repository is needed: no image of memgate is published. Without one its pods cannot start, and the apiserver refuses requests that need their answer. Build the image (docs/image.md), push it, and set image.repository" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end }}

{{- define "memgate.webhookPort" -}}
{{- $port := default (ternary .Values.hostNetwork.webhookPort 10250 .Values.hostNetwork.enabled) .Values.webhookPort -}}
{{- if eq (int $port) (int (include "memgate.healthPort" .)) -}}
{{- fail (printf "webhookPort %d is the port of probes and metrics: choose another one" (int $port)) -}}
{{- end -}}
{{- include "memgate.number" $port -}}
{{- end }}

{{- define "memgate.healthPort" -}}
{{- include "memgate.number" (ternary .Values.hostNetwork.healthPort 8081 .Values.hostNetwork.enabled) -}}
{{- end }}

{{/* The Secret with memgate's own CA. */}}
{{- define "memgate.caSecret" -}}
{{- default (printf "%s-ca" (include "memgate.name" .)) .Values.certs.secretName -}}
{{- end }}

{{/* The Secret with a certificate that memgate does not write. */}}
{{- define "memgate.tlsSecret" -}}
{{- default (printf "%s-tls" (include "memgate.name" .)) .Values.certs.secretName -}}
{{- end }}

{{/* The volumes of certificates, and where they are mounted. */}}
{{- define "memgate.mounted" -}}
mounts:
  {{- if ne .Values.certs.mode "builtin" }}
  - {name: tls, mountPath: /etc/memgate/tls, readOnly: true}
  {{- end }}
  {{- if .Values.mtls.enabled }}
  - {name: client-ca, mountPath: /etc/memgate/client-ca, readOnly: true}
  {{- end }}
volumes:
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
{{- end }}

{{/* The enabled families, each with its additions, as JSON. */}}
{{- define "memgate.families" -}}
{{- $all := include "memgate.file" (list . "files/families.json") | fromJson -}}
{{- $on := list -}}
{{- range $family := $all.families -}}
{{- if (index $.Values.families $family.name).enabled -}}
{{- $on = append $on $family -}}
{{- end -}}
{{- end -}}
{{- dict "families" $on | toJson -}}
{{- end }}

{{/* Every namespace but those of the control plane and memgate's own, as a list. */}}
{{- define "memgate.outsideTheSystem" -}}
- key: kubernetes.io/metadata.name
  operator: NotIn
  values: [kube-system, kube-public, kube-node-lease, {{ .Release.Namespace }}]
{{- end }}

{{/* Conditions from a file as YAML: those of pauses ask in the namespace of the release. Arguments: the root and a list. */}}
{{- define "memgate.conditions" -}}
{{- $own := printf "('%s'" (index . 0).Release.Namespace -}}
{{- $all := list -}}
{{- range index . 1 -}}
{{- $expression := replace "('memgate-system'" $own .expression -}}
{{- $all = append $all (set (deepCopy .) "expression" $expression) -}}
{{- end -}}
{{- toYaml $all -}}
{{- end }}

{{/*
One entry of a webhook configuration. Arguments: root, entry (from files/families.json or a template),
set (the values of its sort), path; mutating or not.
*/}}
{{- define "memgate.entry" -}}
{{- $namespaces := concat (default list .entry.namespaces) .set.namespaceSelector -}}
{{- $objects := concat (default list .entry.objects) .set.objectSelector -}}
{{- $conditions := concat (default list .entry.matchConditions) .set.extraMatchConditions -}}
- name: {{ .entry.name }}
  clientConfig:
    service:
      name: {{ include "memgate.name" .root }}
      namespace: {{ .root.Release.Namespace }}
      path: {{ ternary "/mutate" "/validate" .mutating }}
      {{- if ne (int .root.Values.service.port) 443 }}
      port: {{ include "memgate.number" .root.Values.service.port }}
      {{- end }}
  rules: {{- toYaml (default list .entry.rules) | nindent 4 }}
  {{- /* Server-side apply owns, and gives back, only what is written out. */}}
  namespaceSelector:
    matchExpressions: {{- toYaml (default list $namespaces) | nindent 6 }}
    matchLabels: {}
  objectSelector:
    matchExpressions: {{- toYaml (default list $objects) | nindent 6 }}
    matchLabels: {}
  matchConditions: {{- include "memgate.conditions" (list $.root $conditions) | nindent 4 }}
  failurePolicy: {{ default .entry.failurePolicy .set.failurePolicy }}
  timeoutSeconds: {{ include "memgate.number" (default .entry.timeoutSeconds .set.timeoutSeconds) }}
  matchPolicy: Equivalent
  {{- if .mutating }}
  reinvocationPolicy: {{ default "IfNeeded" .set.reinvocationPolicy }}
  {{- end }}
  sideEffects: None
  admissionReviewVersions: [v1]
{{- end }}

{{/*
An entry that is ignored while memgate is away; with policies.strict a second one for strict namespaces, where it is
not. Arguments as for memgate.entry.
*/}}
{{- define "memgate.openEntry" -}}
{{- if .root.Values.policies.strict -}}
{{- $strict := dict "key" "memgate.dev/policy" "operator" "In" "values" (list "strict") -}}
{{- $ordinary := set (deepCopy $strict) "operator" "NotIn" -}}
{{- $namespaces := default list .entry.namespaces -}}
{{- $closed := merge (dict "name" (printf "strict.%s" .entry.name) "namespaces" (append $namespaces $strict) "failurePolicy" "Fail" "timeoutSeconds" 5) .entry -}}
{{- include "memgate.entry" (dict "root" .root "entry" $closed "set" (omit .set "failurePolicy" "timeoutSeconds") "mutating" .mutating) }}
{{ include "memgate.entry" (dict "root" .root "entry" (merge (dict "namespaces" (append $namespaces $ordinary)) .entry) "set" .set "mutating" .mutating) }}
{{- else -}}
{{- include "memgate.entry" . }}
{{- end -}}
{{- end }}

{{/* The annotations of both webhook configurations. */}}
{{- define "memgate.configurationAnnotations" -}}
{{- $annotations := deepCopy .Values.webhooks.annotations -}}
{{- if .Values.gitops.enabled -}}
{{- $annotations = merge $annotations (dict "argocd.argoproj.io/sync-options" "ServerSideApply=true" "kustomize.toolkit.fluxcd.io/ssa" "Merge") -}}
{{- end -}}
{{- if or (eq .Values.certs.mode "cert-manager") (eq .Values.certs.mode "csi") -}}
{{- /* The CA that signs: cert-manager writes it into the Secret of what it has signed, too. */ -}}
{{- $name := ternary (printf "%s-ca" (include "memgate.name" .)) (include "memgate.name" .) (eq .Values.certs.mode "csi") -}}
{{- $from := .Values.certs.injectCaFrom -}}
{{- if or (not .Values.certs.issuerRef) (eq .Values.certs.mode "cert-manager") -}}
{{- $from = default (printf "%s/%s" .Release.Namespace $name) $from -}}
{{- end -}}
{{- $from = required "certs.injectCaFrom is needed where certs.mode is csi and certs.issuerRef is set: nothing else says which CA callers are to trust" $from -}}
{{- $_ := set $annotations "cert-manager.io/inject-ca-from" $from -}}
{{- end -}}
{{- with $annotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
