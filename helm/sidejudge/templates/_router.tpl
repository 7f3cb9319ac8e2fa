{{/* Whether a Collector stands in front: asked for, or a StatefulSet of several Pods. Empty where it does not. */}}
{{- define "sidejudge.routed" -}}
{{- $several := and (eq .Values.gateway.kind "StatefulSet") (gt (int (.Values.gateway.replicaCount | default 1)) 1) (not .Values.gateway.autoscaling.kind) -}}
{{- if and .Values.gateway.enabled (ternary $several .Values.router.enabled (kindIs "invalid" .Values.router.enabled)) }}true{{ end -}}
{{- end -}}

{{/* The port that OTLP/HTTP is listened to, before the configuration is prepared. */}}
{{- define "sidejudge.routedPort" -}}
{{- regexFind "[0-9]+$" (dig "sources" "otlp" "http" "0.0.0.0:4318" (.Values.config | default dict)) -}}
{{- end -}}

{{/* What a gateway behind it needs: gRPC, which is all that the exporter speaks, the other Pods, to join traces that a change of their number
tears, and where to hand those over that are torn when a Pod ends. */}}
{{- define "sidejudge.routedConfig" -}}
sources:
  otlp:
    grpc: 0.0.0.0:4317
peers:
  addresses: ["http://{{ include "sidejudge.fullname" . }}-headless.{{ include "sidejudge.namespace" . }}.svc:{{ include "sidejudge.routedPort" . }}"]
  settle: {{ add 15 (.Values.router.gather | trimSuffix "s" | int64) }}s
drain:
  timeout: {{ max 1 (sub (.Values.gateway.terminationGracePeriodSeconds | int64) 5) }}s
  to: http://{{ include "sidejudge.fullname" . }}-router.{{ include "sidejudge.namespace" . }}.svc:4318
{{- end -}}

{{/* All Pods of the release, as a peer of a NetworkPolicy. */}}
{{- define "sidejudge.release" -}}
- podSelector:
    matchLabels:
      app.kubernetes.io/name: {{ include "sidejudge.name" . | quote }}
      app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "sidejudge.routerSelector" -}}
app.kubernetes.io/name: {{ include "sidejudge.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: router
{{- end -}}

{{- define "sidejudge.routerConfig" -}}
{{- $monitor := dict "root" . -}}
{{- include "sidejudge.gateway" $monitor -}}
{{- $key := ternary (dict "routing_key" "traceID") (dict "routing_key" "attributes" "routing_attributes" .Values.router.attributes) (empty .Values.router.attributes) -}}
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "0.0.0.0:4317"}
      http: {endpoint: "0.0.0.0:4318"}
processors:
  memory_limiter: {check_interval: 1s, limit_percentage: 75, spike_limit_percentage: 15}
  {{- with .Values.router.gather }}
  groupbytrace: {wait_duration: {{ . }}, num_traces: {{ int64 $.Values.router.traces }}}
  {{- end }}
exporters:
  loadbalancing:
    {{- toYaml $key | nindent 4 }}
    # The monitor commits before it answers, and asks for a pause when it cannot: let the Collector wait. It waits here, not below, where each
    # Pod has a queue of its own: what waits for a Pod that goes away would be lost, and here it is sent to another.
    retry_on_failure: {enabled: true, initial_interval: 1s, max_interval: 5s, max_elapsed_time: 5m}
    sending_queue: {enabled: true, queue_size: 2000}
    protocol:
      otlp:
        tls: {insecure: true}
        timeout: 5s
        retry_on_failure: {enabled: false}
        sending_queue: {enabled: false}
    resolver:
      dns: {hostname: {{ include "sidejudge.fullname" . }}-headless.{{ include "sidejudge.namespace" . }}.svc, port: "{{ $monitor.grpcPort }}", interval: 5s}
extensions:
  health_check: {endpoint: "0.0.0.0:13133"}
service:
  extensions: [health_check]
  pipelines:
    traces: {receivers: [otlp], processors: [memory_limiter{{ if .Values.router.gather }}, groupbytrace{{ end }}], exporters: [loadbalancing]}
    logs: {receivers: [otlp], processors: [memory_limiter], exporters: [loadbalancing]}
{{- end -}}
