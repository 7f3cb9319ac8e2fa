{{/*
The three includes of an application's Pod template:

  metadata: labels:   {{- include "sidejudge-sidecar.labels" . | nindent 8 }}
  initContainers:     {{- include "sidejudge-sidecar.container" . | nindent 8 }}   (legacy: containers)
  volumes:            {{- include "sidejudge-sidecar.volumes" . | nindent 8 }}

Each takes the application's root context. Settings: the values under `sidejudge-sidecar`.
*/}}

{{/* By this label a PodMonitor finds the sidecars of all applications. */}}
{{- define "sidejudge-sidecar.labels" -}}
{{- include "sidejudge-sidecar.present" . -}}
{{- $settings := index .Values "sidejudge-sidecar" -}}
{{- if $settings.enabled -}}
sidejudge.io/sidecar: "true"
{{- end -}}
{{- end -}}

{{- define "sidejudge-sidecar.container" -}}
{{- include "sidejudge-sidecar.present" . -}}
{{- $settings := index .Values "sidejudge-sidecar" -}}
{{- if $settings.enabled -}}
{{- if and (not $settings.legacy) (semverCompare "<1.29.0-0" .Capabilities.KubeVersion.Version) -}}
{{- fail (printf "sidejudge-sidecar: Kubernetes %s has no native sidecars (they came with 1.29): set sidejudge-sidecar.legacy=true and include \"sidejudge-sidecar.container\" under containers, or upgrade the cluster" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- $settings = merge (dict "graceSeconds" $settings.terminationGracePeriodSeconds) $settings -}}
{{- $monitor := dict "root" . "settings" $settings "otlpHost" "127.0.0.1" "key" "sidejudge-sidecar.config" "resourcesKey" "sidejudge-sidecar.resources" "stay" true -}}
- {{ include "sidejudge-sidecar.monitor" $monitor | indent 2 | trim }}
  {{- if not $settings.legacy }}
  restartPolicy: Always
  {{- end }}
{{- end -}}
{{- end -}}

{{- define "sidejudge-sidecar.volumes" -}}
{{- include "sidejudge-sidecar.present" . -}}
{{- $settings := index .Values "sidejudge-sidecar" -}}
{{- if $settings.enabled -}}
- name: sidejudge-state
  emptyDir:
    sizeLimit: {{ $settings.state.sizeLimit | quote }}
    {{- with $settings.state.medium }}
    medium: {{ . }}
    {{- end }}
{{ include "sidejudge-sidecar.sharedVolumes" (dict "settings" $settings "configMap" $settings.existingConfigMap.name "key" $settings.existingConfigMap.key "stay" true) }}
{{- end -}}
{{- end -}}

{{/* Fails where the dependency was given another name: its values would lie elsewhere. */}}
{{- define "sidejudge-sidecar.present" -}}
{{- if not (hasKey .Values "sidejudge-sidecar") -}}
{{- fail "sidejudge-sidecar: no values under the key sidejudge-sidecar; give the dependency no alias" -}}
{{- end -}}
{{- include "sidejudge-sidecar.defaults" . -}}
{{- end -}}
