//! Rehearsing a fleet in virtual time: how close to its bound an epoch of episodes comes.
//!
//! The expert plays on simulated desktops under a latency law while batches cost what the cost
//! table says. The bound of an epoch of N episodes over D desktops is the largest of: all policy
//! work at the rate of full batches; all desktop work over D; the longest single episode. It
//! counts no waiting of any kind, so it does not depend on the schedule.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::simulated::SimulatedConfig;
use crate::config::{CostTable, PolicyConfig, Profile, Schedule};
use crate::evaluator::Scorer;
use crate::event::Purpose;
use crate::policy::scripted::{Script, Scripted};
use crate::policy::{Policy, PolicyStats, SamplingParams};
use crate::prompt::PromptBuilder;
use crate::rollout::{
    Clock, CollectSpec, Collected, Debugger, EpisodeContext, GateHandle, Job, Outcome, Recorder,
    Steering, collect,
};
use crate::session::{SessionError, open_desktops};
use crate::types::{Episode, Task, derive_seed};

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
    /// Actions that desktops carried out.
    pub actions: usize,
    /// The epoch, s.
    pub epoch_s: f64,
    /// The bound, s: the largest of the next three.
    pub bound_s: f64,
    /// All policy work in full batches, s.
    pub policy_s: f64,
    /// All desktop work over the desktops, s.
    pub desktops_s: f64,
    /// The longest episode's desktop work, s.
    pub longest_s: f64,
    /// `desktops_s` as the latency laws expect it, instead of as they were drawn, s.
    pub expected_desktops_s: f64,
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
    let mut envs = open_desktops(profile, profile.env.desktops as u32)?;
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
        debugger: Debugger::default(),
        scorer: Scorer::NATIVE,
        recorder: &Recorder::silent(),
    };
    let collect_spec = CollectSpec {
        schedule: spec.schedule,
        max_rerolls: profile.rollout.max_rerolls,
        incarnation: 0,
        first_episode: 0,
        steering: Steering::default(),
    };
    let jobs = jobs_in_turn(&spec.tasks, spec.episodes, profile.run.seed);
    let collection = collect(&context, &mut envs, &jobs, collect_spec, &|_| ()).await;
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

/// So many episodes of the tasks, taken in turn, as a rehearsal plays them.
pub(super) fn jobs_in_turn(tasks: &[Arc<Task>], episodes: usize, seed: u64) -> Vec<Job> {
    let job = |index: usize| {
        let task = Arc::clone(&tasks[index % tasks.len()]);
        let seed = derive_seed(seed, &[SEED_REHEARSAL, index as u64]);
        Job::alone(task, Purpose::Evaluate, seed)
    };
    (0..episodes).map(job).collect()
}

/// Everything but the epoch's own time.
fn measure(
    scored: &[&Collected],
    profile: &Profile,
    policy: &Scripted,
    desktops: usize,
) -> Rehearsal {
    let work = || scored.iter().map(|c| c.desktop_time.as_secs_f64());
    let actions = scored.iter().map(|c| num_performed(&c.episode)).sum();
    let mut rehearsal = Rehearsal {
        episodes: scored.len(),
        steps: scored.iter().map(|c| c.episode.steps.len()).sum(),
        actions,
        policy_s: full_batches_s(&policy.stats(), &profile.engine.cost, desktops),
        desktops_s: work().sum::<f64>() / desktops as f64,
        longest_s: work().fold(0.0, f64::max),
        expected_desktops_s: expected_s(&profile.env.simulated, scored.len(), actions)
            / desktops as f64,
        ..Rehearsal::default()
    };
    rehearsal.bound_s = rehearsal
        .policy_s
        .max(rehearsal.desktops_s)
        .max(rehearsal.longest_s);
    rehearsal
}

/// Actions that a desktop carried out: all but those that end an episode.
fn num_performed(episode: &Episode) -> usize {
    let actions = episode.steps.iter().flat_map(|step| &step.actions);
    actions.filter(|action| !action.is_terminal()).count()
}

/// All policy work where each batch is full, so that a call's price is shared by all desktops.
fn full_batches_s(stats: &PolicyStats, cost: &CostTable, desktops: usize) -> f64 {
    let each = |call: u64, one: u64| call as f64 / desktops as f64 + one as f64;
    let images = stats.images_encoded as f64;
    let images_us = images * each(cost.vision_call_us, cost.vision_image_us);
    let prefill_us = images * each(cost.prefill_call_us, 0)
        + stats.tokens_prefilled as f64 * cost.prefill_token_us as f64;
    let decode_us = stats.tokens_sampled as f64 * each(cost.decode_call_us, cost.decode_row_us);
    (images_us + prefill_us + decode_us) / 1e6
}

/// Desktop work that the laws expect of so many episodes with so many actions.
fn expected_s(laws: &SimulatedConfig, episodes: usize, actions: usize) -> f64 {
    episodes as f64 * (laws.reset_latency.mean_s() + laws.evaluate_latency.mean_s())
        + actions as f64 * laws.step_latency.mean_s()
}
