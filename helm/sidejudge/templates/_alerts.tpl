{{/*
config.alerts, as rules and boards go by it: what stands in the configuration, or in monitoring.alerts where that lies elsewhere, and defaults.
Returns JSON: `kind` (which of files/rules), `marks` (what stands for what in the files), `change` (a severity) and `runbooks`.
*/}}
{{- define "sidejudge.alerts" -}}
{{- $given := .Values.monitoring.alerts | default ((.Values.config | default dict).alerts | default dict) -}}
{{- if regexMatch "\\$\\{[A-Za-z_]" (toJson (pick $given "window" "look" "mode" "corrected" "min_samples" "min_failures" "hysteresis" "limits" "thresholds" "change")) -}}
{{- fail "monitoring.rules: config.alerts holds a reference to the environment (${NAME}), which rules cannot follow: write the value itself under monitoring.alerts, or set monitoring.rules.enabled and monitoring.dashboards.enabled to false" -}}
{{- end -}}
{{- $hysteresis := $given.hysteresis | default dict -}}
{{- $limits := $given.limits | default dict -}}
{{- $thresholds := $given.thresholds | default dict -}}
{{- $mode := $given.mode | default "adaptive" | replace "sequence" "adaptive" -}}
{{- $corrected := ne ($given.corrected | default "none") "none" -}}
{{- $kind := eq $mode "adaptive" | ternary "reported" (ternary (printf "%s-corrected" $mode) $mode $corrected) -}}
{{- $look := include "sidejudge.ns" ($given.look | default "1m") | int64 -}}
{{- $looks := $hysteresis.looks | default 12 | int64 -}}
{{- $needed := $hysteresis.needed | default 10 | int64 -}}
{{- $hold := include "sidejudge.ns" ($hysteresis.hold | default "30m") | int64 -}}
{{- $for := include "sidejudge.ns" ($limits.lasting | default "10m") | int64 -}}
{{- $keep := include "sidejudge.ns" ($limits.keep | default "15m") | int64 -}}
{{- $ns := dict "window" (include "sidejudge.ns" ($given.window | default "1h") | int64) "look" $look "look_half" (div $look 2) "reach" (sub (mul $looks $look) (div $look 2)) "hold" $hold "hold_critical" (add $hold 600000000000) "for" $for "for_half" (div $for 2) "keep" $keep "keep_fifteenth" (div $keep 15) -}}
{{- $marks := dict "samples" (toString (hasKey $given "min_samples" | ternary $given.min_samples 30)) "failures" (toString (hasKey $given "min_failures" | ternary $given.min_failures 3)) "looks" (toString $looks) "needed" (toString $needed) "warning" (toString (hasKey $thresholds "warning" | ternary $thresholds.warning 0.85)) "critical" (toString (hasKey $thresholds "critical" | ternary $thresholds.critical 0.7)) -}}
{{- range $name, $value := $ns }}{{ $_ := set $marks $name (include "sidejudge.prometheusDuration" $value) }}{{ end -}}
{{- $runbooks := ($given.links | default dict).runbooks | default (include "sidejudge.shownRunbooks" .) -}}
{{- $at_once := or (has $mode (list "adaptive" "point")) (eq $looks 1) -}}
{{- dict "kind" $kind "at_once" $at_once "marks" $marks "zero" (list (ternary "hold" "" (eq $hold 0)) (ternary "for" "" (eq $for 0)) (ternary "keep" "" (eq $keep 0))) "change" (($given.change | default dict).severity | default "warning") "runbooks" $runbooks | toJson -}}
{{- end -}}

{{/* A duration of the configuration (1h30m, 500ms, 1.5h) in nanoseconds. */}}
{{- define "sidejudge.ns" -}}
{{- $factors := dict "ms" 1000000.0 "s" 1000000000.0 "m" 60000000000.0 "h" 3600000000000.0 "d" 86400000000000.0 -}}
{{- $sum := 0.0 -}}
{{- range regexFindAll "[0-9]+(\\.[0-9]+)?(ms|s|m|h|d)" (toString .) -1 -}}
{{- $unit := regexFind "[a-z]+$" . -}}
{{- $sum = addf $sum (mulf (trimSuffix $unit . | float64) (index $factors $unit)) -}}
{{- end -}}
{{- round $sum 0 | int64 -}}
{{- end -}}

{{/* Nanoseconds as Prometheus writes a duration: whole seconds, at least one. */}}
{{- define "sidejudge.prometheusDuration" -}}
{{- $left := max 1 (round (divf . 1000000000.0) 0 | int64) -}}
{{- range $unit := list "d" "h" "m" "s" -}}
{{- $size := index (dict "d" 86400 "h" 3600 "m" 60 "s" 1) $unit | int64 -}}
{{- $count := div $left $size -}}
{{- $left = mod $left $size -}}
{{- if $count }}{{ $count }}{{ $unit }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* A file with what the configuration decides in the place of its marks. Takes a dict: root, path, alerts. */}}
{{- define "sidejudge.filled" -}}
{{- $text := .root.Files.Get .path -}}
{{- range compact .alerts.zero }}{{ $text = regexReplaceAll (printf "(?m)^ *(for|keep_firing_for): '?@%s(_half|_fifteenth)?@'?\n" .) $text "" }}{{ end -}}
{{- if .alerts.at_once }}{{ $text = replace "after @needed@ of @looks@ looks" "at once" $text }}{{ end -}}
{{- range $name, $value := .alerts.marks }}{{ $text = replace (printf "@%s@" $name) $value $text }}{{ end -}}
{{- $text -}}
{{- end -}}

{{/* The address of a runbook: its name follows the setting, or takes the place of {runbook}. Takes a dict: runbooks, name. */}}
{{- define "sidejudge.runbook" -}}
{{- if contains "{runbook}" .runbooks }}{{ replace "{runbook}" .name .runbooks }}{{ else }}{{ printf "%s/%s" (trimSuffix "/" .runbooks) .name }}{{ end -}}
{{- end -}}

{{/* A board, whose rows of alerts link to their runbooks where these are known to lie. Takes what "sidejudge.filled" takes. */}}
{{- define "sidejudge.board" -}}
{{- $text := include "sidejudge.filled" . -}}
{{- with .alerts.runbooks -}}
{{- $link := dict "title" "Its runbook" "url" (include "sidejudge.runbook" (dict "runbooks" . "name" "${__data.fields.runbook}")) "targetBlank" true | toRawJson -}}
{{- $above := "\"url\": \"/alerting/list?search=${__data.fields.alertname}\",\n       \"targetBlank\": true\n      }" -}}
{{- $text = replace $above (printf "%s,\n      %s" $above $link) $text -}}
{{- end -}}
{{- $text -}}
{{- end -}}

{{/* Where people reach the runbooks that the gateway serves: behind the Ingress; empty without one. */}}
{{- define "sidejudge.shownRunbooks" -}}
{{- if and .Values.gateway.enabled .Values.ingress.enabled .Values.ingress.hosts -}}
{{ printf "%s://%s/help/alert" (ternary "https" "http" (not (empty .Values.ingress.tls))) (first .Values.ingress.hosts) }}
{{- end -}}
{{- end -}}
