{{/*
A value as a literal of CEL. Its lists and maps are of one type, so every value in them is dyn.
*/}}
{{- define "sidejudge.cel" -}}
{{- if kindIs "map" . -}}
{ {{- $first := true }}{{ range $name, $value := . }}{{ if not $first }}, {{ end }}{{ $name | toJson }}: dyn({{ include "sidejudge.cel" $value }}){{ $first = false }}{{ end -}} }
{{- else if kindIs "slice" . -}}
[ {{- $first := true }}{{ range . }}{{ if not $first }}, {{ end }}dyn({{ include "sidejudge.cel" . }}){{ $first = false }}{{ end -}} ]
{{- else if kindIs "float64" . -}}
{{ if eq (floor .) . }}{{ . | int64 }}{{ else }}{{ . }}{{ end }}
{{- else -}}
{{ toRawJson . }}
{{- end -}}
{{- end -}}
