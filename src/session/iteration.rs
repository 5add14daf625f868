//! One iteration: collect, replay, advantages, old log-probabilities, updates, publish.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use crate::config::GrpoConfig;
use crate::event::{
    EventKind, F, IterationReport, MemberSignal, Phase, Purpose, SafePoint, StepSignal,
    UpdateReport,
};
use crate::grpo::{
    Injection, TrainSample, advantages, group_rewards, group_std, minibatches, weights,
};
use crate::rollout::{Collected, Collection, Job, Outcome, shorten};
use crate::screen::decode_png;
use crate::session::SessionError;
use crate::session::learner::{OldLogprobReport, UpdateSettings};
use crate::session::train::TrainSession;
use crate::store::StoreError;
use crate::types::{
    Episode, ErrorClass, GroupId, ImageHash, Iteration, Reward, Screenshot, Task, derive_seed,
};

const SEED_EPISODE: u64 = 0x6570_6973;
const SEED_REPLAY: u64 = 0x7265_706c;

/// A group after collection, and what replay made of it.
struct Group {
    id: GroupId,
    task: Arc<Task>,
    outcomes: Vec<Outcome>,
    injection: Option<Injection>,
    replayed_screenshots: Vec<Screenshot>,
    /// Whether episodes that a person touched are members.
    keeps_touched: bool,
}

/// One member as training sees it.
struct Member<'a> {
    episode: &'a Episode,
    screenshots: &'a [Screenshot],
    replayed: bool,
}

impl Group {
    /// The episode of an outcome, unless an error ended it or a person touched it.
    fn valid<'a>(&self, outcome: &'a Outcome) -> Option<&'a Collected> {
        let scored = outcome.scored();
        scored.filter(|collected| self.keeps_touched || !collected.episode.human_touched)
    }

    /// Raw outcomes in order, `None` where the member is not valid.
    fn raw_outcomes(&self) -> Vec<Option<f32>> {
        let outcome = |member: &Outcome| self.valid(member).map(|c| c.episode.reward.outcome);
        self.outcomes.iter().map(outcome).collect()
    }

    fn valid_outcomes(&self) -> Vec<f32> {
        self.raw_outcomes().into_iter().flatten().collect()
    }

    /// Valid members, with a stored success in its place.
    fn members(&self) -> Vec<Member<'_>> {
        let mut members = Vec::new();
        for (index, outcome) in self.outcomes.iter().enumerate() {
            if let Some(injection) = self.injection.as_ref().filter(|i| i.member == index) {
                members.push(Member {
                    episode: &injection.stored.episode,
                    screenshots: &self.replayed_screenshots,
                    replayed: true,
                });
            } else if let Some(Collected {
                episode,
                screenshots,
                ..
            }) = self.valid(outcome)
            {
                members.push(Member {
                    episode,
                    screenshots,
                    replayed: false,
                });
            }
        }
        members
    }
}

impl TrainSession {
    /// Does one iteration; false if the run was stopped in it, which then does not count.
    pub(super) async fn iterate(&mut self) -> Result<bool, SessionError> {
        let started = Instant::now();
        let iteration = Iteration(self.progress.iterations_done);
        let policy = self.collector.policy.version();
        self.collector
            .recorder
            .emit(EventKind::IterationStarted { iteration, policy });
        let settings = self.collector.control.settings();
        self.progress.settings = settings;
        let mut report = IterationReport {
            iteration,
            learning_rate: F(settings.learning_rate),
            temperature: F(settings.temperature),
            ..IterationReport::default()
        };

        let Some(mut groups) = self.collect_groups(iteration, &mut report).await? else {
            return Ok(false);
        };
        self.apply_replay(iteration, &mut groups, &mut report)?;
        let (samples, sizes) = self.samples(&groups, &mut report);
        if !self.safe_point(SafePoint::PreUpdate).await? {
            return Ok(false);
        }
        self.learn(samples, &sizes, &mut report).await?;
        report.policy = self.publish().await?;
        report.wall_ms = started.elapsed().as_millis() as u64;
        self.progress.iterations_done += 1;
        self.progress.reports.push(report.clone());
        self.collector
            .recorder
            .emit(EventKind::IterationFinished(report));
        Ok(true)
    }

    async fn collect_groups(
        &mut self,
        iteration: Iteration,
        report: &mut IterationReport,
    ) -> Result<Option<Vec<Group>>, SessionError> {
        let started = Instant::now();
        let (clock_before, sampled_before) = (
            self.collector.clock_ms,
            self.collector.policy.stats().tokens_sampled,
        );
        let grpo = self.collector.profile.grpo;
        let tasks = self.pool.batch(iteration.0, grpo.tasks_per_iteration);
        let jobs = self.dispatch(iteration, &tasks);
        self.collector
            .begin_phase(Phase::Collect, jobs.len() as u32);
        let temperature = report.temperature.0 as f32;
        let collection = self
            .collector
            .collect(&jobs, temperature, Phase::Collect)
            .await?;
        self.collector.end_phase(Phase::Collect, started);
        if self.collector.control.is_stopping() {
            return Ok(None);
        }
        check_errors(&collection, iteration)?;
        report.env_errors = collection.errors;
        report.collect_ms = started.elapsed().as_millis() as u64;
        report.clock_ms = self.collector.clock_ms - clock_before;
        let sampled = self.collector.policy.stats().tokens_sampled - sampled_before;
        report.tokens_per_s = F(sampled as f64 / started.elapsed().as_secs_f64().max(1e-9));
        let groups = into_groups(iteration, tasks, collection.outcomes, &grpo);
        self.report_groups(&groups, report)?;
        Ok(Some(groups))
    }

    /// The episodes of an iteration, group after group.
    fn dispatch(&self, iteration: Iteration, tasks: &[Arc<Task>]) -> Vec<Job> {
        let mut jobs = Vec::new();
        for (index, task) in tasks.iter().enumerate() {
            let group = GroupId {
                iteration,
                index: index as u32,
            };
            self.collector.recorder.emit(EventKind::GroupStarted {
                group,
                task: task.id.clone(),
                instruction: shorten(&task.instruction, 200),
                infeasible: task.is_infeasible(),
            });
            for sample in 0..self.collector.profile.grpo.group_size as u32 {
                let path = [SEED_EPISODE, iteration.0, index as u64, u64::from(sample)];
                let seed = derive_seed(self.collector.profile.run.seed, &path);
                jobs.push(Job {
                    group: Some(group),
                    sample,
                    ..Job::alone(Arc::clone(task), Purpose::Train, seed)
                });
            }
        }
        jobs
    }

    /// Writes each group's episodes to the run directory and tells of it.
    fn report_groups(
        &self,
        groups: &[Group],
        report: &mut IterationReport,
    ) -> Result<(), SessionError> {
        for group in groups {
            for collected in group.outcomes.iter().filter_map(Outcome::scored) {
                self.run.put_episode(&collected.episode)?;
            }
            self.collector.recorder.emit(EventKind::GroupFinished {
                group: group.id,
                outcomes: group.raw_outcomes(),
                std: F::from(group_std(&group.valid_outcomes())),
            });
        }
        summarize_groups(groups, report);
        Ok(())
    }

    /// Draws for groups that failed as a whole, then stores this iteration's successes.
    fn apply_replay(
        &mut self,
        iteration: Iteration,
        groups: &mut [Group],
        report: &mut IterationReport,
    ) -> Result<(), SessionError> {
        let mut config = self.collector.profile.replay.clone();
        config.enabled = self.progress.settings.replay.unwrap_or(config.enabled);
        for group in groups.iter_mut() {
            let path = [SEED_REPLAY, iteration.0, u64::from(group.id.index)];
            let seed = derive_seed(self.collector.profile.run.seed, &path);
            let mut rng = Pcg64Mcg::seed_from_u64(seed);
            let outcomes = group.raw_outcomes();
            let drawn = self
                .replay()
                .draw(&group.task.id, &outcomes, iteration, &config, &mut rng);
            let Some(injection) = drawn else { continue };
            group.replayed_screenshots = self.screenshots_of(&injection.stored.episode)?;
            report.replaced += 1;
            self.collector.recorder.emit(EventKind::ReplayInjected {
                group: group.id,
                sample: injection.member as u32,
                source: injection.stored.episode.id,
                source_policy: injection.stored.episode.policy_span().unwrap_or_default().1,
            });
            group.injection = Some(injection);
        }
        for collected in groups
            .iter()
            .flat_map(|group| &group.outcomes)
            .filter_map(Outcome::scored)
        {
            let episode = &collected.episode;
            let mut replay = self.replay();
            if replay.insert(episode, iteration, &config) {
                self.collector.recorder.emit(EventKind::ReplayStored {
                    task: episode.task.clone(),
                    episode: episode.id,
                    stored: replay.of_task(&episode.task).count() as u32,
                });
            }
        }
        report.stored = self.replay().len() as u32;
        Ok(())
    }

    fn screenshots_of(&self, episode: &Episode) -> Result<Vec<Screenshot>, SessionError> {
        let steps = episode.steps.iter();
        steps
            .map(|step| self.screenshot(&step.screenshot))
            .collect()
    }

    fn screenshot(&self, hash: &ImageHash) -> Result<Screenshot, SessionError> {
        let png = self.run.png(hash)?;
        let path = self.run.png_path(hash).unwrap_or_default();
        let decoded = decode_png(&png);
        Ok(decoded.map_err(|error| StoreError::damaged(&path, error.to_string()))?)
    }

    /// Trajectories with their advantages; also how many each group has.
    fn samples(
        &self,
        groups: &[Group],
        report: &mut IterationReport,
    ) -> (Vec<TrainSample>, Vec<usize>) {
        let (mut samples, mut sizes) = (Vec::new(), Vec::new());
        let mut stds = Vec::new();
        for group in groups {
            let members = group.members();
            let outcomes: Vec<f32> = members.iter().map(|m| m.episode.reward.outcome).collect();
            stds.push(group_std(&outcomes));
            // One trajectory alone says nothing about which half of the group was better.
            let advantages = self.group_advantages(&members);
            let has_signal = advantages.iter().any(|advantage| *advantage != 0.0);
            report.groups_zero_variance += u32::from(!has_signal);
            self.emit_signals(group.id, &members, &advantages);
            sizes.push(members.len());
            samples.extend(
                members
                    .iter()
                    .zip(advantages)
                    .map(|(m, a)| train_sample(m, a)),
            );
        }
        report.group_std_after = F::from(mean(&stds));
        (samples, sizes)
    }

    fn group_advantages(&self, members: &[Member<'_>]) -> Vec<f32> {
        let rewards: Vec<Reward> = members.iter().map(|member| member.episode.reward).collect();
        let config = self.collector.profile.reward;
        let totals = group_rewards(&rewards, config.format_weight as f32, config.format_scope);
        advantages(&totals, self.collector.profile.grpo.advantage_eps as f32)
    }

    fn emit_signals(&self, group: GroupId, members: &[Member<'_>], advantages: &[f32]) {
        let weight = self.collector.profile.reward.format_weight as f32;
        let signal = |(member, advantage): (&Member<'_>, &f32)| MemberSignal {
            episode: member.episode.id,
            reward: member.episode.reward.total(weight),
            advantage: F::from(*advantage),
            replayed: member.replayed,
        };
        self.collector.recorder.emit(EventKind::AdvantagesComputed {
            group,
            members: members.iter().zip(advantages).map(signal).collect(),
        });
    }

    /// Old log-probabilities and all updates of the iteration.
    async fn learn(
        &mut self,
        mut samples: Vec<TrainSample>,
        sizes: &[usize],
        report: &mut IterationReport,
    ) -> Result<(), SessionError> {
        let started = Instant::now();
        let grpo = self.collector.profile.grpo;
        let batches = minibatches(sizes, grpo.minibatches);
        for batch in &batches {
            set_weights(&mut samples, batch, grpo.denominator);
        }
        let has_signal: Vec<bool> = samples
            .iter()
            .map(|sample| sample.advantage != 0.0)
            .collect();
        self.collector
            .begin_phase(Phase::OldLogprobs, samples.len() as u32);
        let begun = self.learner.begin(samples, report.temperature.0).await?;
        let OldLogprobReport { gap_mean, gap_max } = begun;
        (report.logprob_gap, report.logprob_gap_max) = (F(gap_mean), F(gap_max));
        self.collector.end_phase(Phase::OldLogprobs, started);

        let update_started = Instant::now();
        let rounds = batches.len() * grpo.epochs;
        self.collector.begin_phase(Phase::Update, rounds as u32);
        let mut updates = Vec::new();
        for (round, batch) in batches.iter().cycle().take(rounds).enumerate() {
            if batch.iter().any(|index| has_signal[*index]) {
                updates.push(self.update(batch, report.iteration, round as u32).await?);
            }
        }
        self.collector.end_phase(Phase::Update, update_started);
        self.report_learned(report.iteration, &updates)?;
        summarize_updates(&updates, report);
        report.train_ms = started.elapsed().as_millis() as u64;
        Ok(())
    }

    /// What the last update of each trajectory made of it: its tokens are written to the run
    /// directory, its replies are told.
    fn report_learned(
        &self,
        iteration: Iteration,
        updates: &[UpdateReport],
    ) -> Result<(), SessionError> {
        let mut newest = BTreeMap::new();
        for sample in updates.iter().flat_map(|update| &update.samples) {
            newest.insert((sample.episode, sample.replayed), sample);
        }
        for ((episode, replayed), sample) in newest {
            self.run.put_learned(iteration, sample)?;
            self.collector.recorder.emit(EventKind::EpisodeLearned {
                episode,
                replayed,
                steps: sample.steps.iter().map(rounded).collect(),
            });
        }
        Ok(())
    }

    async fn update(
        &mut self,
        batch: &[usize],
        iteration: Iteration,
        round: u32,
    ) -> Result<UpdateReport, SessionError> {
        // Updates leave nobody time for commands, so those that wait are taken in between.
        self.collector.control.take_waiting();
        let settings = self.collector.control.settings();
        let grpo = &self.collector.profile.grpo;
        let (clip_low, clip_high) = settings.clip.unwrap_or((grpo.clip_low, grpo.clip_high));
        let settings = UpdateSettings {
            learning_rate: settings.learning_rate,
            clip_low,
            clip_high,
        };
        let mut update = self.learner.update(batch, settings).await?;
        update.iteration = iteration;
        update.update = round;
        // Told later, once each: the event goes without them.
        let samples = std::mem::take(&mut update.samples);
        self.collector
            .recorder
            .emit(EventKind::UpdateFinished(update.clone()));
        update.samples = samples;
        let total =
            (self.collector.profile.grpo.minibatches * self.collector.profile.grpo.epochs) as u32;
        self.collector.recorder.emit(EventKind::PhaseProgress {
            phase: Phase::Update,
            done: round + 1,
            total,
        });
        Ok(update)
    }

    async fn publish(&mut self) -> Result<crate::types::PolicyVersion, SessionError> {
        let started = Instant::now();
        self.collector.begin_phase(Phase::Publish, 1);
        let policy = self.learner.publish().await?;
        self.collector
            .recorder
            .emit(EventKind::PolicyPublished { policy });
        self.collector.end_phase(Phase::Publish, started);
        Ok(policy)
    }
}

/// Nine in ten failures are no bad luck: stop instead of training on the rest. What operators
/// ended is no failure.
fn check_errors(collection: &Collection, iteration: Iteration) -> Result<(), SessionError> {
    let mut failures = collection
        .outcomes
        .iter()
        .filter_map(|outcome| match outcome {
            Outcome::Failed(failed) => (failed.class != ErrorClass::Cancelled).then_some(failed),
            Outcome::Scored(_) => None,
        });
    let (failed, total) = (failures.clone().count(), collection.outcomes.len());
    match failures.next_back() {
        Some(last) if failed * 10 >= total * 9 => Err(SessionError::TooManyErrors {
            failed,
            total,
            iteration: iteration.0,
            last: last.message.clone(),
        }),
        _ => Ok(()),
    }
}

fn into_groups(
    iteration: Iteration,
    tasks: Vec<Arc<Task>>,
    outcomes: Vec<Outcome>,
    grpo: &GrpoConfig,
) -> Vec<Group> {
    let mut outcomes = outcomes.into_iter();
    let group = |(index, task): (usize, Arc<Task>)| Group {
        id: GroupId {
            iteration,
            index: index as u32,
        },
        task,
        outcomes: outcomes.by_ref().take(grpo.group_size).collect(),
        injection: None,
        replayed_screenshots: Vec::new(),
        keeps_touched: grpo.train_on_human_touched,
    };
    tasks.into_iter().enumerate().map(group).collect()
}

/// The iteration's figures before replay.
fn summarize_groups(groups: &[Group], report: &mut IterationReport) {
    let scored = || {
        groups
            .iter()
            .flat_map(|group| group.outcomes.iter().filter_map(|one| group.valid(one)))
    };
    let episodes = || scored().map(|collected| &collected.episode);
    let outcomes: Vec<f32> = episodes().map(|episode| episode.reward.outcome).collect();
    let stds: Vec<f32> = groups
        .iter()
        .map(|g| group_std(&g.valid_outcomes()))
        .collect();
    let steps: usize = episodes().map(|episode| episode.steps.len()).sum();
    let sampled: usize = episodes().map(|episode| episode.tokens.num_sampled()).sum();
    report.reward_mean = F::from(mean(&outcomes));
    report.group_std = F::from(mean(&stds));
    report.groups = groups.len() as u32;
    report.episodes = outcomes.len() as u32;
    report.malformed = episodes()
        .filter(|episode| !episode.is_well_formed())
        .count() as u32;
    report.steps_mean = F(steps as f64 / outcomes.len().max(1) as f64);
    report.reply_tokens_mean = F(sampled as f64 / steps.max(1) as f64);
    report.tokens_max = episodes()
        .map(|e| e.tokens.len() as u32)
        .max()
        .unwrap_or_default();
    let all = |group: &&Group, pass: bool| {
        let outcomes = group.valid_outcomes();
        !outcomes.is_empty() && outcomes.iter().all(|outcome| (*outcome > 0.5) == pass)
    };
    report.groups_all_pass = groups.iter().filter(|group| all(group, true)).count() as u32;
    report.groups_all_fail = groups.iter().filter(|group| all(group, false)).count() as u32;
}

fn summarize_updates(updates: &[UpdateReport], report: &mut IterationReport) {
    let mean = |value: &dyn Fn(&UpdateReport) -> F| {
        F(updates.iter().map(|update| value(update).0).sum::<f64>() / updates.len().max(1) as f64)
    };
    report.entropy = mean(&|update| update.entropy);
    report.clip_fraction = mean(&|update| F(update.clip_high.0 + update.clip_low.0));
    report.clip_high = mean(&|update| update.clip_high);
    report.clip_low = mean(&|update| update.clip_low);
    report.ratios = summed_ratios(updates);
    report.grad_norm = mean(&|update| update.grad_norm);
    report.loss = mean(&|update| update.loss);
    report.approx_kl = mean(&|update| update.approx_kl);
}

/// Four digits of each figure: a log of many trajectories stays small.
fn rounded(signal: &StepSignal) -> StepSignal {
    let round = |value: F| {
        if value.0 == 0.0 || !value.0.is_finite() {
            return value;
        }
        let scale = 10_f64.powf(3.0 - value.0.abs().log10().floor());
        F((value.0 * scale).round() / scale)
    };
    StepSignal {
        tokens: signal.tokens,
        ratio: round(signal.ratio),
        ratio_max: round(signal.ratio_max),
        ratio_min: round(signal.ratio_min),
        clip_high: round(signal.clip_high),
        clip_low: round(signal.clip_low),
        entropy: round(signal.entropy),
        logprob: round(signal.logprob),
        gap: round(signal.gap),
    }
}

/// Histograms added up; empty where no update has one.
fn summed_ratios(updates: &[UpdateReport]) -> Vec<u64> {
    let mut sums = Vec::new();
    for update in updates {
        sums.resize(sums.len().max(update.ratios.len()), 0);
        for (sum, count) in sums.iter_mut().zip(&update.ratios) {
            *sum += count;
        }
    }
    sums
}

/// Weights within the mini-batch at `indices`.
fn set_weights(
    samples: &mut [TrainSample],
    indices: &[usize],
    denominator: crate::config::Denominator,
) {
    let tokens: Vec<usize> = indices.iter().map(|i| samples[*i].num_sampled()).collect();
    let signal: Vec<bool> = indices
        .iter()
        .map(|i| samples[*i].advantage != 0.0)
        .collect();
    for (index, weight) in indices.iter().zip(weights(&tokens, &signal, denominator)) {
        samples[*index].weight = weight;
    }
}

fn train_sample(member: &Member<'_>, advantage: f32) -> TrainSample {
    let tokens = &member.episode.tokens;
    TrainSample {
        episode: member.episode.id,
        ids: tokens.ids().to_vec(),
        mask: tokens.mask().to_vec(),
        sampler_logprobs: tokens.sampler_logprobs().to_vec(),
        images: member.screenshots.to_vec(),
        advantage,
        weight: 0.0,
        replayed: member.replayed,
    }
}

fn mean(values: &[f32]) -> f32 {
    values.iter().sum::<f32>() / values.len().max(1) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::simulated::suite;
    use crate::types::{EpisodeEnd, EpisodeId, TokenStream};

    fn outcome(number: u64, outcome: f32, human_touched: bool) -> Outcome {
        let id = EpisodeId {
            incarnation: 0,
            number,
        };
        let episode = Episode {
            id,
            task: suite::task("ed_sub", 1).unwrap().id,
            group: None,
            sample: 0,
            seed: 0,
            steps: Vec::new(),
            final_screenshot: None,
            tokens: TokenStream::default(),
            end: EpisodeEnd::Finished,
            state_score: outcome,
            infeasible: false,
            reward: Reward {
                outcome,
                format: 0.0,
            },
            human_touched,
            branched_from: None,
        };
        Outcome::Scored(Box::new(Collected {
            episode,
            screenshots: Vec::new(),
            desktop_time: std::time::Duration::ZERO,
        }))
    }

    #[test]
    fn what_a_person_touched_is_no_member_unless_asked() {
        for (keeps_touched, outcomes, std) in [
            (false, vec![Some(0.0), None, Some(0.0)], 0.0),
            (true, vec![Some(0.0), Some(1.0), Some(0.0)], 0.577_35),
        ] {
            let group = Group {
                id: GroupId {
                    iteration: Iteration(0),
                    index: 0,
                },
                task: Arc::new(suite::task("ed_sub", 1).unwrap()),
                outcomes: vec![
                    outcome(0, 0.0, false),
                    outcome(1, 1.0, true),
                    outcome(2, 0.0, false),
                ],
                injection: None,
                replayed_screenshots: Vec::new(),
                keeps_touched,
            };
            assert_eq!(group.raw_outcomes(), outcomes);
            let valid = group.valid_outcomes();
            assert!((group_std(&valid) - std).abs() < 1e-5);
            assert_eq!(group.members().len(), valid.len());
            let mut report = IterationReport::default();
            summarize_groups(&[group], &mut report);
            assert_eq!(report.episodes as usize, valid.len());
        }
    }
}
