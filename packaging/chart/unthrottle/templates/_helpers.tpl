{{- define "unthrottle.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "unthrottle.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "unthrottle.labels" -}}
{{ include "unthrottle.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- /* The name of an image: of the list of the image's values and the chart's version. */ -}}
{{- define "unthrottle.image" -}}
{{- $image := index . 0 }}
{{- if $image.digest }}{{ printf "%s@%s" $image.repository $image.digest }}{{ else }}{{ printf "%s:%s" $image.repository ($image.tag | default (index . 1)) }}{{ end }}
{{- end }}

{{- /* Values that contradict the chart: a list of a value's name, its keys, and those that the chart sets. */ -}}
{{- define "unthrottle.own" -}}
{{- $name := index . 0 }}{{ $own := index . 2 }}
{{- range $key, $_ := index . 1 }}
{{- if hasKey $own $key }}{{ fail (printf "%s: the chart sets %s itself, and finds its pods by its labels: take another key" $name $key) }}{{ end }}
{{- end }}
{{- end }}

{{- /* What values must not say. Helm leaves this chart out where a parent's condition is not met: then nothing of it is rendered. */ -}}
{{- define "unthrottle.check" -}}
{{- $labels := include "unthrottle.labels" . | fromYaml }}
{{- include "unthrottle.own" (list "podLabels" .Values.podLabels $labels) }}
{{- include "unthrottle.own" (list "podMonitor.labels" .Values.podMonitor.labels $labels) }}
{{- include "unthrottle.own" (list "podAnnotations" .Values.podAnnotations (dict "checksum/config" "")) }}
{{- if and .Values.policies.rollout (not .Values.policies.enabled) }}{{ fail "policies.rollout: the container of policies draws the pods: set policies.enabled=true too" }}{{ end }}
{{- if and .Values.policies.probes (not .Values.policies.enabled) }}{{ fail "policies.probes: the container of policies tells the agents of the pods' probes: set policies.enabled=true too" }}{{ end }}
{{- if and .Values.hostNetwork (or .Values.service.enabled .Values.podMonitor.enabled) }}{{ fail "hostNetwork: /metrics then answers on 127.0.0.1 of the node, which no Service and no PodMonitor reaches: set service.enabled and podMonitor.enabled to false" }}{{ end }}
{{- if .Values.demand.enabled }}
{{- range $key := list "dir" "node" }}
{{- if hasKey (default dict $.Values.config.export) $key }}{{ fail (printf "config.export.%s: with demand.enabled the chart sets it itself: leave it out, and set host.rows for the folder" $key) }}{{ end }}
{{- end }}
{{- end }}
{{- if eq (toString .Values.enabled) "false" }}{{ fail "enabled: this chart has no switch of its own: in the parent chart, give its dependency a condition, such as unthrottle.enabled" }}{{ end }}
{{- end }}

{{- /* Where the agent's container keeps rows. */ -}}
{{- define "unthrottle.rows" -}}
/var/lib/unthrottle-rows
{{- end }}

{{- /* The agent's file. The keys of config go beside those that the chart sets. */ -}}
{{- define "unthrottle.config" -}}
version: 1
mode: {{ .Values.mode }}
listen: {{ printf "%s:%v" (ternary "127.0.0.1" "" .Values.hostNetwork) .Values.port | quote }}
state_dir: /var/lib/unthrottle
{{- $config := .Values.config }}
{{- if .Values.demand.enabled }}
{{- $export := merge (dict "dir" (include "unthrottle.rows" .)) (deepCopy (default dict .Values.config.export)) (dict "keep_for" "192h" "keep_size" "256MiB") }}
{{- $config = set (deepCopy .Values.config) "export" $export }}
{{- end }}
{{- with $config }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* What the containers of helm test may do: nothing. Namespaces that want it restricted take it. */ -}}
{{- define "unthrottle.test" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
runAsUser: 65534
seccompProfile: {type: RuntimeDefault}
capabilities: {drop: [ALL]}
{{- end }}

{{- /* What the container policies may do on its node: nothing but its files. */ -}}
{{- define "unthrottle.sidecar" -}}
privileged: false
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
# The agent trusts no file of other users.
runAsUser: 0
runAsGroup: 0
seccompProfile: {type: RuntimeDefault}
capabilities: {drop: [ALL]}
{{- end }}

{{- /* What the containers may do on their node that write no file: nothing. Of the number of their user. */ -}}
{{- define "unthrottle.unprivileged" -}}
privileged: false
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
# It writes no file, so that it needs no user of the node.
runAsNonRoot: true
runAsUser: {{ . }}
runAsGroup: {{ . }}
seccompProfile: {type: RuntimeDefault}
capabilities: {drop: [ALL]}
{{- end }}
