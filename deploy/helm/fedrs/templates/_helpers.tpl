{{/* The name of all objects, and of the Lease: two federations on a host have their own. */}}
{{- define "fedrs.name" -}}
{{- if .Values.federation }}fedrs-controller-{{ .Values.federation }}{{ else }}fedrs-controller{{ end }}
{{- end }}

{{- define "fedrs.selector" -}}
app.kubernetes.io/name: fedrs
app.kubernetes.io/instance: {{ include "fedrs.name" . }}
{{- end }}

{{- define "fedrs.labels" -}}
{{ include "fedrs.selector" . }}
app.kubernetes.io/part-of: fedrs
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Labels and annotations of an object in the release's namespace. */}}
{{- define "fedrs.metadata" -}}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "fedrs.labels" . | nindent 2 }}
{{- with .Values.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* controller.yaml */}}
{{- define "fedrs.config" -}}
{{- if hasKey .Values.config "federation" }}
{{- fail "config.federation: set federation instead; the names of all objects depend on it" }}
{{- end }}
{{- toYaml (merge (dict "federation" .Values.federation) .Values.config) }}
{{- end }}

{{/* It changes with the content, so that a change is rolled out, and rolled back, as any other. */}}
{{- define "fedrs.configName" -}}
{{ include "fedrs.name" . }}-config-{{ include "fedrs.config" . | sha256sum | trunc 10 }}
{{- end }}

{{- define "fedrs.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* What belongs to the controller of LocalReplicaSets has a name of its own. */}}
{{- define "fedrs.replicaSetSelector" -}}
app.kubernetes.io/name: fedrs
app.kubernetes.io/instance: fedrs-replica-set-controller
{{- end }}

{{- define "fedrs.replicaSetLabels" -}}
{{- $own := dict "app.kubernetes.io/instance" "fedrs-replica-set-controller" }}
{{- toYaml (merge $own (include "fedrs.labels" . | fromYaml)) }}
{{- end }}

{{- define "fedrs.replicaSetMetadata" -}}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "fedrs.replicaSetLabels" . | nindent 2 }}
{{- with .Values.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* So does what belongs to discovery. */}}
{{- define "fedrs.discoverySelector" -}}
app.kubernetes.io/name: fedrs
app.kubernetes.io/instance: fedrs-discovery
{{- end }}

{{- define "fedrs.discoveryLabels" -}}
{{- $own := dict "app.kubernetes.io/instance" "fedrs-discovery" }}
{{- toYaml (merge $own (include "fedrs.labels" . | fromYaml)) }}
{{- end }}

{{- define "fedrs.discoveryMetadata" -}}
name: fedrs-discovery
namespace: {{ .Release.Namespace }}
labels:
  {{- include "fedrs.discoveryLabels" . | nindent 2 }}
{{- with .Values.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The arguments of discovery. */}}
{{- define "fedrs.discoveryArguments" -}}
{{- $address := .Values.listenAddress }}
{{- with .Values.discovery -}}
- discovery
{{- if .membersSecret }}
- --members=/etc/fedrs/members
{{- else if $.Values.federation }}
- --federation={{ $.Values.federation }}
{{- end }}
- --http={{ $address }}:9480
- --grpc={{ $address }}:9490
- --tls-cert=/etc/fedrs/tls/tls.crt
- --tls-key=/etc/fedrs/tls/tls.key
- --authorization={{ .authorization }}
{{- if .dns.enabled }}
- --dns={{ $address }}:9453
- --domain={{ .dns.domain }}
{{- if ne .authorization "None" }}
- --anonymous-dns
{{- end }}
{{- end }}
- --snapshot-dir=/var/lib/fedrs
{{- if .writeStatus }}
- --write-status
{{- end }}
- --listen={{ $address }}:9464
{{- end }}
{{- end }}

{{- define "fedrs.replicaSetConfigName" -}}
fedrs-replica-set-controller-config-{{ toYaml .Values.replicaSetController.config | sha256sum | trunc 10 }}
{{- end }}

{{/* The spec of a NetworkPolicy for the pods with the labels of `selector`. Everybody may connect to `ports`. */}}
{{- define "fedrs.networkPolicy" -}}
podSelector:
  matchLabels:
    {{- .selector | nindent 4 }}
policyTypes:
- Ingress
- Egress
ingress:
{{- with .ports }}
- ports:
  {{- toYaml . | nindent 2 }}
{{- end }}
- from:
  {{- toYaml .root.Values.networkPolicy.metricsFrom | nindent 2 }}
  ports:
  - port: 9464
    protocol: TCP
egress:
- ports:
  - port: 53
    protocol: UDP
  - port: 53
    protocol: TCP
- ports:
  {{- range .root.Values.networkPolicy.egressPorts }}
  - port: {{ . }}
    protocol: TCP
  {{- end }}
{{- end }}

{{/* The objects of a generated file: an account, and each rule with its reason. The namespace is made by helm. */}}
{{- define "fedrs.rbac" -}}
{{- $root := .root }}
{{- $labels := .labels }}
{{- range splitList "\n---\n" (.text | replace "fedrs-system" $root.Release.Namespace) }}
{{- $object := fromYaml . }}
{{- if and $object (ne $object.kind "Namespace") }}
{{- $_ := set $object.metadata "labels" $labels }}
{{- with $root.Values.annotations }}
{{- $_ := set $object.metadata "annotations" . }}
{{- end }}
---
{{ toYaml $object }}
{{ end }}
{{- end }}
{{- end }}
