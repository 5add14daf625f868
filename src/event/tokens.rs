//! What is known of single tokens: too much for events, so it lies in files beside episodes and
//! is asked for reply by reply.

use serde::{Deserialize, Serialize};

use crate::types::{EpisodeId, Iteration};

/// What an update made of a trajectory's sampled tokens. All three lists are `[sampled]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TokenSignals {
    /// The trajectory's advantage, the same for all of them.
    pub advantage: f32,
    /// Ratios were clipped below `1 - clip_low` where the advantage is negative,
    pub clip_low: f64,
    /// and above `1 + clip_high` where it is positive.
    pub clip_high: f64,
    /// Log-probabilities under the weights updated, nats.
    #[serde(with = "bits")]
    pub logprobs: Vec<f32>,
    /// Log-probabilities before the iteration's first update, nats.
    #[serde(with = "bits")]
    pub old_logprobs: Vec<f32>,
    /// Entropies of the distributions they were drawn from, under the weights updated, nats.
    #[serde(with = "bits")]
    pub entropies: Vec<f32>,
}

/// How a token's ratio was clipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clip {
    /// Above: it was made likelier enough.
    High,
    /// Below: it was made unlikelier enough.
    Low,
}

impl TokenSignals {
    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.logprobs.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.logprobs.is_empty()
    }

    /// Ratio of the weights updated to those before the iteration's first update.
    pub fn ratio(&self, token: usize) -> f64 {
        (f64::from(self.logprobs[token]) - f64::from(self.old_logprobs[token])).exp()
    }

    /// Whether the token's ratio was clipped.
    pub fn clip(&self, token: usize) -> Option<Clip> {
        let ratio = self.ratio(token);
        if ratio > 1.0 + self.clip_high && self.advantage > 0.0 {
            Some(Clip::High)
        } else if ratio < 1.0 - self.clip_low && self.advantage < 0.0 {
            Some(Clip::Low)
        } else {
            None
        }
    }

    /// The same of some of its tokens.
    #[must_use]
    pub fn part(&self, tokens: std::ops::Range<usize>) -> Self {
        Self {
            advantage: self.advantage,
            clip_low: self.clip_low,
            clip_high: self.clip_high,
            logprobs: self.logprobs[tokens.clone()].to_vec(),
            old_logprobs: self.old_logprobs[tokens.clone()].to_vec(),
            entropies: self.entropies[tokens].to_vec(),
        }
    }
}

/// What the newest iteration that learned from tokens made of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LearnedTokens {
    /// Which iteration.
    pub iteration: Iteration,
    /// Whether they came out of the replay buffer.
    pub replayed: bool,
    /// What its last update made of them.
    pub signals: TokenSignals,
}

/// One reply of an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyId {
    /// The episode.
    pub episode: EpisodeId,
    /// The step, from 0.
    pub step: u32,
}

/// A reply's tokens, with what is known of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReplyTokens {
    /// Their ids, `[tokens]`.
    pub ids: Vec<u32>,
    /// Their texts as bytes, `[tokens]`: a character may be spread over several. Empty where the
    /// run has no vocabulary.
    pub pieces: Vec<Vec<u8>>,
    /// The sampler's log-probabilities, `[tokens]`, nats; empty where a person wrote the reply.
    #[serde(with = "bits")]
    pub sampler_logprobs: Vec<f32>,
    /// What was learned from them, `[tokens]`; absent before.
    pub learned: Option<LearnedTokens>,
}

/// Floats in JSON as the numbers that their bits are: exact, and not finite ones too.
mod bits {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(floats: &[f32], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(floats.iter().map(|float| float.to_bits()))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f32>, D::Error> {
        let bits = Vec::<u32>::deserialize(from)?;
        Ok(bits.into_iter().map(f32::from_bits).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{Clip, TokenSignals};

    #[test]
    fn ratios_are_clipped_on_the_side_that_the_advantage_pushes_to() {
        // python: [math.exp(x) for x in (0.3, 0.2, -0.3, -0.2)]
        //   -> 1.3499, 1.2214, 0.7408, 0.8187
        let signals = |advantage: f32| TokenSignals {
            advantage,
            clip_low: 0.2,
            clip_high: 0.3,
            logprobs: vec![-0.7, -0.8, -1.3, -1.2],
            old_logprobs: vec![-1.0; 4],
            entropies: vec![0.0; 4],
        };
        for (advantage, clips) in [
            (0.5, [Some(Clip::High), None, None, None]),
            (-0.5, [None, None, Some(Clip::Low), None]),
            (0.0, [None; 4]),
        ] {
            let signals = signals(advantage);
            let found: Vec<_> = (0..4).map(|token| signals.clip(token)).collect();
            assert_eq!(found, clips, "{advantage}");
        }
        assert!((signals(1.0).ratio(0) - 1.3499).abs() < 1e-4);
    }

    #[test]
    fn figures_survive_json_bit_for_bit() {
        let signals = TokenSignals {
            logprobs: vec![-0.1, f32::NEG_INFINITY, f32::NAN],
            ..TokenSignals::default()
        };
        let text = serde_json::to_string(&signals).unwrap();
        let back: TokenSignals = serde_json::from_str(&text).unwrap();
        let bits = |signals: &TokenSignals| -> Vec<u32> {
            signals
                .logprobs
                .iter()
                .map(|float| float.to_bits())
                .collect()
        };
        assert_eq!(bits(&back), bits(&signals));
    }
}
