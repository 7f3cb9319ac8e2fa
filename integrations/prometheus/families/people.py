"""People: pass ratios as people would have found them, cascades of judges, and agreement with labels."""

from __future__ import annotations

from .family import PROCESS, WHO, gauge

PASS_CORRECTED_RATIO = gauge(
    "sidejudge_pass_corrected_ratio", labels=WHO,
    help="Pass ratio that people would have found: the estimate, corrected for the judge's errors on labelled traces "
    f"(Rogan-Gladen). {PROCESS}",
    note="Absent while labels do not show both kinds of error, or the judge does not distinguish good from bad.",
)  # fmt: skip
PASS_CORRECTED_LOWER_RATIO = gauge(
    "sidejudge_pass_corrected_lower_ratio", labels=WHO,
    help=f"Lower bound of the corrected pass ratio, two-sided 95 %. {PROCESS}",
)  # fmt: skip
PASS_CORRECTED_UPPER_RATIO = gauge(
    "sidejudge_pass_corrected_upper_ratio", labels=WHO,
    help=f"Upper bound of the corrected pass ratio, two-sided 95 %. {PROCESS}",
)  # fmt: skip
PASS_RECTIFIED_RATIO = gauge(
    "sidejudge_pass_prediction_powered_ratio", labels=WHO,
    help="Pass ratio that people would have found, by prediction-powered inference: the estimate, and how many more of "
    f"the labelled traces people passed than the judge. {PROCESS}",
    note="Absent with fewer than 30 labels.",
)  # fmt: skip
PASS_RECTIFIED_LOWER_RATIO = gauge(
    "sidejudge_pass_prediction_powered_lower_ratio",
    labels=WHO,
    help=f"Lower bound of the prediction-powered pass ratio, two-sided 95 %. {PROCESS}",
)
PASS_RECTIFIED_UPPER_RATIO = gauge(
    "sidejudge_pass_prediction_powered_upper_ratio",
    labels=WHO,
    help=f"Upper bound of the prediction-powered pass ratio, two-sided 95 %. {PROCESS}",
)
CASCADE_VERDICTS = gauge(
    "sidejudge_cascade_verdicts", labels=(*WHO, "reason"),
    help=f"Verdicts by why a stronger judge was asked: `sure` (it was not), `doubt`, `drawn`. {PROCESS}",
    note="Only of rubrics with a cascade of judges. There the pass ratio is that of the strongest judge, estimated "
    "from the drawn ones; recording rules count verdicts as they were delivered.",
)  # fmt: skip
CASCADE_CHANGED = gauge(
    "sidejudge_cascade_changed", labels=(*WHO, "reason"),
    help=f"Verdicts that the stronger judge changed, from pass to fail or back. {PROCESS}",
)  # fmt: skip
CASCADE_DELIVERED_RATIO = gauge(
    "sidejudge_cascade_delivered_ratio", labels=WHO,
    help=f"Pass ratio of the verdicts as they were delivered, uncorrected. {PROCESS}",
)  # fmt: skip
AGREEMENT_PAIRS = gauge(
    "sidejudge_agreement_pairs", labels=("rubric", "metric"),
    help="Labels of people that were compared with our values, the latest 2000 at most.",
    note="Metric `pass` is the verdict itself. Every monitor of a project sees the labels of the whole project. The "
    "seven below are of these pairs; each is absent where it is not defined.",
)  # fmt: skip
AGREEMENT_RAW = gauge(
    "sidejudge_agreement_raw_ratio", "Share of labels with which our value agrees.", labels=("rubric", "metric")
)
AGREEMENT_KAPPA = gauge(
    "sidejudge_agreement_kappa_ratio", labels=("rubric", "metric"),
    help="Cohen's kappa of people and us, from -1 to 1: agreement beyond chance.",
)  # fmt: skip
AGREEMENT_KAPPA_LOWER = gauge(
    "sidejudge_agreement_kappa_lower_ratio", "Lower bound of kappa, two-sided 95 %.", labels=("rubric", "metric")
)
AGREEMENT_KAPPA_UPPER = gauge(
    "sidejudge_agreement_kappa_upper_ratio", "Upper bound of kappa, two-sided 95 %.", labels=("rubric", "metric")
)
AGREEMENT_AC1 = gauge(
    "sidejudge_agreement_gwet_ratio", labels=("rubric", "metric"),
    help="Gwet's AC1, from -1 to 1: as kappa, and steady where nearly everything passes.",
)  # fmt: skip
AGREEMENT_TRUE_POSITIVE = gauge(
    "sidejudge_agreement_true_positive_ratio", labels=("rubric", "metric"),
    help="Of what people pass, the share that we pass.",
)  # fmt: skip
AGREEMENT_TRUE_NEGATIVE = gauge(
    "sidejudge_agreement_true_negative_ratio", labels=("rubric", "metric"),
    help="Of what people fail, the share that we fail.",
)  # fmt: skip
LABELS_READ = gauge(
    "sidejudge_labels_read_timestamp_seconds", "Until when labels of people have been read. Absent until they have."
)
LABELS_PASSED_OVER = gauge(
    "sidejudge_labels_passed_over", labels=("reason",),
    help="Labels of the time last read (a day; at first 30) that do not count for agreement.",
    note="`unsigned`: no person is named (a prefill); `unmapped`: no rubric or metric matches its name; `asked_for`: "
    "we had asked for it because of a doubt; `unreadable`: neither pass nor failure; `unmet`: no verdict is on it; "
    "`other_version`: the verdict is of another version of the rubric, or by another judge; "
    "`taught`: the judge may have been shown it.",
)  # fmt: skip
LABELS_CORRECTIONS = gauge(
    "sidejudge_labels_corrections", labels=("rubric",),
    help="Answers with a verdict of ours that people corrected, the latest 2000 at most.",
)  # fmt: skip
LABELS_CORRECTED_PASSES = gauge(
    "sidejudge_labels_corrected_passes", "Answers that people corrected though we had passed them.", labels=("rubric",)
)
