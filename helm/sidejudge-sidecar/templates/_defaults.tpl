{{/* Generated from values.yaml by 'python -m tests.helm.generate'; do not edit. */}}
{{- define "sidejudge-sidecar.defaults" -}}
{{- $at := index .Values "sidejudge-sidecar" -}}
{{- if kindIs "invalid" (index $at "enabled") }}{{ $_ := set $at "enabled" true }}{{ end -}}
{{- if kindIs "invalid" (index $at "image") }}{{ $_ := set $at "image" (dict) }}{{ end -}}
{{- if kindIs "invalid" (index $at.image "registry") }}{{ $_ := set $at.image "registry" "registry.example.com" }}{{ end -}}
{{- if kindIs "invalid" (index $at.image "repository") }}{{ $_ := set $at.image "repository" "sidejudge/sidejudge" }}{{ end -}}
{{- if kindIs "invalid" (index $at.image "tag") }}{{ $_ := set $at.image "tag" "0.2.0" }}{{ end -}}
{{- if kindIs "invalid" (index $at.image "digest") }}{{ $_ := set $at.image "digest" "" }}{{ end -}}
{{- if kindIs "invalid" (index $at.image "variant") }}{{ $_ := set $at.image "variant" "" }}{{ end -}}
{{- if kindIs "invalid" (index $at.image "pullPolicy") }}{{ $_ := set $at.image "pullPolicy" "IfNotPresent" }}{{ end -}}
{{- if kindIs "invalid" (index $at "legacy") }}{{ $_ := set $at "legacy" false }}{{ end -}}
{{- if kindIs "invalid" (index $at "config") }}{{ $_ := set $at "config" (dict) }}{{ end -}}
{{- if kindIs "invalid" (index $at "existingConfigMap") }}{{ $_ := set $at "existingConfigMap" (dict) }}{{ end -}}
{{- if kindIs "invalid" (index $at.existingConfigMap "name") }}{{ $_ := set $at.existingConfigMap "name" "" }}{{ end -}}
{{- if kindIs "invalid" (index $at.existingConfigMap "key") }}{{ $_ := set $at.existingConfigMap "key" "sidejudge.yaml" }}{{ end -}}
{{- if kindIs "invalid" (index $at.existingConfigMap "watch") }}{{ $_ := set $at.existingConfigMap "watch" true }}{{ end -}}
{{- if kindIs "invalid" (index $at "secrets") }}{{ $_ := set $at "secrets" (dict) }}{{ end -}}
{{- if kindIs "invalid" (index $at "resources") }}{{ $_ := set $at "resources" (dict "requests" (dict "cpu" "50m" "memory" "192Mi") "limits" (dict "memory" "512Mi")) }}{{ end -}}
{{- if kindIs "invalid" (index $at "securityContext") }}{{ $_ := set $at "securityContext" (dict "allowPrivilegeEscalation" false "capabilities" (dict "drop" (list "ALL")) "readOnlyRootFilesystem" true "runAsNonRoot" true "seccompProfile" (dict "type" "RuntimeDefault")) }}{{ end -}}
{{- if kindIs "invalid" (index $at "probes") }}{{ $_ := set $at "probes" (dict) }}{{ end -}}
{{- if kindIs "invalid" (index $at "state") }}{{ $_ := set $at "state" (dict) }}{{ end -}}
{{- if kindIs "invalid" (index $at.state "sizeLimit") }}{{ $_ := set $at.state "sizeLimit" "1Gi" }}{{ end -}}
{{- if kindIs "invalid" (index $at.state "medium") }}{{ $_ := set $at.state "medium" "" }}{{ end -}}
{{- if kindIs "invalid" (index $at "tmp") }}{{ $_ := set $at "tmp" (dict) }}{{ end -}}
{{- if kindIs "invalid" (index $at.tmp "sizeLimit") }}{{ $_ := set $at.tmp "sizeLimit" "64Mi" }}{{ end -}}
{{- if kindIs "invalid" (index $at "extraEnv") }}{{ $_ := set $at "extraEnv" (list) }}{{ end -}}
{{- if kindIs "invalid" (index $at "extraEnvFrom") }}{{ $_ := set $at "extraEnvFrom" (list) }}{{ end -}}
{{- if kindIs "invalid" (index $at "extraArgs") }}{{ $_ := set $at "extraArgs" (list) }}{{ end -}}
{{- if kindIs "invalid" (index $at "extraVolumes") }}{{ $_ := set $at "extraVolumes" (list) }}{{ end -}}
{{- if kindIs "invalid" (index $at "extraVolumeMounts") }}{{ $_ := set $at "extraVolumeMounts" (list) }}{{ end -}}
{{- end -}}
