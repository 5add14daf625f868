//! Rehearsing a fleet in virtual time: how close to its bound an epoch of episodes comes.
//!
//! The expert plays on simulated desktops under a latency law while batches cost what the cost
//! table says. The bound of an epoch of N episodes over D desktops is the largest of: all policy
//! work at the rate of full batches; all desktop work over D; the longest single episode.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::{PolicyConfig, Profile, Schedule};
use crate::event::Purpose;
use crate::policy::scripted::{Script, Scripted};
use crate::policy::{Policy, SamplingParams};
use crate::prompt::PromptBuilder;
use crate::rollout::{
    Clock, CollectSpec, Collected, EpisodeContext, GateHandle, Job, Outcome, Recorder, collect,
};
use crate::session::{SessionError, open_desktops};
use crate::types::{Task, derive_seed};

const SEED_REHEARSAL: u64 = 0x7265_6865;

/// What is rehearsed.
pub struct RehearsalSpec {
    /// Desktops, latency and fault laws, cost table, step limit.
    pub profile: Profile,
    /// Tokenizer and template.
    pub prompt: Arc<PromptBuilder>,
    /// Tasks, taken in turn.
    pub tasks: Vec<Arc<Task>>,
    /// Episodes of the epoch.
    pub episodes: usize,
    /// Who waits for whom.
    pub schedule: Schedule,
}

/// What a rehearsal showed. Times are virtual unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rehearsal {
    /// Episodes scored.
    pub episodes: usize,
    /// Episodes that an error ended, re-rolls included.
    pub errors: u32,
    /// Steps done.
    pub steps: usize,
    /// The epoch, s.
    pub epoch_s: f64,
    /// The bound, s: the largest of the next three.
    pub bound_s: f64,
    /// All policy work in full batches, s.
    pub policy_s: f64,
    /// All desktop work over the desktops, s.
    pub desktops_s: f64,
    /// The longest episode, s.
    pub longest_s: f64,
    /// `bound_s / epoch_s`.
    pub efficiency: f64,
    /// Wall time, s.
    pub wall_s: f64,
}

/// Rehearses one epoch.
pub async fn rehearse(spec: &RehearsalSpec) -> Result<Rehearsal, SessionError> {
    let started = Instant::now();
    let profile = &spec.profile;
    let policy = scripted(profile, &spec.prompt);
    let mut envs = open_desktops(&profile.env, profile.env.desktops as u32)?;
    let clock = Clock::starting_at(Duration::ZERO);
    let (_gate_handle, gate) = GateHandle::new();
    let context = EpisodeContext {
        policy: &policy,
        prompt: &spec.prompt,
        speech: &profile.policy,
        sampling: SamplingParams {
            temperature: 0.0,
            top_p: 1.0,
            max_tokens: profile.sampling.max_reply_tokens,
        },
        max_steps: profile.rollout.max_steps,
        protocol: profile.reward.protocol,
        deadline: profile.rollout.deadline(),
        clock: clock.clone(),
        gate,
        recorder: &Recorder::silent(),
    };
    let collect_spec = CollectSpec {
        schedule: spec.schedule,
        max_rerolls: profile.rollout.max_rerolls,
        incarnation: 0,
        first_episode: 0,
    };
    let collection = collect(&context, &mut envs, &jobs(spec), collect_spec, &|_| ()).await;
    let epoch_s = clock.now().as_secs_f64();
    let scored: Vec<&Collected> = collection
        .outcomes
        .iter()
        .filter_map(Outcome::scored)
        .collect();
    let mut rehearsal = measure(&scored, profile, &policy, envs.len());
    rehearsal.errors = collection.errors;
    rehearsal.epoch_s = epoch_s;
    rehearsal.efficiency = rehearsal.bound_s / epoch_s.max(1e-9);
    rehearsal.wall_s = started.elapsed().as_secs_f64();
    Ok(rehearsal)
}

fn scripted(profile: &Profile, prompt: &Arc<PromptBuilder>) -> Scripted {
    let speech: PolicyConfig = profile.policy.clone();
    Scripted::new(
        Script::Expert,
        Arc::clone(prompt),
        speech,
        profile.engine.cost,
    )
}

fn jobs(spec: &RehearsalSpec) -> Vec<Job> {
    let job = |index: usize| Job {
        task: Arc::clone(&spec.tasks[index % spec.tasks.len()]),
        purpose: Purpose::Evaluate,
        group: None,
        sample: 0,
        seed: derive_seed(spec.profile.run.seed, &[SEED_REHEARSAL, index as u64]),
    };
    (0..spec.episodes).map(job).collect()
}

fn measure(
    scored: &[&Collected],
    profile: &Profile,
    policy: &Scripted,
    desktops: usize,
) -> Rehearsal {
    let seconds = |durations: &mut dyn Iterator<Item = Duration>| -> f64 {
        durations.map(|duration| duration.as_secs_f64()).sum()
    };
    let stats = policy.stats();
    let cost = profile.engine.cost;
    // In full batches a call's price is shared by all desktops.
    let share = |call: u64| call as f64 / desktops as f64;
    let policy_us = stats.images_encoded as f64
        * (share(cost.vision_call_us) + cost.vision_image_us as f64)
        + stats.images_encoded as f64 * share(cost.prefill_call_us)
        + stats.tokens_prefilled as f64 * cost.prefill_token_us as f64
        + stats.tokens_sampled as f64 * (share(cost.decode_call_us) + cost.decode_row_us as f64);
    let mut rehearsal = Rehearsal {
        episodes: scored.len(),
        steps: scored
            .iter()
            .map(|collected| collected.episode.steps.len())
            .sum(),
        policy_s: policy_us / 1e6,
        desktops_s: seconds(&mut scored.iter().map(|c| c.desktop_time)) / desktops as f64,
        longest_s: scored
            .iter()
            .map(|collected| collected.desktop_time.as_secs_f64())
            .fold(0.0, f64::max),
        ..Rehearsal::default()
    };
    rehearsal.bound_s = rehearsal
        .policy_s
        .max(rehearsal.desktops_s)
        .max(rehearsal.longest_s);
    rehearsal
}
