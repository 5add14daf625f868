//! What an update makes of a trajectory's tokens, one by one and reply by reply: for the eye,
//! after the loss. No tensors: the figures have been brought to the host for the report anyway.

use arpo::event::{Clip, F, SampleSignal, StepSignal, TokenSignals};
use arpo::grpo::{LossParams, TrainSample};

/// Figures of one trajectory. `logprobs`, `entropies` and `old_logprobs` are `[sampled]`.
pub(super) fn sample_signal(
    sample: &TrainSample,
    logprobs: &[f32],
    entropies: &[f32],
    old_logprobs: &[f32],
    params: LossParams,
) -> SampleSignal {
    let tokens = TokenSignals {
        advantage: sample.advantage,
        clip_low: params.clip_low,
        clip_high: params.clip_high,
        logprobs: logprobs.to_vec(),
        old_logprobs: old_logprobs.to_vec(),
        entropies: entropies.to_vec(),
    };
    let (mut steps, mut sums) = (Vec::new(), Sums::default());
    let mut token = 0;
    for (is_sampled, sampler) in sample.mask.iter().zip(&sample.sampler_logprobs) {
        if *is_sampled {
            sums.add(&tokens, token, f64::from(*sampler));
            token += 1;
        } else if sums.tokens > 0 {
            steps.push(std::mem::take(&mut sums).signal());
        }
    }
    if sums.tokens > 0 {
        steps.push(sums.signal());
    }
    SampleSignal {
        episode: sample.episode,
        replayed: sample.replayed,
        steps,
        tokens,
    }
}

/// Sums over a reply's tokens, in their order.
#[derive(Default)]
struct Sums {
    tokens: u32,
    ratio: f64,
    ratio_max: f64,
    ratio_min: f64,
    clip_high: f64,
    clip_low: f64,
    entropy: f64,
    logprob: f64,
    gap: f64,
}

impl Sums {
    fn add(&mut self, tokens: &TokenSignals, token: usize, sampler: f64) {
        let (ratio, clip) = (tokens.ratio(token), tokens.clip(token));
        let logprob = f64::from(tokens.logprobs[token]);
        if self.tokens == 0 {
            (self.ratio_max, self.ratio_min) = (ratio, ratio);
        }
        self.tokens += 1;
        self.ratio += ratio;
        self.ratio_max = self.ratio_max.max(ratio);
        self.ratio_min = self.ratio_min.min(ratio);
        self.clip_high += f64::from(u8::from(clip == Some(Clip::High)));
        self.clip_low += f64::from(u8::from(clip == Some(Clip::Low)));
        self.entropy += f64::from(tokens.entropies[token]);
        self.logprob += logprob;
        self.gap += (logprob - sampler).abs();
    }

    fn signal(self) -> StepSignal {
        let mean = |sum: f64| F(sum / f64::from(self.tokens.max(1)));
        StepSignal {
            tokens: self.tokens,
            ratio: mean(self.ratio),
            ratio_max: F(self.ratio_max),
            ratio_min: F(self.ratio_min),
            clip_high: mean(self.clip_high),
            clip_low: mean(self.clip_low),
            entropy: mean(self.entropy),
            logprob: mean(self.logprob),
            gap: mean(self.gap),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::sample_signal;
    use arpo::event::Clip;
    use arpo::grpo::{LossParams, TrainSample};
    use arpo::types::EpisodeId;

    #[test]
    fn replies_are_runs_of_sampled_tokens() {
        let sample = TrainSample {
            episode: EpisodeId {
                incarnation: 0,
                number: 7,
            },
            ids: vec![0; 7],
            mask: vec![false, true, true, false, false, true, false],
            sampler_logprobs: vec![0.0, -1.0, -2.0, 0.0, 0.0, -0.5, 0.0],
            images: Vec::new(),
            advantage: 1.0,
            weight: 1.0,
            replayed: true,
        };
        let params = LossParams {
            clip_low: 0.2,
            clip_high: 0.3,
            clip_dual: 3.0,
        };
        let logprobs = [-1.0, -1.5, -0.5];
        let signal = sample_signal(
            &sample,
            &logprobs,
            &[0.2, 0.4, 0.6],
            &[-1.0, -2.0, -0.5],
            params,
        );
        assert!(signal.replayed);
        let [first, second] = signal.steps[..] else {
            panic!("{:?}", signal.steps);
        };
        assert_eq!((first.tokens, second.tokens), (2, 1));
        // Ratios 1 and exp 0.5; the second is above 1.3 with a positive advantage.
        let largest = 0.5_f64.exp();
        assert!((first.ratio_max.0 - largest).abs() < 1e-6);
        assert!((first.ratio.0 - f64::midpoint(1.0, largest)).abs() < 1e-6);
        assert_eq!((first.clip_high.0, first.clip_low.0), (0.5, 0.0));
        assert!((first.gap.0 - 0.25).abs() < 1e-6);
        assert!((first.entropy.0 - 0.3).abs() < 1e-6);
        assert_eq!((second.ratio.0, second.gap.0), (1.0, 0.0));
        let tokens = &signal.tokens;
        assert_eq!((tokens.len(), tokens.advantage), (3, 1.0));
        assert_eq!(tokens.logprobs, logprobs);
        assert_eq!(tokens.old_logprobs, [-1.0, -2.0, -0.5]);
        assert_eq!(tokens.entropies, [0.2, 0.4, 0.6]);
        let clips: Vec<_> = (0..3).map(|token| tokens.clip(token)).collect();
        assert_eq!(clips, [None, Some(Clip::High), None]);
    }
}
