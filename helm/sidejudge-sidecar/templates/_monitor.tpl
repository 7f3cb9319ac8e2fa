{{/*
The container of a monitor, wherever it runs. Takes a dict:

  root      the root context            settings  image, config, secrets, resources, probes, … (values.yaml)
  otlpHost  where OTLP is listened to   key       how messages call the configuration
  configMap, configKey                  the ConfigMap that holds it; without it the configuration goes into the environment
  appVersion                            tag of the image, where the settings name none
  ports     also declare the ports of OTLP
*/}}
{{- define "sidejudge-sidecar.monitor" -}}
{{- $settings := .settings -}}
{{- $_ := include "sidejudge-sidecar.prepare" . -}}
name: sidejudge
image: {{ include "sidejudge-sidecar.image" . }}
imagePullPolicy: {{ $settings.image.pullPolicy }}
command: [python, -P, -m, sidejudge]
args:
  - serve
  {{- /* A container that ends again and again makes the application's Pod not ready. */}}
  {{- if .stay }}
  - --stay
  {{- end }}
  {{- range $settings.extraArgs }}
  - {{ . | quote }}
  {{- end }}
env:
  {{- include "sidejudge-sidecar.env" . | trim | nindent 2 }}
{{- with $settings.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  - name: sidejudge-api
    containerPort: {{ .apiPort }}
    protocol: TCP
  {{- if .ports }}
  - name: sidejudge-otlp
    containerPort: {{ .otlpPort }}
    protocol: TCP
  {{- with .grpcPort }}
  - name: sidejudge-grpc
    containerPort: {{ . }}
    protocol: TCP
  {{- end }}
  {{- end }}
{{- range $kind, $path := dict "liveness" "/livez" "readiness" "/readyz" "startup" "/startupz" }}
{{- with index $settings.probes $kind }}
{{ $kind }}Probe:
  {{- $get := dict "path" $path "port" (int $.apiPort) }}
  {{- if $.apiTls }}{{ $_ := set $get "scheme" "HTTPS" }}{{ end }}
  httpGet:
    {{- toYaml (mergeOverwrite $get (.httpGet | default dict)) | nindent 4 }}
  {{- with omit . "httpGet" }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end }}
resources:
  {{- toYaml $settings.resources | nindent 2 }}
securityContext:
  {{- toYaml $settings.securityContext | nindent 2 }}
volumeMounts:
  - name: sidejudge-state
    mountPath: /var/lib/sidejudge
  - name: sidejudge-tmp
    mountPath: /tmp
  {{- if .configMap }}
  - name: sidejudge-config
    mountPath: /etc/sidejudge
    readOnly: true
  {{- end }}
  {{- with $settings.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* The environment: who the Pod is, where the configuration lies, the configuration itself, secrets, and what was asked for. */}}
{{- define "sidejudge-sidecar.env" -}}
{{ range $name, $field := dict "POD_NAME" "metadata.name" "POD_NAMESPACE" "metadata.namespace" "POD_UID" "metadata.uid" "POD_IP" "status.podIP" "NODE_NAME" "spec.nodeName" "APP_NAME" "metadata.labels['app.kubernetes.io/name']" }}
- name: {{ $name }}
  valueFrom:
    fieldRef:
      fieldPath: {{ $field }}
{{- end }}
- name: OTEL_RESOURCE_ATTRIBUTES
  value: k8s.pod.name=$(POD_NAME),k8s.pod.uid=$(POD_UID),k8s.namespace.name=$(POD_NAMESPACE),k8s.node.name=$(NODE_NAME)
- name: HOME
  value: /tmp
{{- if .configMap }}
- name: SIDEJUDGE_CONFIG
  value: /etc/sidejudge/{{ .configKey }}
{{- end }}
{{- if .foreign }}
{{- include "sidejudge-sidecar.leaves" (dict "name" "SIDEJUDGE" "value" (mergeOverwrite (dict "reload" (dict "watch" .settings.existingConfigMap.watch)) .effective)) }}
{{- else if not .configMap }}
{{- range $section, $value := .effective }}
{{- /* Kubernetes reads $(NAME) in it, and $$ as $. */}}
{{- $text := toRawJson $value | replace "$" "$$" }}
{{- if gt (len $text) 100000 }}{{ fail (printf "%s.%s is too long for an environment variable (%d bytes): put it into a ConfigMap and name that in existingConfigMap" $.key $section (len $text)) }}{{ end }}
- name: SIDEJUDGE_{{ upper $section }}
  value: '{{ $text | replace "'" "''" }}'
{{- end }}
{{- end }}
{{- $named := dict }}
{{- range $set, $secret := .settings.secrets }}
{{- range $name, $key := $secret.keys }}
{{- with index $named $name }}{{ fail (printf "secrets.%s.keys.%s: secrets.%s sets this variable too; leave it out of one of them" $set $name .) }}{{ end }}
{{- $_ := set $named $name $set }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef:
      name: {{ $secret.existingSecret }}
      key: {{ $key }}
      {{- /* A Secret that is not there would keep the application's Pod from starting; the monitor shows what is missing. */}}
      {{- if or $secret.optional $.stay }}
      optional: true
      {{- end }}
{{- end }}
{{- end }}
{{- with .settings.extraEnv }}
{{- range $each := . }}
{{- with index $named $each.name }}{{ fail (printf "extraEnv: secrets.%s.keys.%s sets this variable too; leave it out of one of them" . $each.name) }}{{ end }}
{{- end }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Each value of a configuration as a variable of its own. Takes a dict: name (of what is above), value. */}}
{{- define "sidejudge-sidecar.leaves" -}}
{{- $above := .name -}}
{{- range $key, $value := .value -}}
{{- $name := printf "%s%s%s" $above (eq $above "SIDEJUDGE" | ternary "_" "__") (upper $key) -}}
{{- if kindIs "map" $value -}}
{{- include "sidejudge-sidecar.leaves" (dict "name" $name "value" $value) -}}
{{- else }}
- name: {{ $name }}
  value: {{ ternary $value (toRawJson $value) (kindIs "string" $value) | quote }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* /tmp and, where there is one, the configuration. */}}
{{- define "sidejudge-sidecar.sharedVolumes" -}}
- name: sidejudge-tmp
  emptyDir:
    sizeLimit: {{ .settings.tmp.sizeLimit | quote }}
{{- if .configMap }}
- name: sidejudge-config
  configMap:
    name: {{ .configMap }}
    {{- if .stay }}
    optional: true
    {{- end }}
{{- end }}
{{- with .settings.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "sidejudge-sidecar.image" -}}
{{- $image := .settings.image -}}
{{- $registry := (.root.Values.global | default dict).imageRegistry | default $image.registry -}}
{{- $tag := $image.tag | default .appVersion -}}
{{- with $image.variant }}{{ $tag = printf "%s-%s" $tag . }}{{ end -}}
{{- $name := $image.repository -}}
{{- with $registry }}{{ $name = printf "%s/%s" . $name }}{{ end -}}
{{- if $image.digest -}}
{{ printf "%s@%s" $name $image.digest | quote }}
{{- else -}}
{{ printf "%s:%s" $name $tag | quote }}
{{- end -}}
{{- end -}}
