{{- define "sidejudge.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "sidejudge.fullname" -}}
{{- $name := include "sidejudge.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if regexMatch "^[0-9]" .Release.Name -}}
{{- /* A Service's name begins with a letter. */ -}}
{{- printf "%s-%s" $name .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "sidejudge.namespace" -}}
{{- .Values.namespaceOverride | default .Release.Namespace -}}
{{- end -}}

{{/* Never changed: selectors are immutable. */}}
{{- define "sidejudge.selector" -}}
app.kubernetes.io/name: {{ include "sidejudge.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: gateway
{{- end -}}

{{/* Labels of an object. Takes a dict: root, component, and more (a list of maps); what selectors go by cannot be replaced. */}}
{{- define "sidejudge.labels" -}}
{{- $root := .root -}}
{{- $labels := dict -}}
{{- range concat (list $root.Values.commonLabels) (.more | default list) -}}
{{- $labels = merge dict . $labels -}}
{{- end -}}
{{- $chart := printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" -}}
{{- $standard := dict "helm.sh/chart" $chart "app.kubernetes.io/version" $root.Chart.AppVersion "app.kubernetes.io/managed-by" $root.Release.Service "app.kubernetes.io/part-of" "sidejudge" -}}
{{- toYaml (mergeOverwrite $labels $standard (include "sidejudge.selector" $root | fromYaml) (dict "app.kubernetes.io/component" (.component | default "gateway"))) -}}
{{- end -}}

{{/* Labels of the gateway's Pods: no version, so that a new chart does not roll them for its own sake. */}}
{{- define "sidejudge.podLabels" -}}
{{- toYaml (mergeOverwrite dict .Values.commonLabels .Values.podLabels (dict "app.kubernetes.io/part-of" "sidejudge") (include "sidejudge.selector" . | fromYaml)) -}}
{{- end -}}

{{/* Head of every object's metadata. Takes a dict: root, name (a suffix) or fullname, component, more, annotations, namespace. */}}
{{- define "sidejudge.metadata" -}}
name: {{ printf "%s%s" (.fullname | default (include "sidejudge.fullname" .root)) (ternary (printf "-%s" .name) "" (not (empty .name))) | toJson }}
namespace: {{ .namespace | default (include "sidejudge.namespace" .root) | quote }}
labels:
  {{- include "sidejudge.labels" . | nindent 2 }}
{{- with .annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "sidejudge.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (ternary (include "sidejudge.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{/* "yes" when monitor objects are wanted. Takes a dict: root, wanted (auto, true, false), kind. */}}
{{- define "sidejudge.wanted" -}}
{{- $wanted := .wanted | toString -}}
{{- if eq $wanted "true" -}}
yes
{{- else if and (eq $wanted "auto") (.root.Capabilities.APIVersions.Has (printf "monitoring.coreos.com/v1/%s" .kind)) -}}
yes
{{- end -}}
{{- end -}}
