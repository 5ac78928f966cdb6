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

{{- /* The agent's file. The keys of config go beside those that the chart sets. */ -}}
{{- define "unthrottle.config" -}}
version: 1
mode: {{ .Values.mode }}
listen: {{ printf "%s:%v" (ternary "127.0.0.1" "" .Values.hostNetwork) .Values.port | quote }}
state_dir: /var/lib/unthrottle
{{- with .Values.config }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* What the container policies may do on its node: nothing but its two files. */ -}}
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
