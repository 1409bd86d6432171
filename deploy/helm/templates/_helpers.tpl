{{- define "sluice.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "sluice.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: node
{{- end }}

{{- define "sluice.labels" -}}
{{ include "sluice.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "sluice.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- /* What a node may take after SIGTERM: the delay, the drain, 2 s of farewells, 10 s to settle, and some to spare. */ -}}
{{- define "sluice.grace_s" -}}
{{- $limits := get (.Values.config | default dict) "limits" | default dict -}}
{{- $delay_ms := int64 (get $limits "drain_delay_ms" | default 0) -}}
{{- $drain_ms := 25000 -}}
{{- if hasKey $limits "drain_ms" }}{{ $drain_ms = int64 $limits.drain_ms }}{{ end -}}
{{- add (div (add $delay_ms $drain_ms 999) 1000) 15 -}}
{{- end }}

{{- /* Whether the pods get the key secret-key: the console and issuers need it. Empty: no. */ -}}
{{- define "sluice.secretKey" -}}
{{- $identity := get (.Values.config | default dict) "identity" | default dict -}}
{{- if or .Values.secrets.secretKey .Values.console.enabled (get $identity "issuers") }}yes{{ end -}}
{{- end }}

{{- define "sluice.podSecurity" -}}
runAsNonRoot: true
{{- with .Values.user }}
runAsUser: {{ int64 . }}
runAsGroup: {{ int64 . }}
fsGroup: {{ int64 . }}
{{- end }}
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "sluice.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}
