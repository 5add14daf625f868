//! OSWorld's own code, wherever it runs: what scores and reads where this program does not, or
//! beside it.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::found::Found;
use super::getters::GetterError;
use super::metrics::MetricError;
use crate::config::Evaluators;
use crate::env::RealDesktop;

/// OSWorld's own getters and metrics. Never the policy's fault where it fails: a metric that raises
/// is `MetricError::Raised`, one that could not be asked `MetricError::Unavailable`.
#[async_trait]
pub trait Original: Send + Sync {
    /// The score of a metric by its name; in [0, 1].
    async fn score(
        &self,
        metric: &str,
        result: &Found,
        expected: Option<&Found>,
        options: &Map<String, Value>,
    ) -> Result<f64, MetricError>;

    /// What a getter brings, `getter` as the task file has it.
    async fn get(&self, getter: &Value, desktop: RealDesktop<'_>) -> Result<Found, GetterError>;
}

/// Who scores real desktops. Simulated ones are scored by this program alone.
#[derive(Clone)]
pub struct Scorer {
    /// Whose scores count.
    pub evaluators: Evaluators,
    /// OSWorld's own code where it is installed.
    pub original: Option<Arc<dyn Original>>,
}

impl Scorer {
    /// This program alone.
    pub const NATIVE: Self = Self {
        evaluators: Evaluators::Native,
        original: None,
    };

    /// OSWorld's own code, or what to do about there being none.
    pub(super) fn original(&self) -> Result<&dyn Original, String> {
        self.original.as_deref().ok_or_else(|| {
            "only OSWorld's own code carries it; install that with `arpo tasks sidecar`".to_owned()
        })
    }
}
