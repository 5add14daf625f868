//! `RunState::apply`: the only way a view of a run comes about.
//!
//! An event about something unknown (an episode evicted long ago, a desktop number beyond the
//! fleet) changes what it can and is never an error: a viewer must not fail over its input.

use std::collections::VecDeque;

use crate::event::{
    CLIP_HIGH_KEY, CLIP_LOW_KEY, Command, CommandState, CommandStatus, DESKTOPS_KEY, DesktopPhase,
    DesktopState, EpisodeDebug, EpisodeState, Event, EventKind, F, FailureState, FinishedPhase,
    GroupState, Header, Injection, LEARNING_RATE_KEY, MarkKind, MemberSignal, NoticeLevel,
    NoticeState, Phase, PhaseState, Purpose, REPLAY_KEY, RunMark, RunState, StepState,
    TEMPERATURE_KEY, TrainerState, UpdateReport,
};
use crate::types::{
    EpisodeEnd, EpisodeId, ErrorClass, GroupId, ImageHash, Iteration, PolicyVersion, TaskId,
};

use super::{
    COMMANDS_KEPT, CheckpointState, EPISODES_KEPT, FAILURES_KEPT, GROUPS_KEPT, ITERATIONS_KEPT,
    MARKS_KEPT, NOTICES_KEPT, PHASES_KEPT, UNGROUPED_KEPT, UPDATES_KEPT,
};

/// A desktop number beyond this is not believed; it bounds the memory a broken log can ask for.
const DESKTOPS_MAX: u32 = 65_536;
/// The same for the steps of an episode.
const STEPS_MAX: u32 = 4096;

impl RunState {
    /// Takes one event into account.
    #[expect(
        clippy::too_many_lines,
        reason = "one arm a kind, each a call; a table split in two reads worse"
    )]
    pub fn apply(&mut self, event: &Event) {
        self.count(event);
        let at_ms = event.at_ms;
        match &event.kind {
            EventKind::RunStarted { .. } => self.run_started(&event.kind),
            EventKind::RunResumed { incarnation, .. } => self.run_resumed(*incarnation, at_ms),
            EventKind::StateChanged { state } => self.trainer_changed(*state, at_ms),
            EventKind::IterationStarted { iteration, policy } => {
                self.iteration_started(*iteration, *policy, at_ms);
            }
            EventKind::PhaseStarted {
                iteration,
                phase,
                total,
            } => self.phase_started(*iteration, *phase, *total, at_ms),
            EventKind::PhaseProgress { phase, done, total } => {
                self.phase_progress(*phase, *done, *total);
            }
            EventKind::PhaseFinished {
                iteration,
                phase,
                wall_ms,
            } => self.phase_finished(*iteration, *phase, *wall_ms, at_ms),
            EventKind::GroupStarted { .. } => self.group_started(&event.kind, at_ms),
            EventKind::EpisodeStarted { .. } => self.episode_started(&event.kind, at_ms),
            EventKind::ObservationTaken {
                episode,
                step,
                image,
            } => self.observation_taken(*episode, *step, image, at_ms),
            EventKind::ActingStarted { episode, step } => {
                self.desktop_does(*episode, DesktopPhase::Acting, Some(*step), at_ms);
            }
            EventKind::ScoringStarted { episode } => {
                self.desktop_does(*episode, DesktopPhase::Scoring, None, at_ms);
            }
            EventKind::StepFinished { .. } => self.step_finished(&event.kind, at_ms),
            EventKind::EpisodeFinished { .. } => self.episode_finished(&event.kind, at_ms),
            EventKind::EpisodeFailed {
                episode,
                purpose: _,
                task,
                class,
                message,
                rerolled,
            } => self.episode_failed(FailureState {
                at_ms,
                episode: *episode,
                task: task.clone(),
                class: *class,
                message: message.clone(),
                rerolled: *rerolled,
            }),
            EventKind::MachineChanged { desktop, status } => {
                self.machine_changed(*desktop, status, at_ms);
            }
            EventKind::MachineMeasured { desktop, health } => {
                self.machine_measured(*desktop, health, at_ms);
            }
            EventKind::MachineSeen { desktop, image } => {
                self.machine_seen(*desktop, image, at_ms);
            }
            EventKind::GroupFinished {
                group,
                outcomes,
                std,
            } => self.group_finished(*group, outcomes, *std),
            EventKind::ReplayInjected {
                group,
                sample,
                source,
                source_policy,
            } => self.replay_injected(
                *group,
                Injection {
                    sample: *sample,
                    source: *source,
                    source_policy: *source_policy,
                },
            ),
            EventKind::ReplayStored {
                task,
                episode,
                stored,
            } => self.replay_stored(task, *episode, *stored, at_ms),
            EventKind::AdvantagesComputed { group, members } => {
                self.advantages_computed(*group, members);
            }
            EventKind::UpdateFinished(report) => self.update_finished(report),
            EventKind::EpisodeLearned {
                episode,
                replayed,
                steps,
            } => self.episode_learned(*episode, *replayed, steps),
            EventKind::PolicyPublished { policy } => self.policy = *policy,
            EventKind::CheckpointSaved {
                iterations_done,
                path,
                weights,
            } => {
                self.checkpoint = Some(CheckpointState {
                    at_ms,
                    iterations_done: *iterations_done,
                    path: path.clone(),
                    weights: weights.clone(),
                });
                self.mark(MarkKind::Checkpoint, at_ms);
            }
            EventKind::IterationFinished(report) => {
                self.policy = report.policy;
                self.history.push(report.clone());
                self.coverage.push(self.covered_tasks() as u32);
            }
            EventKind::StoredPinned {
                task,
                episode,
                pinned,
            } => self.stored_pinned(task, *episode, *pinned),
            EventKind::StoredDropped { task, episode } => self.stored_dropped(task, *episode),
            EventKind::EvaluationQueued { .. }
            | EventKind::EvaluationStarted { .. }
            | EventKind::TrialFinished { .. }
            | EventKind::EvaluationCancelled { .. }
            | EventKind::EvalFinished(_) => {
                if let EventKind::EvalFinished(report) = &event.kind {
                    let name = report.name.clone();
                    self.mark(MarkKind::Evaluation { name }, at_ms);
                }
                self.evaluation_event(&event.kind, at_ms);
            }
            EventKind::SettingChanged { key, value } => {
                self.setting_changed(key, *value);
                let (key, value) = (key.clone(), *value);
                self.mark(MarkKind::Setting { key, value }, at_ms);
            }
            EventKind::CommandReceived {
                id,
                request,
                origin,
            } => self.command_received(*id, request, origin, at_ms),
            EventKind::CommandAccepted { id } => {
                self.command_answered(*id, CommandStatus::Accepted, at_ms);
            }
            EventKind::CommandRefused { id, reason } => {
                let reason = reason.clone();
                self.command_answered(*id, CommandStatus::Refused { reason }, at_ms);
            }
            EventKind::CommandDone { id } => {
                self.command_answered(*id, CommandStatus::Done, at_ms);
            }
            EventKind::EpisodeHeld(held) => self.episode_held(held, at_ms),
            EventKind::CandidatesProposed(proposed) => self.candidates_proposed(proposed),
            EventKind::EpisodeReleased(released) => self.episode_released(released),
            EventKind::EpisodeBranched(branched) => self.episode_branched(branched),
            EventKind::BranchReplayed(replayed) => self.branch_replayed(replayed),
            EventKind::BreakpointsChanged(changed) => {
                self.breakpoints.clone_from(&changed.breakpoints);
            }
            EventKind::Notice { level, text } => self.notice(NoticeState {
                level: *level,
                text: text.clone(),
                class: None,
                episode: None,
                count: 1,
                first_ms: at_ms,
                last_ms: at_ms,
            }),
            EventKind::RunFinished(summary) => {
                let failed = summary.status == "failed";
                self.summary = Some(summary.clone());
                self.quiet(at_ms);
                let state = if failed {
                    TrainerState::Failed
                } else {
                    TrainerState::Finished
                };
                self.trainer_changed(state, at_ms);
            }
            EventKind::Unknown => self.counters.unknown_events += 1,
        }
    }

    /// Accounts for the event's number: what is missing, and what a resume leaves out.
    fn count(&mut self, event: &Event) {
        let expected = self.next_seq;
        match event.kind {
            EventKind::RunResumed {
                discard_from_seq, ..
            } => {
                self.superseded += expected.saturating_sub(discard_from_seq);
                self.missed += discard_from_seq.min(event.seq).saturating_sub(expected);
            }
            _ => self.missed += event.seq.saturating_sub(expected),
        }
        self.next_seq = self.next_seq.max(event.seq + 1);
        self.at_ms = self.at_ms.max(event.at_ms);
    }

    fn run_started(&mut self, kind: &EventKind) {
        let EventKind::RunStarted {
            schema,
            run,
            version,
            profile,
            unix_ms,
            seed,
            desktops,
            group_size,
            tasks_per_iteration,
            iterations,
            max_steps,
            num_tasks,
            context_tokens,
            learning_rate,
            temperature,
            clip_low,
            clip_high,
            replay,
            virtual_clock,
        } = kind
        else {
            return;
        };
        self.header = Some(Header {
            schema: *schema,
            run: run.clone(),
            version: version.clone(),
            profile: profile.clone(),
            unix_ms: *unix_ms,
            seed: *seed,
            group_size: *group_size,
            tasks_per_iteration: *tasks_per_iteration,
            iterations: *iterations,
            max_steps: *max_steps,
            num_tasks: *num_tasks,
            context_tokens: *context_tokens,
            virtual_clock: *virtual_clock,
        });
        self.settings.learning_rate = F(*learning_rate);
        self.settings.temperature = F(*temperature);
        self.settings.desktops = *desktops;
        self.settings.clip_low = clip_low.map(F);
        self.settings.clip_high = clip_high.map(F);
        self.settings.replay = *replay;
        self.desktops = vec![DesktopState::default(); (*desktops).min(DESKTOPS_MAX) as usize];
    }

    /// The engine is new: nothing that ran still runs.
    fn run_resumed(&mut self, incarnation: u32, at_ms: u64) {
        self.incarnation = incarnation;
        self.summary = None;
        self.quiet(at_ms);
        for desktop in &mut self.desktops {
            desktop.machine = None;
        }
        self.interrupt_evaluations(at_ms);
        self.episodes.retain(|_, episode| !episode.is_running());
        self.breakpoints.clear();
        self.trainer_changed(TrainerState::Starting, at_ms);
    }

    /// No phase runs and every desktop is idle.
    fn quiet(&mut self, at_ms: u64) {
        self.phases.clear();
        self.held.clear();
        for desktop in &mut self.desktops {
            desktop.phase = DesktopPhase::Idle;
            desktop.since_ms = at_ms;
        }
    }

    fn trainer_changed(&mut self, state: TrainerState, at_ms: u64) {
        if self.trainer != state {
            if matches!(state, TrainerState::Paused(_)) {
                self.mark(MarkKind::Pause, at_ms);
            }
            self.trainer = state;
            self.trainer_since_ms = at_ms;
        }
    }

    /// Notes something for the charts, at the running iteration.
    fn mark(&mut self, kind: MarkKind, at_ms: u64) {
        let iteration = self.iteration.unwrap_or_default();
        let mark = RunMark {
            iteration,
            at_ms,
            kind,
        };
        push_bounded(&mut self.marks, mark, MARKS_KEPT);
    }

    fn iteration_started(&mut self, iteration: Iteration, policy: PolicyVersion, at_ms: u64) {
        self.iteration = Some(iteration);
        self.iteration_since_ms = at_ms;
        self.policy = policy;
        let oldest = Iteration((iteration.0 + 1).saturating_sub(ITERATIONS_KEPT));
        self.groups.retain(|id, _| id.iteration >= oldest);
        self.episodes
            .retain(|_, episode| episode.group.is_none_or(|group| group.iteration >= oldest));
    }

    fn phase_started(&mut self, iteration: Iteration, phase: Phase, total: u32, at_ms: u64) {
        self.phases.retain(|running| running.phase != phase);
        self.phases.push(PhaseState {
            iteration,
            phase,
            done: 0,
            total,
            since_ms: at_ms,
        });
    }

    fn phase_progress(&mut self, phase: Phase, done: u32, total: u32) {
        if let Some(running) = self.phases.iter_mut().find(|p| p.phase == phase) {
            running.done = done;
            running.total = total;
        }
    }

    fn phase_finished(&mut self, iteration: Iteration, phase: Phase, wall_ms: u64, at_ms: u64) {
        self.phases.retain(|running| running.phase != phase);
        let finished = FinishedPhase {
            iteration,
            phase,
            ended_ms: at_ms,
            wall_ms,
        };
        push_bounded(&mut self.finished_phases, finished, PHASES_KEPT);
    }

    fn group_started(&mut self, kind: &EventKind, at_ms: u64) {
        let EventKind::GroupStarted {
            group,
            task,
            instruction,
            infeasible,
        } = kind
        else {
            return;
        };
        let group_size = self.header.as_ref().map_or(0, |header| header.group_size);
        let state = GroupState {
            id: *group,
            task: task.clone(),
            instruction: instruction.clone(),
            infeasible: *infeasible,
            started_ms: at_ms,
            members: vec![None; group_size.min(STEPS_MAX) as usize],
            outcomes: None,
            std: None,
            injected: Vec::new(),
            signals: Vec::new(),
        };
        self.groups.insert(*group, state);
        while self.groups.len() > GROUPS_KEPT {
            self.groups.pop_first();
        }
    }

    fn episode_started(&mut self, kind: &EventKind, at_ms: u64) {
        let EventKind::EpisodeStarted {
            episode,
            purpose,
            group,
            sample,
            task,
            desktop,
            evaluation,
            infeasible,
        } = kind
        else {
            return;
        };
        let group_state = group.and_then(|id| self.groups.get_mut(&id));
        if let (Some(state), true) = (group_state, *sample < STEPS_MAX) {
            let place = *sample as usize;
            if state.members.len() <= place {
                state.members.resize(place + 1, None);
            }
            state.members[place] = Some(*episode);
        }
        if let Some(state) = self.desktop_mut(*desktop) {
            state.episode = Some(*episode);
            state.task = Some(task.clone());
            state.step = 0;
            state.phase = DesktopPhase::Resetting;
            state.since_ms = at_ms;
            // What was seen past the server was of the machine before.
            if let Some(machine) = &mut state.machine {
                machine.seen_from_outside = false;
            }
        }
        let new = new_episode(*episode, *purpose, task.clone(), at_ms);
        let new = EpisodeState {
            group: *group,
            sample: *sample,
            desktop: *desktop,
            evaluation: *evaluation,
            infeasible: *infeasible,
            ..new
        };
        self.episodes.insert(*episode, new);
        self.evict_episodes();
    }

    fn evict_episodes(&mut self) {
        let ungrouped = self.episodes.values().filter(|e| e.group.is_none());
        if ungrouped.count() > UNGROUPED_KEPT {
            let mut ids = self.episodes.values().filter(|e| e.group.is_none());
            if let Some(oldest) = ids.next().map(|episode| episode.id) {
                self.episodes.remove(&oldest);
            }
        }
        while self.episodes.len() > EPISODES_KEPT {
            self.episodes.pop_first();
        }
    }

    fn observation_taken(&mut self, id: EpisodeId, step: u32, image: &ImageHash, at_ms: u64) {
        let Some(episode) = self.episodes.get_mut(&id) else {
            return;
        };
        if let Some(state) = step_mut(episode, step) {
            state.image = Some(image.clone());
            state.observed_ms = at_ms;
        }
        self.desktop_does(id, DesktopPhase::Thinking, Some(step), at_ms);
        if let Some(desktop) = self.desktop_of(id) {
            desktop.image = Some(image.clone());
            desktop.image_ms = at_ms;
            if let Some(machine) = &mut desktop.machine {
                machine.seen_from_outside = false;
            }
        }
    }

    fn step_finished(&mut self, kind: &EventKind, at_ms: u64) {
        let EventKind::StepFinished {
            episode: id,
            step,
            thought,
            actions,
            malformed,
            reply_tokens,
            mean_logprob,
            generate_ms,
            act_ms,
        } = kind
        else {
            return;
        };
        let Some(episode) = self.episodes.get_mut(id) else {
            return;
        };
        episode.sampled_tokens += reply_tokens;
        episode.tokens += reply_tokens;
        if let Some(state) = step_mut(episode, *step) {
            *state = StepState {
                image: state.image.take(),
                observed_ms: state.observed_ms,
                thought: thought.clone(),
                actions: actions.clone(),
                malformed: malformed.clone(),
                reply_tokens: *reply_tokens,
                mean_logprob: *mean_logprob,
                generate_ms: *generate_ms,
                act_ms: *act_ms,
                finished: true,
            };
        }
        self.desktop_does(*id, DesktopPhase::Acting, Some(*step), at_ms);
    }

    fn episode_finished(&mut self, kind: &EventKind, at_ms: u64) {
        let EventKind::EpisodeFinished {
            episode: id,
            purpose,
            task,
            end,
            outcome,
            format,
            state_score,
            steps,
            tokens,
            sampled_tokens,
            clock_ms,
            human_touched,
        } = kind
        else {
            return;
        };
        self.held.remove(id);
        self.counters.steps += u64::from(*steps);
        self.counters.sampled_tokens += u64::from(*sampled_tokens);
        self.counters.malformed += u64::from(*end == EpisodeEnd::Malformed);
        if *purpose == Purpose::Train {
            self.counters.episodes += 1;
            self.counters.successes += u64::from(*outcome > 0.5);
        } else {
            self.counters.other_episodes += 1;
        }
        self.desktop_does(*id, DesktopPhase::Idle, None, at_ms);
        if let Some(desktop) = self.desktop_of(*id) {
            desktop.episodes += 1;
        }
        let episode = self
            .episodes
            .entry(*id)
            .or_insert_with(|| new_episode(*id, *purpose, task.clone(), at_ms));
        // A screenshot beyond the last step is the one after it.
        if episode.steps.len() > *steps as usize {
            episode.final_image = episode.steps.pop().and_then(|step| step.image);
        }
        episode.ended_ms = Some(at_ms);
        episode.end = Some(*end);
        episode.outcome = Some(*outcome);
        episode.format = Some(*format);
        episode.state_score = Some(*state_score);
        episode.tokens = *tokens;
        episode.sampled_tokens = *sampled_tokens;
        episode.clock_ms = *clock_ms;
        episode.debug.human_touched = *human_touched;
    }

    fn episode_failed(&mut self, failure: FailureState) {
        *self.counters.errors.entry(failure.class).or_default() += 1;
        self.held.remove(&failure.episode);
        if failure.rerolled {
            self.counters.rerolled += 1;
        } else {
            self.counters.dropped += 1;
        }
        self.desktop_does(failure.episode, DesktopPhase::Failed, None, failure.at_ms);
        if let Some(desktop) = self.desktop_of(failure.episode) {
            desktop.errors += 1;
        }
        if let Some(episode) = self.episodes.get_mut(&failure.episode) {
            episode.ended_ms = Some(failure.at_ms);
            episode.failure = Some(failure.clone());
        }
        // What the operator or the scheduler ended on purpose is no alarm.
        if failure.class != ErrorClass::Cancelled {
            self.notice(NoticeState {
                level: NoticeLevel::Warning,
                text: failure.message.clone(),
                class: Some(failure.class),
                episode: Some(failure.episode),
                count: 1,
                first_ms: failure.at_ms,
                last_ms: failure.at_ms,
            });
        }
        push_bounded(&mut self.failures, failure, FAILURES_KEPT);
    }

    fn group_finished(&mut self, id: GroupId, outcomes: &[Option<f32>], std: F) {
        self.counters.groups += 1;
        if let Some(group) = self.groups.get_mut(&id) {
            group.outcomes = Some(outcomes.to_vec());
            group.std = Some(std);
            let scored: Vec<f32> = outcomes.iter().copied().flatten().collect();
            let solved = scored.iter().filter(|outcome| **outcome > 0.5).count();
            let replay = self.replay.entry(group.task.clone()).or_default();
            replay.groups += 1;
            replay.solved += solved as u64;
            if !scored.is_empty() {
                replay.groups_all_fail += u64::from(solved == 0);
                replay.reward = Some(F::from(scored.iter().sum::<f32>() / scored.len() as f32));
            }
        }
    }

    fn advantages_computed(&mut self, id: GroupId, members: &[MemberSignal]) {
        if members.iter().all(|member| member.advantage == F(0.0)) {
            self.counters.zero_variance_groups += 1;
        }
        for member in members.iter().filter(|member| !member.replayed) {
            if let Some(episode) = self.episodes.get_mut(&member.episode) {
                episode.reward = Some(member.reward);
                episode.advantage = Some(member.advantage);
            }
        }
        if let Some(group) = self.groups.get_mut(&id) {
            group.signals = members.to_vec();
        }
    }

    fn update_finished(&mut self, report: &UpdateReport) {
        if report.skipped {
            self.counters.skipped_updates += 1;
        } else {
            self.counters.updates += 1;
        }
        push_bounded(&mut self.updates, report.clone(), UPDATES_KEPT);
    }

    fn setting_changed(&mut self, key: &str, value: F) {
        match key {
            LEARNING_RATE_KEY => self.settings.learning_rate = value,
            TEMPERATURE_KEY => self.settings.temperature = value,
            DESKTOPS_KEY => self.settings.desktops = value.0 as u32,
            CLIP_LOW_KEY => self.settings.clip_low = Some(value),
            CLIP_HIGH_KEY => self.settings.clip_high = Some(value),
            REPLAY_KEY => self.settings.replay = Some(value.0 > 0.5),
            _ => {}
        }
        self.settings.changed.insert(key.to_owned(), value);
    }

    fn command_received(&mut self, id: u64, request: &Command, origin: &str, at_ms: u64) {
        let command = CommandState {
            id,
            request: request.clone(),
            origin: origin.to_owned(),
            at_ms,
            status: CommandStatus::Received,
            answered_ms: None,
        };
        push_bounded(&mut self.commands, command, COMMANDS_KEPT);
    }

    fn command_answered(&mut self, id: u64, status: CommandStatus, at_ms: u64) {
        if let Some(command) = self.commands.iter_mut().rev().find(|c| c.id == id) {
            command.status = status;
            command.answered_ms = Some(at_ms);
        }
    }

    /// Adds a notice; an equal one gains a count and moves to the end.
    fn notice(&mut self, mut new: NoticeState) {
        let equal = self.notices.iter().position(|old| {
            old.level == new.level && old.class == new.class && old.text == new.text
        });
        if let Some(old) = equal.and_then(|index| self.notices.remove(index)) {
            new.count += old.count;
            new.first_ms = old.first_ms;
        }
        push_bounded(&mut self.notices, new, NOTICES_KEPT);
    }

    pub(super) fn desktop_mut(&mut self, number: u32) -> Option<&mut DesktopState> {
        if number >= DESKTOPS_MAX {
            return None;
        }
        let index = number as usize;
        if self.desktops.len() <= index {
            self.desktops.resize(index + 1, DesktopState::default());
        }
        Some(&mut self.desktops[index])
    }

    /// The desktop that runs this episode, unless it has gone on to another one.
    fn desktop_of(&mut self, id: EpisodeId) -> Option<&mut DesktopState> {
        let number = self.episodes.get(&id)?.desktop;
        let desktop = self.desktops.get_mut(number as usize)?;
        (desktop.episode == Some(id)).then_some(desktop)
    }

    fn desktop_does(&mut self, id: EpisodeId, phase: DesktopPhase, step: Option<u32>, at_ms: u64) {
        let Some(desktop) = self.desktop_of(id) else {
            return;
        };
        if desktop.phase != phase {
            desktop.phase = phase;
            desktop.since_ms = at_ms;
        }
        desktop.step = step.unwrap_or(desktop.step);
    }
}

impl EpisodeState {
    /// An episode that has just begun, of which no more is known.
    pub fn new(id: EpisodeId, purpose: Purpose, task: TaskId, at_ms: u64) -> Self {
        new_episode(id, purpose, task, at_ms)
    }
}

fn new_episode(id: EpisodeId, purpose: Purpose, task: TaskId, at_ms: u64) -> EpisodeState {
    EpisodeState {
        id,
        purpose,
        group: None,
        sample: 0,
        task,
        evaluation: None,
        infeasible: false,
        desktop: u32::MAX,
        started_ms: at_ms,
        ended_ms: None,
        steps: Vec::new(),
        final_image: None,
        end: None,
        failure: None,
        outcome: None,
        format: None,
        state_score: None,
        reward: None,
        advantage: None,
        learned: Vec::new(),
        replaced_by: None,
        stored: false,
        tokens: 0,
        sampled_tokens: 0,
        clock_ms: 0,
        debug: EpisodeDebug::default(),
    }
}

/// The step of that number, made with those before it where they are missing.
fn step_mut(episode: &mut EpisodeState, step: u32) -> Option<&mut StepState> {
    if step >= STEPS_MAX {
        return None;
    }
    let index = step as usize;
    if episode.steps.len() <= index {
        episode.steps.resize(index + 1, StepState::default());
    }
    Some(&mut episode.steps[index])
}

pub(super) fn push_bounded<T>(queue: &mut VecDeque<T>, item: T, max: usize) {
    while queue.len() >= max {
        queue.pop_front();
    }
    queue.push_back(item);
}
