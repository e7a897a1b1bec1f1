"""How good is a test suite: does it accept right programs, reject wrong ones, and which tests would make it better?"""

from assay.audit.suite.inputs import Separation, generate, separating
from assay.audit.suite.mutation import Mutant, MutationReport, mutants, mutation_score
from assay.audit.suite.rates import (
    SuiteRates,
    auc,
    ceiling,
    diversity,
    mean_correlation,
    suite_rates,
    verifier_accuracy,
)
from assay.audit.suite.trials import Problem, Quality, Test, Trial, answers, quality, reference, trial

__all__ = [
    "Mutant",
    "MutationReport",
    "Problem",
    "Quality",
    "Separation",
    "SuiteRates",
    "Test",
    "Trial",
    "answers",
    "auc",
    "ceiling",
    "diversity",
    "generate",
    "mean_correlation",
    "mutants",
    "mutation_score",
    "quality",
    "reference",
    "separating",
    "suite_rates",
    "trial",
    "verifier_accuracy",
]
