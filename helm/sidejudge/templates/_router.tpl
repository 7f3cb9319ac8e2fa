{{/* Whether a Collector stands in front: asked for, or a StatefulSet of several Pods. Empty where it does not. */}}
{{- define "sidejudge.routed" -}}
{{- $several := and (eq .Values.gateway.kind "StatefulSet") (gt (int (.Values.gateway.replicaCount | default 1)) 1) (not .Values.gateway.autoscaling.kind) -}}
{{- if and .Values.gateway.enabled (ternary $several .Values.router.enabled (kindIs "invalid" .Values.router.enabled)) }}true{{ end -}}
{{- end -}}

{{/* What a gateway behind it needs: gRPC, which is all that the exporter speaks, and where to hand torn traces over when a Pod ends. */}}
{{- define "sidejudge.routedConfig" -}}
sources:
  otlp:
    grpc: 0.0.0.0:4317
drain:
  timeout: {{ max 1 (sub (.Values.gateway.terminationGracePeriodSeconds | int64) 5) }}s
  to: http://{{ include "sidejudge.fullname" . }}-router.{{ include "sidejudge.namespace" . }}.svc:4318
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
  # A trace goes on as a whole: one decision for all its spans, also while the number of Pods changes.
  groupbytrace: {wait_duration: {{ .Values.router.gather }}, num_traces: {{ int64 .Values.router.traces }}}
exporters:
  loadbalancing:
    {{- toYaml $key | nindent 4 }}
    protocol:
      otlp:
        tls: {insecure: true}
        # The monitor commits before it answers, and asks for a pause when it cannot: let the Collector wait.
        retry_on_failure: {enabled: true, max_elapsed_time: 5m}
        sending_queue: {enabled: true, queue_size: 2000}
    resolver:
      dns: {hostname: {{ include "sidejudge.fullname" . }}-headless.{{ include "sidejudge.namespace" . }}.svc, port: "{{ $monitor.grpcPort }}", interval: 5s}
extensions:
  health_check: {endpoint: "0.0.0.0:13133"}
service:
  extensions: [health_check]
  pipelines:
    traces: {receivers: [otlp], processors: [memory_limiter, groupbytrace], exporters: [loadbalancing]}
    logs: {receivers: [otlp], processors: [memory_limiter], exporters: [loadbalancing]}
{{- end -}}
