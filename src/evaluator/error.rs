//! Why a state has no score, and whose fault that is.

use std::time::Duration;

use super::getters::GetterError;
use super::metrics::MetricError;
use crate::env::EnvError;
use crate::types::ErrorClass;

/// Why a state has no score. Never the policy's fault.
#[derive(Debug, thiserror::Error)]
pub enum EvaluatorError {
    /// The desktop did not answer.
    #[error("evaluator of task {task} could not read the desktop: {source}")]
    Environment {
        /// Which task.
        task: String,
        /// What happened.
        #[source]
        source: EnvError,
    },
    /// The task file asks for a metric, getter or rule that does not exist.
    #[error("evaluator of task {task}: {reason}")]
    Spec {
        /// Which task.
        task: String,
        /// What is wrong in the file, and what would be right.
        reason: String,
    },
    /// What a getter needs is not there, or is nothing that it can read.
    #[error("evaluator of task {task}: {getter}: {source}")]
    Getting {
        /// Which task.
        task: String,
        /// Which getter.
        getter: &'static str,
        /// What it met.
        #[source]
        source: GetterError,
    },
    /// What the desktop shows is nothing that the metric can judge; OSWorld gives no score either.
    #[error("evaluator of task {task}: {metric} found what {source}")]
    Judging {
        /// Which task.
        task: String,
        /// Which metric.
        metric: String,
        /// What it met.
        #[source]
        source: MetricError,
    },
    /// Nobody could be asked for the score.
    #[error("evaluator of task {task}: {metric}: {reason}")]
    Unavailable {
        /// Which task.
        task: String,
        /// Which metric.
        metric: String,
        /// Why not, and what to do about it.
        reason: String,
    },
}

impl EvaluatorError {
    /// What a getter's failure is to the task's evaluator.
    pub(super) fn getting(task: &str, getter: &'static str, source: GetterError) -> Self {
        let task = task.to_owned();
        match source {
            GetterError::Environment(source) => Self::Environment { task, source },
            source => Self::Getting {
                task,
                getter,
                source,
            },
        }
    }

    /// What a metric's failure is to the task's evaluator.
    pub(super) fn scoring(task: &str, metric: &str, source: MetricError) -> Self {
        let (task, metric) = (task.to_owned(), metric.to_owned());
        match source {
            MetricError::Rules(reason) => Self::Spec { task, reason },
            MetricError::Unavailable(reason) => Self::Unavailable {
                task,
                metric,
                reason,
            },
            MetricError::Raised(_) => Self::Judging {
                task,
                metric,
                source,
            },
        }
    }

    /// The class shown to the operator: the desktop's own where the desktop failed.
    pub fn class(&self) -> ErrorClass {
        match self {
            // What does not answer to an evaluator in time need not be broken: it may be asked much.
            Self::Environment { source, .. } => match source.class() {
                ErrorClass::Timeout => ErrorClass::Evaluator,
                class => class,
            },
            Self::Spec { .. }
            | Self::Getting { .. }
            | Self::Judging { .. }
            | Self::Unavailable { .. } => ErrorClass::Evaluator,
        }
    }

    /// How long the failed evaluation took by the desktop's clock.
    pub fn elapsed(&self) -> Duration {
        match self {
            Self::Environment { source, .. } => source.elapsed(),
            Self::Spec { .. }
            | Self::Getting { .. }
            | Self::Judging { .. }
            | Self::Unavailable { .. } => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_a_desktop_could_not_be_read_is_told_once() {
        let ended = EnvError::Ended {
            machine: "docker desktop 0".to_owned(),
            reason: "its container ended with exit code 137".to_owned(),
            symptom: "cannot reach the guest for /file".to_owned(),
        };
        let late = EnvError::Timeout {
            what: "probe",
            after: Duration::from_secs(2),
        };
        let table = [
            (ended, ErrorClass::Crash, "exit code 137 (then: "),
            // Much may have been asked of it.
            (
                late,
                ErrorClass::Evaluator,
                "probe did not answer within 2 s",
            ),
        ];
        for (source, class, says) in table {
            let cause = source.to_string();
            let error = EvaluatorError::getting("t", "vm_file", GetterError::Environment(source));
            let told = error.to_string();
            let expected = format!("evaluator of task t could not read the desktop: {cause}");
            assert_eq!((told.as_str(), error.class()), (expected.as_str(), class));
            assert_eq!(told.matches(says).count(), 1, "{told}");
        }
    }
}
