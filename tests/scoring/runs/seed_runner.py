"""Seed 004's classes, word for word but for the indentation that its text has lost: an independent reference."""

from __future__ import annotations


class SeedTestSet:
    def __init__(self, name):
        self.name = name
        self.tests = []
        self.tags = {}

    def add_test(self, test_case):
        self.tests.append(test_case)
        for tag in test_case.get("tags", []):
            if tag not in self.tags:
                self.tags[tag] = []
            self.tags[tag].append(len(self.tests) - 1)

    def filter(self, **criteria):
        filtered = []
        for test in self.tests:
            match = True
            for key, value in criteria.items():
                if test.get(key) != value:
                    match = False
                    break
            if match:
                filtered.append(test)
        return filtered

    def get_complexity_distribution(self):
        distribution = {}
        for test in self.tests:
            complexity = test.get("complexity", "medium")
            distribution[complexity] = distribution.get(complexity, 0) + 1
        return distribution


class SeedRunner:
    def __init__(self, rubric, results):
        self.rubric = rubric
        self.results = results

    def summarize(self):
        if not self.results:
            return {"error": "No results"}
        passed = sum(1 for r in self.results if r["evaluation"]["passed"])
        dimension_totals = {}
        for dimension in self.rubric:
            dimension_totals[dimension] = {"total": 0, "count": 0}
        for result in self.results:
            for dimension, score in result["evaluation"]["dimension_scores"].items():
                if dimension in dimension_totals:
                    dimension_totals[dimension]["total"] += score
                    dimension_totals[dimension]["count"] += 1
        dimension_averages = {}
        for dimension, data in dimension_totals.items():
            if data["count"] > 0:
                dimension_averages[dimension] = data["total"] / data["count"]
        return {
            "total_tests": len(self.results),
            "passed": passed,
            "failed": len(self.results) - passed,
            "pass_rate": passed / len(self.results) if self.results else 0,
            "dimension_averages": dimension_averages,
            "failures": [r for r in self.results if not r["evaluation"]["passed"]],
        }
