{{/*
The dict that the sidecar library's templates take, for the gateway. It is filled by "sidejudge.gateway":
include that first, with (dict "root" .), and read the dict afterwards.
*/}}
{{- define "sidejudge.gateway" -}}
{{- $values := .root.Values -}}
{{- $gateway := $values.gateway -}}
{{- $limit := ternary $gateway.persistence.size $gateway.state.sizeLimit (eq $gateway.kind "StatefulSet") -}}
{{- $config := $values.config | default dict -}}
{{- $surroundings := dict -}}
{{- if include "sidejudge.routed" .root }}{{ $surroundings = include "sidejudge.routedConfig" .root | fromYaml }}{{ end -}}
{{- /* Beside a configuration of yours, which may name others: the environment would win over it. */}}
{{- if not $values.existingConfigMap.name -}}
{{- with include "sidejudge.shownRunbooks" .root }}{{ $_ := set $surroundings "alerts" (dict "links" (dict "runbooks" .)) }}{{ end -}}
{{- end -}}
{{- /* What upstream does not take is kept for it: 1 GiB, or a quarter of a volume that is small. Half is the store's. */}}
{{- $medium := ternary "" $gateway.state.medium (eq $gateway.kind "StatefulSet") -}}
{{- if and $config.forward (ne $medium "Memory") (not (hasKey $config.forward "buffer")) -}}
{{- $quarter := div (include "sidejudge-sidecar.bytes" $limit | int64) 4194304 -}}
{{- $_ := set $surroundings "forward" (dict "buffer" (ternary "1GiB" (printf "%dMiB" $quarter) (ge $quarter 1024))) -}}
{{- end -}}
{{- $settings := dict "image" $values.image "config" $config "surroundings" $surroundings "existingConfigMap" $values.existingConfigMap "secrets" $values.secrets "resources" $gateway.resources "probes" $gateway.probes "securityContext" $values.securityContext "state" (dict "sizeLimit" $limit "medium" $medium) "tmp" $gateway.tmp "extraEnv" $values.extraEnv "extraEnvFrom" $values.extraEnvFrom "extraArgs" $values.extraArgs "extraVolumes" $values.extraVolumes "extraVolumeMounts" $values.extraVolumeMounts -}}
{{- if eq $gateway.kind "Deployment" }}{{ $_ := set $settings "graceSeconds" $gateway.terminationGracePeriodSeconds }}{{ end -}}
{{- $_ := set . "settings" $settings -}}
{{- $_ = set . "otlpHost" "0.0.0.0" -}}
{{- $_ = set . "key" "config" -}}
{{- $_ = set . "resourcesKey" "gateway.resources" -}}
{{- $_ = set . "appVersion" .root.Chart.AppVersion -}}
{{- $_ = set . "ports" true -}}
{{- $_ = set . "configMap" (include "sidejudge.fullname" .root) -}}
{{- $_ = set . "configKey" "sidejudge.yaml" -}}
{{- include "sidejudge-sidecar.prepare" . -}}
{{- include "sidejudge.reached" (dict "effective" .effective "values" $values) -}}
{{- if and (include "sidejudge.routed" .root) (not .grpcPort) }}{{ fail "config.sources.otlp.grpc is null, and the Collector in front speaks gRPC alone: leave it out" }}{{ end -}}
{{- $containers := list "sidejudge" -}}
{{- range concat $values.initContainers $values.extraContainers -}}
{{- if has .name $containers }}{{ fail (printf "initContainers and extraContainers: a container %s is there already: give this one another name" .name) }}{{ end -}}
{{- $containers = append $containers .name -}}
{{- end -}}
{{- $drain := ($config.drain | default dict).timeout | default "" -}}
{{- if and $drain (eq $gateway.kind "Deployment") (ge (include "sidejudge.ns" $drain | int64) (mul $gateway.terminationGracePeriodSeconds 1000000000)) -}}
{{- fail (printf "config.drain.timeout (%s) must be less than gateway.terminationGracePeriodSeconds (%v): the Pod, and its store with it, would be gone before what is open is judged" $drain $gateway.terminationGracePeriodSeconds) -}}
{{- end -}}
{{- end -}}

{{/* Refuses addresses of loopback, which nobody outside of the Pod reaches. Takes a dict: effective, values. */}}
{{- define "sidejudge.reached" -}}
{{- $loopback := "^(127\\.|localhost:|\\[::1\\])" -}}
{{- if and (regexMatch $loopback .effective.sources.otlp.http) (not .values.extraContainers) -}}
{{- fail (printf "config.sources.otlp.http (%s) is reached within the Pod alone, where nothing sends traces: listen on 0.0.0.0" .effective.sources.otlp.http) -}}
{{- end -}}
{{- end -}}

{{- define "sidejudge.podTemplate" -}}
{{- $monitor := dict "root" . -}}
{{- include "sidejudge.gateway" $monitor -}}
metadata:
  labels:
    {{- include "sidejudge.podLabels" . | nindent 4 }}
  annotations:
    {{- if not $monitor.foreign }}
    {{- /* What the monitor puts into force by itself when the mounted file changes needs no new Pod. */}}
    {{- $needs_pod := $monitor.effective }}
    {{- if $monitor.effective.reload.watch }}{{ $needs_pod = omit $needs_pod "routes" "default_rubrics" "rubrics" "rubric_files" "scenarios" }}{{ end }}
    checksum/config: {{ toJson $needs_pod | sha256sum }}
    {{- end }}
    kubectl.kubernetes.io/default-container: sidejudge
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- include "sidejudge.podSpec" . | nindent 2 }}
  terminationGracePeriodSeconds: {{ .Values.gateway.terminationGracePeriodSeconds }}
  {{- with .Values.gateway.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.initContainers }}
  initContainers:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - {{ include "sidejudge-sidecar.monitor" $monitor | indent 6 | trim }}
    {{- with .Values.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
    {{- if eq .Values.gateway.kind "Deployment" }}
    {{- include "sidejudge.stateVolume" . | nindent 4 }}
    {{- end }}
    {{- include "sidejudge-sidecar.sharedVolumes" $monitor | nindent 4 }}
{{- end -}}

{{- define "sidejudge.stateVolume" -}}
- name: sidejudge-state
  emptyDir:
    sizeLimit: {{ .Values.gateway.state.sizeLimit | quote }}
    {{- with .Values.gateway.state.medium }}
    medium: {{ . }}
    {{- end }}
{{- end -}}

{{/* What the gateway's Pods and the test's Pod have in common. */}}
{{- define "sidejudge.podSpec" -}}
serviceAccountName: {{ include "sidejudge.serviceAccountName" . | quote }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
  {{- if eq .Values.gateway.kind "StatefulSet" }}
  {{- with .Values.gateway.persistence.fsGroup }}
  fsGroup: {{ . }}
  fsGroupChangePolicy: OnRootMismatch
  {{- end }}
  {{- end }}
{{- with concat ((.Values.global | default dict).imagePullSecrets | default list) .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.gateway.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.gateway.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.gateway.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.gateway.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "sidejudge.replicas" -}}
{{- if and (not .Values.gateway.autoscaling.kind) (kindIs "invalid" .Values.gateway.replicaCount | not) -}}
replicas: {{ .Values.gateway.replicaCount }}
{{- end -}}
{{- end -}}
