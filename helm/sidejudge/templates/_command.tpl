{{/*
A container that runs one command of the image with the gateway's configuration, and ends.
Takes a dict: root, monitor (filled by "sidejudge.gateway"), name, args.
*/}}
{{- define "sidejudge.command" -}}
{{- $values := .root.Values -}}
name: {{ .name }}
image: {{ include "sidejudge-sidecar.image" .monitor }}
imagePullPolicy: {{ $values.image.pullPolicy }}
command: [python, -P, -m, sidejudge]
args:
  {{- toYaml .args | nindent 2 }}
env:
  {{- include "sidejudge-sidecar.env" .monitor | trim | nindent 2 }}
{{- with $values.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
resources:
  {{- toYaml $values.gateway.resources | nindent 2 }}
securityContext:
  {{- toYaml $values.securityContext | nindent 2 }}
volumeMounts:
  - name: sidejudge-state
    mountPath: /var/lib/sidejudge
  - name: sidejudge-tmp
    mountPath: /tmp
  {{- if .monitor.configMap }}
  - name: sidejudge-config
    mountPath: /etc/sidejudge
    readOnly: true
  {{- end }}
  {{- with $values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
