//! The flat token stream of a trajectory: what the policy saw and what it sampled.

use serde::{Deserialize, Serialize};

/// Tokens of one trajectory in order. All three vectors are `[seq]`, always equally long.
///
/// Sampled ids are kept verbatim and never re-tokenised.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TokenStream {
    ids: Vec<u32>,
    mask: Vec<bool>,
    sampler_logprobs: Vec<f32>,
}

impl TokenStream {
    /// Appends prompt tokens: outside the loss.
    pub fn push_prompt(&mut self, ids: &[u32]) {
        self.ids.extend_from_slice(ids);
        self.mask.resize(self.ids.len(), false);
        self.sampler_logprobs.resize(self.ids.len(), 0.0);
    }

    /// Appends sampled tokens with the sampler's log-probabilities: inside the loss.
    ///
    /// # Panics
    /// If the two slices differ in length.
    pub fn push_sampled(&mut self, ids: &[u32], sampler_logprobs: &[f32]) {
        assert_eq!(
            ids.len(),
            sampler_logprobs.len(),
            "one log-prob a sampled token"
        );
        self.ids.extend_from_slice(ids);
        self.mask.resize(self.ids.len(), true);
        self.sampler_logprobs.extend_from_slice(sampler_logprobs);
    }

    /// Appends the tokens of `range` of another stream as they are: ids, mask, log-probabilities.
    ///
    /// # Panics
    /// If the other stream is shorter.
    pub fn push_part(&mut self, other: &Self, range: std::ops::Range<usize>) {
        self.ids.extend_from_slice(&other.ids[range.clone()]);
        self.mask.extend_from_slice(&other.mask[range.clone()]);
        self.sampler_logprobs
            .extend_from_slice(&other.sampler_logprobs[range]);
    }

    /// Token ids, `[seq]`.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// True where the token was sampled, `[seq]`.
    pub fn mask(&self) -> &[bool] {
        &self.mask
    }

    /// Log-probability at generation where sampled, 0 elsewhere, `[seq]`.
    pub fn sampler_logprobs(&self) -> &[f32] {
        &self.sampler_logprobs
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether it holds no token.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Number of sampled tokens.
    pub fn num_sampled(&self) -> usize {
        self.mask.iter().filter(|sampled| **sampled).count()
    }
}
