//! Episodes on real desktops against the wall's clock: what a fleet gets through.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::{Profile, Schedule};
use crate::env::Environment;
use crate::evaluator::Scorer;
use crate::policy::{Policy, SamplingParams};
use crate::prompt::PromptBuilder;
use crate::rollout::{
    Clock, CollectSpec, Collected, Debugger, EpisodeContext, GateHandle, Outcome, Recorder,
    Steering, collect,
};
use crate::session::rehearsal::jobs_in_turn;
use crate::types::Task;

/// What is played.
pub struct TimingSpec<'a> {
    /// Step limit, sampling, deadlines.
    pub profile: &'a Profile,
    /// Tokenizer and template.
    pub prompt: &'a PromptBuilder,
    /// Who plays.
    pub policy: &'a dyn Policy,
    /// Tasks, taken in turn.
    pub tasks: &'a [Arc<Task>],
    /// Episodes.
    pub episodes: usize,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timed {
    /// Episodes scored.
    pub episodes: usize,
    /// Of those, with an outcome above 0.5.
    pub successes: usize,
    /// Episodes that an error ended, re-rolls included.
    pub errors: u32,
    /// Steps of the scored ones.
    pub steps: usize,
    /// From the first reset to the last score, s.
    pub wall_s: f64,
}

/// Plays so many episodes over the desktops, each going on when it can.
pub async fn time_episodes(spec: &TimingSpec<'_>, envs: &mut [Box<dyn Environment>]) -> Timed {
    let profile = spec.profile;
    let (_gate_handle, gate) = GateHandle::new();
    let context = EpisodeContext {
        policy: spec.policy,
        prompt: spec.prompt,
        speech: &profile.policy,
        sampling: SamplingParams {
            temperature: 0.0,
            top_p: 1.0,
            max_tokens: profile.sampling.max_reply_tokens,
        },
        max_steps: profile.rollout.max_steps,
        protocol: profile.reward.protocol,
        deadline: profile.rollout.deadline(),
        clock: Clock::wall(Duration::ZERO),
        gate,
        debugger: Debugger::default(),
        scorer: Scorer::NATIVE,
        recorder: &Recorder::silent(),
    };
    let collect_spec = CollectSpec {
        schedule: Schedule::Async,
        max_rerolls: 0,
        incarnation: 0,
        first_episode: 0,
        steering: Steering::default(),
    };
    let jobs = jobs_in_turn(spec.tasks, spec.episodes, profile.run.seed);
    let began = Instant::now();
    let collection = collect(&context, envs, &jobs, collect_spec, &|_| ()).await;
    let wall_s = began.elapsed().as_secs_f64();
    let outcomes = collection.outcomes.iter();
    let scored: Vec<&Collected> = outcomes.filter_map(Outcome::scored).collect();
    let won = |one: &&&Collected| one.episode.reward.outcome > 0.5;
    Timed {
        episodes: scored.len(),
        successes: scored.iter().filter(won).count(),
        errors: collection.errors,
        steps: scored.iter().map(|one| one.episode.steps.len()).sum(),
        wall_s,
    }
}
