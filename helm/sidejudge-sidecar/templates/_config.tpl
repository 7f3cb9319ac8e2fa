{{/*
Adds to the dict of "sidejudge-sidecar.monitor": `effective` (the configuration with what the surroundings decide beneath it),
`foreign` (it lies in a ConfigMap that is not ours, and only what the surroundings decide is set in the environment), and the ports.
Refuses what cannot work, in a sentence.
*/}}
{{- define "sidejudge-sidecar.prepare" -}}
{{- $settings := .settings -}}
{{- $foreign := ne $settings.existingConfigMap.name "" -}}
{{- if and $foreign $settings.config -}}
{{- fail (printf "%s and existingConfigMap.name are both set: set one of them" .key) -}}
{{- end -}}
{{- include "sidejudge-sidecar.noSecrets" (dict "value" $settings.config "path" .key) -}}
{{- $store := dict "path" "/var/lib/sidejudge/sidejudge.sqlite" -}}
{{- $limit := include "sidejudge-sidecar.bytes" $settings.state.sizeLimit | int64 -}}
{{- $_ := set $store "max_bytes" (printf "%dMiB" (max 1 (div $limit 2097152))) -}}
{{- $surroundings := dict "api" (dict "listen" "0.0.0.0:8790") "sources" (dict "otlp" (dict "http" (printf "%s:4318" .otlpHost))) "store" $store -}}
{{- if and .configMap (not $foreign) }}{{ $_ = set $surroundings "reload" (dict "watch" true) }}{{ end -}}
{{- /* The store ends with the Pod: what is left of the grace period is for what is open. Some seconds stay for the end itself. */}}
{{- with $settings.graceSeconds }}{{ $_ = set $surroundings "drain" (dict "timeout" (printf "%ds" (max 1 (sub (. | int64) 5)))) }}{{ end -}}
{{- /* Several Pods watch one service: each has alerts of its own. */}}
{{- if (($settings.config | default dict).alerts | default dict).notify }}{{ $_ = set $surroundings "alerts" (dict "instance" "${POD_NAME}") }}{{ end -}}
{{- $effective := mergeOverwrite $surroundings (deepCopy ($settings.surroundings | default dict)) (deepCopy ($settings.config | default dict)) -}}
{{- $kept := $effective.store.max_bytes -}}
{{- if kindIs "invalid" $kept }}{{ fail (printf "%s.store.max_bytes is null, and a Pod whose volume is over state.sizeLimit (%s) is evicted, with everything in it: leave it out for half the limit" .key $settings.state.sizeLimit) }}{{ end -}}
{{- /* What only the environment says cannot be compared. */}}
{{- if contains "${" (toString $kept) }}{{ $kept = 0 }}{{ end -}}
{{- if ge (include "sidejudge-sidecar.bytes" $kept | int64) $limit -}}
{{- fail (printf "%s.store.max_bytes (%v) must be less than state.sizeLimit (%s): a Pod whose volume is over its limit is evicted, with everything in it; leave it out for half the limit" .key $effective.store.max_bytes $settings.state.sizeLimit) -}}
{{- end -}}
{{- with ($effective.forward | default dict).buffer -}}
{{- if ge (add (include "sidejudge-sidecar.bytes" (ternary 0 . (contains "${" (toString .))) | int64) (include "sidejudge-sidecar.bytes" $kept | int64)) $limit -}}
{{- fail (printf "%s.forward.buffer (%v) and store.max_bytes (%v) together must be less than state.sizeLimit (%s): a Pod whose volume is over its limit is evicted, with everything in it" $.key . $effective.store.max_bytes $settings.state.sizeLimit) -}}
{{- end -}}
{{- end -}}
{{- if eq ($settings.state.medium | default "") "Memory" -}}
{{- with ($settings.resources.limits | default dict).memory -}}
{{- if ge $limit (include "sidejudge-sidecar.bytes" . | int64) -}}
{{- fail (printf "state.sizeLimit (%s) with state.medium: Memory counts against the memory limit (%v) of the container, which would be killed as the volume fills: make it less than half, raise resources.limits.memory, or leave state.medium out" $settings.state.sizeLimit .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $embedding := ($effective.evaluators | default $effective.answerers | default dict).embedding | default dict -}}
{{- $memory := ($settings.resources.limits | default dict).memory -}}
{{- if and $embedding $memory (not $embedding.remote) (lt (include "sidejudge-sidecar.bytes" $memory | int64) 805306368) -}}
{{- fail (printf "%s.evaluators.embedding loads a model into the monitor, which takes 500 MB before the model's own size: a memory limit of %v would end it; set resources.limits.memory to 1Gi or more, or let an endpoint do it (remote: true)" .key $memory) -}}
{{- end -}}
{{- include "sidejudge-sidecar.checkResources" (dict "key" (.resourcesKey | default "resources") "resources" $settings.resources) -}}
{{- $_ = set . "effective" $effective -}}
{{- $_ = set . "foreign" $foreign -}}
{{- if $foreign -}}
{{- $_ = set . "configMap" $settings.existingConfigMap.name -}}
{{- $_ = set . "configKey" $settings.existingConfigMap.key -}}
{{- end -}}
{{- $_ = set . "apiPort" (regexFind "[0-9]+$" $effective.api.listen) -}}
{{- $_ = set . "apiTls" ($effective.api.tls | default dict) -}}
{{- $probes := $settings.probes | default dict -}}
{{- if and .apiTls.client_ca (or $probes.liveness $probes.readiness $probes.startup) -}}
{{- fail (printf "%s.api.tls.client_ca asks for certificates, and the probes of a kubelet show none: leave it out, or set probes.liveness, probes.readiness and probes.startup to null" .key) -}}
{{- end -}}
{{- range $kind, $probe := $probes -}}
{{- if and $probe (not ($probe.httpGet | default dict).port) (regexMatch "^(127\\.|localhost:|\\[::1\\])" $.effective.api.listen) -}}
{{- $asks := printf "%sprobes.%s" ($.resourcesKey | default "resources" | trimSuffix "resources") $kind -}}
{{- fail (printf "%s.api.listen (%s) is reached within the Pod alone, and %s asks from outside: it would fail for ever; listen on 0.0.0.0, or set %s to null" $.key $.effective.api.listen $asks $asks) -}}
{{- end -}}
{{- end -}}
{{- $_ = set . "otlpPort" (regexFind "[0-9]+$" $effective.sources.otlp.http) -}}
{{- $_ = set . "grpcPort" (regexFind "[0-9]+$" ($effective.sources.otlp.grpc | default "")) -}}
{{- $ports := list -}}
{{- range $key, $listen := dict "api.listen" $effective.api.listen "sources.otlp.http" $effective.sources.otlp.http "sources.otlp.grpc" $effective.sources.otlp.grpc -}}
{{- if $listen -}}
{{- $port := regexFind "[0-9]+$" $listen -}}
{{- if not (and $port (ge (int64 $port) 1) (le (int64 $port) 65535)) -}}
{{- fail (printf "%s.%s (%s) states no port from 1 to 65535, and the Pod and the Service name it: write it out" $.key $key $listen) -}}
{{- end -}}
{{- $ports = append $ports $port -}}
{{- end -}}
{{- end -}}
{{- if ne (len $ports) (len (uniq $ports)) -}}
{{- fail (printf "%s.sources.otlp.http, %s.sources.otlp.grpc and %s.api.listen need a port each, and have %s" .key .key .key (join ", " $ports)) -}}
{{- end -}}
{{- include "sidejudge-sidecar.noneTwice" . -}}
{{- end -}}

{{/* Refuses a volume or a mount that takes the name or the path of another: no Pod is admitted so. Takes the dict of "sidejudge-sidecar.monitor". */}}
{{- define "sidejudge-sidecar.noneTwice" -}}
{{- $volumes := list "sidejudge-state" "sidejudge-tmp" -}}
{{- $paths := list "/var/lib/sidejudge" "/tmp" -}}
{{- if .configMap }}{{ $volumes = append $volumes "sidejudge-config" }}{{ $paths = append $paths "/etc/sidejudge" }}{{ end -}}
{{- range .settings.extraVolumes -}}
{{- if has .name $volumes }}{{ fail (printf "extraVolumes: %s is there already: give this volume another name" .name) }}{{ end -}}
{{- $volumes = append $volumes .name -}}
{{- end -}}
{{- range .settings.extraVolumeMounts -}}
{{- $path := .mountPath | default "" | trimSuffix "/" -}}
{{- if has $path $paths }}{{ fail (printf "extraVolumeMounts: %s has a mount already: give this one another path" .mountPath) }}{{ end -}}
{{- $paths = append $paths $path -}}
{{- end -}}
{{- end -}}

{{/* A size (1.5Gi, 512MiB, 100M, 4096) as a whole number of bytes. */}}
{{- define "sidejudge-sidecar.bytes" -}}
{{- $text := . | toString -}}
{{- if kindIs "float64" . }}{{ $text = . | int64 | toString }}{{ end -}}
{{- $number := regexFind "^[0-9]+([.][0-9]+)?" $text -}}
{{- $unit := regexReplaceAll "^[0-9.]+ *" $text "" | trimSuffix "B" -}}
{{- $factors := dict "" 1 "k" 1000 "K" 1000 "M" 1000000 "G" 1000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- if or (not $number) (not (hasKey $factors $unit)) -}}
{{- fail (printf "%q is not a size such as 512Mi or 1Gi" $text) -}}
{{- end -}}
{{- mulf ($number | float64) (index $factors $unit | float64) | int64 -}}
{{- end -}}

{{/*
A configuration is seen by all who may read ConfigMaps or Pods: a secret in it must be a reference to the environment.
Takes a dict: value, path, secret (whether the key that it stands under says that it is one).
*/}}
{{- define "sidejudge-sidecar.noSecrets" -}}
{{- $path := .path -}}
{{- $secret := .secret -}}
{{- if kindIs "map" .value -}}
{{- range $name, $value := .value -}}
{{- $named := regexMatch "(?i)(^|[_-])(secret|secret_key|api_?key|routing_key|handover_key|randomness_key|password|token|authorization|bearer|basic|database)$" $name -}}
{{- $named = or $named (and (eq $name "url") (regexMatch "\\.(slack|teams|google_chat)$" $path)) (and (eq $name "key") (hasSuffix ".opsgenie" $path)) -}}
{{- include "sidejudge-sidecar.noSecrets" (dict "value" $value "path" (printf "%s.%s" $path $name) "secret" (or $secret $named)) -}}
{{- end -}}
{{- else if kindIs "slice" .value -}}
{{- range $index, $value := .value -}}
{{- include "sidejudge-sidecar.noSecrets" (dict "value" $value "path" (printf "%s[%d]" $path $index) "secret" $secret) -}}
{{- end -}}
{{- else if and $secret (kindIs "string" .value) (ne .value "") (not (regexMatch "\\$\\{[A-Za-z_]" .value)) -}}
{{- fail (printf "%s holds a secret in the open: put it into a Secret, name that under secrets, and write ${NAME} here" $path) -}}
{{- end -}}
{{- end -}}

{{/*
Refuses requests and limits that the API server would refuse, or a scheduler never place: what is no quantity, and a limit below its request.
Takes a dict: key (how messages call them), resources.
*/}}
{{- define "sidejudge-sidecar.checkResources" -}}
{{- $key := .key -}}
{{- $requests := (.resources | default dict).requests | default dict -}}
{{- $limits := (.resources | default dict).limits | default dict -}}
{{- range $kind, $wanted := dict "requests" $requests "limits" $limits -}}
{{- range $name, $quantity := $wanted }}{{ $_ := include "sidejudge-sidecar.quantity" (dict "key" (printf "%s.%s.%s" $key $kind $name) "quantity" $quantity) }}{{ end -}}
{{- end -}}
{{- range $name, $quantity := $limits -}}
{{- if hasKey $requests $name -}}
{{- $limit := include "sidejudge-sidecar.quantity" (dict "key" $key "quantity" $quantity) | float64 -}}
{{- $request := include "sidejudge-sidecar.quantity" (dict "key" $key "quantity" (get $requests $name)) | float64 -}}
{{- if lt $limit $request -}}
{{- fail (printf "%s.limits.%s (%v) is below %s.requests.%s (%v): no Pod is admitted so; raise the limit or lower the request" $key $name $quantity $key $name (get $requests $name)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A quantity of Kubernetes (250m, 0.5, 1.5Gi, 1e9) as a number. */}}
{{- define "sidejudge-sidecar.quantity" -}}
{{- $text := toString .quantity -}}
{{- if kindIs "float64" .quantity }}{{ $text = printf "%f" .quantity }}{{ end -}}
{{- if not (regexMatch "^[0-9]+(\\.[0-9]*)?([eE][+-]?[0-9]+|m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$" $text) -}}
{{- fail (printf "%s: %q is no quantity such as 250m, 0.5, 512Mi or 1Gi" .key $text) -}}
{{- end -}}
{{- $unit := regexFind "[a-zA-Z]+$" $text -}}
{{- $factors := dict "" 1.0 "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0 -}}
{{- mulf (trimSuffix $unit $text | float64) (index $factors $unit) -}}
{{- end -}}
