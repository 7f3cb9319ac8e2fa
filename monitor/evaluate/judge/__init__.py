"""The judge evaluator: questions come in, a judge model's answers go out, within budget, cache and panel."""
