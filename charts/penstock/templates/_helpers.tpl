{{/* Labels of an object: include "penstock.labels" (dict "root" $ "name" "penstockd") */}}
{{- define "penstock.labels" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/part-of: penstock
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "penstock.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* apiVersion of PodDisruptionBudgets: v1 since Kubernetes 1.21. */}}
{{- define "penstock.policyVersion" -}}
{{ if semverCompare "<1.21-0" .Capabilities.KubeVersion.Version }}policy/v1beta1{{ else }}policy/v1{{ end }}
{{- end }}

{{/* Options of penstock-sync that both modes have. */}}
{{- define "penstock.syncArgs" -}}
- --in-cluster=on
{{- with .Values.sync.allowedExternalCidrs }}
- --allowed-external-cidrs={{ join "," . }}
{{- end }}
{{- if .Values.sync.allocateAddresses }}
- --allocate-addresses=on
{{- end }}
{{- with .Values.sync.addressPoolsExclude }}
- --address-pools-exclude={{ join "," . }}
{{- end }}
{{- if .Values.sync.externalIpPolicy }}
- --external-ip-policy=/etc/penstock-sync/external-ips.yaml
{{- end }}
- --log-format=json
{{- range .Values.sync.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{/* Probes of penstock-sync; the argument is the port. */}}
{{- define "penstock.syncProbes" -}}
# Fails if a thread of the source or of a gateway makes no progress. An unreachable API server or gateway is no reason for a restart.
livenessProbe:
  httpGet:
    path: /healthz
    port: {{ . }}
  periodSeconds: 20
  timeoutSeconds: 5
  failureThreshold: 3
# Ready: each collection was listed, and a gateway has applied a state or another process leads.
readinessProbe:
  httpGet:
    path: /readyz
    port: {{ . }}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end }}

{{/* Resources of penstock-sync. Requests equal limits, so that the Pod of a gateway is Guaranteed: only then its CPUs are exclusive. */}}
{{- define "penstock.syncResources" -}}
resources:
  requests:
    cpu: {{ .Values.sync.cpu }}
    memory: {{ .Values.sync.memory }}
  limits:
    cpu: {{ .Values.sync.cpu }}
    memory: {{ .Values.sync.memory }}
{{- end }}

{{/* Fails for an option in `options` that `set` has: {option: value of the chart, or ""}. A program accepts it once only. */}}
{{- define "penstock.refuseOptions" -}}
{{- $set := .set }}
{{- $value := .value }}
{{- range .options }}
{{- $option := regexFind "^[a-z0-9-]+" (trimPrefix "--" .) }}
{{- if hasKey $set $option }}
{{- fail (printf "%s: --%s is set by the chart%s" $value $option (get $set $option | empty | ternary "" (printf "; use %s" (get $set $option)))) }}
{{- end }}
{{- end }}
{{- end }}
