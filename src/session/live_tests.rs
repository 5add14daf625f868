//! A whole run under an operator's hands: a scripted policy, a learner that only counts, and
//! commands given while every desktop stands still, so that nothing depends on timing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tempfile::TempDir;

use super::*;
use crate::bus::{self, CommandInbox, CommandTicket, Controller, EventSink, Watch};
use crate::config::{Profile, Resolved};
use crate::env::simulated::suite::{self, HELD_OUT_FIRST, Suite};
use crate::evaluator::Scorer;
use crate::event::{
    Command, CommandStatus, EvalRequest, EvalWhen, EvaluationStatus, EventKind, F, IterationReport,
    Purpose, RunState, RunSummary, SCHEMA_VERSION, SafePoint, SampleSignal, Stride, TokenSignals,
    TrainerState, TrialRow, UpdateReport,
};
use crate::grpo::TrainSample;
use crate::policy::scripted::{Script, Scripted};
use crate::prompt::PromptBuilder;
use crate::rollout::Recorder;
use crate::store::RunDir;
use crate::types::{EpisodeId, ErrorClass, Iteration, PolicyVersion, Task};

const TASKS: u64 = 6;
const DESKTOPS: u32 = 5;
const ITERATIONS: u64 = 3;

/// What the learner was told.
#[derive(Clone, Default)]
struct Lessons(Arc<Mutex<Vec<(UpdateSettings, usize)>>>);

struct Counting {
    lessons: Lessons,
    version: u64,
    samples: Vec<TrainSample>,
}

/// What a learner tells of a trajectory: figures by token, one for all of them.
fn told(sample: &TrainSample, figure: f32) -> SampleSignal {
    let all = vec![figure; sample.num_sampled()];
    SampleSignal {
        episode: sample.episode,
        replayed: sample.replayed,
        steps: Vec::new(),
        tokens: TokenSignals {
            advantage: sample.advantage,
            logprobs: all.clone(),
            old_logprobs: all.clone(),
            entropies: all,
            ..TokenSignals::default()
        },
    }
}

#[async_trait]
impl Learner for Counting {
    async fn begin(
        &mut self,
        samples: Vec<TrainSample>,
        _: f64,
    ) -> Result<OldLogprobReport, LearnerError> {
        self.samples = samples;
        Ok(OldLogprobReport::default())
    }

    async fn update(
        &mut self,
        indices: &[usize],
        settings: UpdateSettings,
    ) -> Result<UpdateReport, LearnerError> {
        self.version += 1;
        let mut lessons = self.lessons.0.lock().unwrap();
        lessons.push((settings, indices.len()));
        let samples = indices.iter().map(|index| &self.samples[*index]);
        let learned = samples.filter(|sample| sample.advantage != 0.0);
        let figure = self.version as f32;
        Ok(UpdateReport {
            samples: learned.map(|sample| told(sample, figure)).collect(),
            ..UpdateReport::default()
        })
    }

    async fn publish(&mut self) -> Result<PolicyVersion, LearnerError> {
        Ok(PolicyVersion(self.version))
    }

    async fn save(&mut self, dir: &Path) -> Result<String, LearnerError> {
        std::fs::write(dir.join("learner"), self.version.to_string()).unwrap();
        Ok(format!("{:016x}", self.version))
    }

    async fn load(&mut self, dir: &Path) -> Result<PolicyVersion, LearnerError> {
        let text = std::fs::read_to_string(dir.join("learner")).unwrap();
        self.version = text.parse().unwrap();
        Ok(PolicyVersion(self.version))
    }
}

/// Instances of a family whose right answer is to declare them infeasible.
fn tasks(first: u64) -> Vec<Arc<Task>> {
    let families = suite::families(Suite::Compact);
    let infeasible = families.iter().find(|family| family.infeasible).unwrap();
    let task = |instance| Arc::new(infeasible.task(Suite::Compact, first + instance));
    (0..TASKS).map(task).collect()
}

/// Trials take turns in giving up rightly, claiming success, and running into the step limit.
fn script() -> Script {
    let reply = |action: &str| format!("Thought: 先等一等\nAction: {action}");
    let mut replies = BTreeMap::new();
    for task in tasks(0).into_iter().chain(tasks(HELD_OUT_FIRST)) {
        let number = replies.len();
        let trials = (0..6).map(|trial| match (trial + number) % 3 {
            0 => vec![reply("wait()"), reply("fail()")],
            1 => vec![reply("wait()"), reply("finished(content='')")],
            _ => vec![reply("wait()"); 4],
        });
        replies.insert(task.id.0.clone(), trials.collect());
    }
    Script::Replies(replies)
}

fn profile() -> Profile {
    let sets = [
        "grpo.tasks_per_iteration=3",
        "grpo.group_size=4",
        "rollout.max_steps=4",
        "rollout.max_rerolls=0",
        "tasks.shuffle=false",
        "replay.capacity=1",
    ];
    let mut sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    sets.push(format!("env.desktops={DESKTOPS}"));
    sets.push(format!("run.iterations={ITERATIONS}"));
    Resolved::load::<String>(&[], &sets).unwrap().profile
}

struct Rig {
    folder: TempDir,
    run: Arc<RunDir>,
    sink: EventSink,
    controller: Controller,
    lessons: Lessons,
}

fn policy(profile: &Profile, prompt: &Arc<PromptBuilder>) -> Arc<Scripted> {
    Arc::new(Scripted::new(
        script(),
        Arc::clone(prompt),
        profile.policy.clone(),
        profile.engine.cost,
    ))
}

impl Rig {
    fn new() -> (Self, TrainSession) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let run = Arc::new(RunDir::create(&path, "").unwrap());
        let sink = EventSink::start(&run, started()).unwrap();
        Self::over(folder, run, sink, 0)
    }

    fn over(
        folder: TempDir,
        run: Arc<RunDir>,
        sink: EventSink,
        incarnation: u32,
    ) -> (Self, TrainSession) {
        let (controller, inbox) = bus::control(sink.clone(), 0);
        let lessons = Lessons::default();
        let session = TrainSession::new(TrainParts {
            collector: collector(&run, &sink, inbox, incarnation),
            run: Arc::clone(&run),
            pool: TaskPool::new(tasks(0), 1, false).unwrap(),
            heldout: Vec::new(),
            learner: Box::new(Counting {
                lessons: lessons.clone(),
                version: 0,
                samples: Vec::new(),
            }),
        });
        let rig = Self {
            folder,
            run,
            sink,
            controller,
            lessons,
        };
        (rig, session)
    }

    /// The held-out tasks' list, as a file an operator names.
    fn list(&self) -> String {
        let path: PathBuf = self.folder.path().join("heldout.json");
        let ids: Vec<_> = tasks(HELD_OUT_FIRST)
            .iter()
            .map(|task| task.id.clone())
            .collect();
        std::fs::write(&path, serde_json::to_string(&ids).unwrap()).unwrap();
        path.display().to_string()
    }

    fn request(&self, trials: u32, when: EvalWhen) -> EvalRequest {
        EvalRequest {
            tasks: self.list(),
            trials,
            temperature: 0.6,
            seed: 9,
            when,
            ..EvalRequest::default()
        }
    }

    fn send(&self, command: Command) -> CommandTicket {
        self.controller.submit(command, "test")
    }

    /// Sends a command and waits until it is done, or refused with this in the reason.
    async fn ask(&self, command: Command, refused: Option<&str>) {
        let told = format!("{command:?}");
        let (_, status) = self.send(command).finished().await.unwrap();
        match (status, refused) {
            (CommandStatus::Done, None) => {}
            (CommandStatus::Refused { reason }, Some(phrase)) if reason.contains(phrase) => {}
            (status, _) => panic!("{told}: {status:?}"),
        }
    }

    /// Waits until the run's state is as wanted.
    async fn until(&self, wanted: impl Fn(&RunState) -> bool) -> RunState {
        let Watch {
            mut state,
            mut lines,
        } = self.sink.watch().await.unwrap();
        while !wanted(&state) {
            state.apply(&lines.recv().await.unwrap().event);
        }
        state
    }

    async fn close(self) -> (TempDir, RunState) {
        self.sink.flush().await.unwrap();
        self.sink.close().unwrap();
        let state = self.run.state().unwrap();
        (self.folder, state)
    }
}

fn collector(
    run: &Arc<RunDir>,
    sink: &EventSink,
    inbox: CommandInbox,
    incarnation: u32,
) -> Collector {
    let profile = profile();
    let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/agent");
    let prompt = Arc::new(PromptBuilder::open(&agent).unwrap());
    let settings = Settings::of(&profile);
    Collector::new(CollectorParts {
        recorder: Arc::new(Recorder::start(sink.clone(), Arc::clone(run))),
        run: Arc::clone(run),
        control: Control::new(inbox, sink.clone(), settings),
        policy: policy(&profile, &prompt),
        prompt,
        scorer: Scorer::NATIVE,
        desktops: Desktops::of(&profile, Arc::new(|_, _| {})).unwrap(),
        incarnation,
        profile,
    })
}

fn started() -> EventKind {
    EventKind::RunStarted {
        schema: SCHEMA_VERSION,
        run: "run".to_owned(),
        version: String::new(),
        profile: "test".to_owned(),
        unix_ms: 0,
        seed: 1,
        desktops: DESKTOPS,
        group_size: 4,
        tasks_per_iteration: 3,
        iterations: ITERATIONS,
        max_steps: 4,
        num_tasks: TASKS as u32,
        context_tokens: 2048,
        learning_rate: 1e-6,
        temperature: 1.0,
        clip_low: None,
        clip_high: None,
        replay: None,
        virtual_clock: true,
    }
}

const HOLD: Command = Command::Pause {
    at: SafePoint::EnvStep,
};

/// Runs the session while the operator does their part.
async fn operate(session: TrainSession, operator: impl Future<Output = ()>) -> RunSummary {
    let (summary, ()) = tokio::join!(Box::pin(session.run()), operator);
    summary
}

/// Episodes of training that stand before their first step.
fn standing(state: &RunState) -> Vec<EpisodeId> {
    let running = state.episodes.values().filter(|one| one.is_running());
    let training = running.filter(|one| one.purpose == Purpose::Train);
    training.map(|one| one.id).collect()
}

fn all_stand(state: &RunState) -> bool {
    state.trainer == TrainerState::Paused(SafePoint::EnvStep)
        && standing(state).len() == DESKTOPS as usize
}

/// Everything of an iteration that an evaluation beside it must not change.
fn curve(state: &RunState) -> Vec<IterationReport> {
    let timeless = |report: &IterationReport| IterationReport {
        tokens_per_s: F(0.0),
        collect_ms: 0,
        train_ms: 0,
        wall_ms: 0,
        clock_ms: 0,
        ..report.clone()
    };
    state.history.iter().map(timeless).collect()
}

/// What trials showed, whatever their episodes are called.
fn shown(trials: &[TrialRow]) -> Vec<TrialRow> {
    let unnamed = |trial: &TrialRow| TrialRow {
        episode: EpisodeId {
            incarnation: 0,
            number: 0,
        },
        ..trial.clone()
    };
    let mut shown: Vec<TrialRow> = trials.iter().map(unnamed).collect();
    shown.sort_by(|a, b| (&a.task, a.trial).cmp(&(&b.task, b.trial)));
    shown
}

/// The same evaluation by itself, as `arpo eval` does it.
async fn alone(request: EvalRequest) -> Evaluated {
    let folder = tempfile::tempdir().unwrap();
    let run = Arc::new(RunDir::create(&folder.path().join("run"), "").unwrap());
    let sink = EventSink::start(&run, started()).unwrap();
    let (_controller, inbox) = bus::control(sink.clone(), 0);
    let mut collector = collector(&run, &sink, inbox, 0);
    let tasks = find_tasks(&request.tasks).unwrap();
    let measured = collector.evaluate("eval", request, tasks).await.unwrap();
    collector.close().await;
    drop(collector);
    sink.close().unwrap();
    measured.unwrap()
}

async fn undisturbed() -> RunState {
    let (rig, session) = Rig::new();
    assert_eq!(operate(session, async {}).await.status, "finished");
    rig.close().await.1
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_episode_is_left_out_of_its_group_and_a_rerolled_one_comes_again() {
    let (rig, session) = Rig::new();
    let hold = rig.send(HOLD);
    let operator = async {
        let state = rig.until(all_stand).await;
        drop(hold);
        let standing = standing(&state);
        let (killed, rerolled) = (standing[0], standing[1]);
        rig.ask(Command::KillEpisode { episode: killed }, None)
            .await;
        let again = Command::KillEpisode { episode: killed };
        rig.ask(again, Some("does not run")).await;
        rig.ask(Command::RerollEpisode { episode: rerolled }, None)
            .await;
        rig.ask(Command::RebootDesktop { desktop: 4 }, None).await;
        let beyond = Command::RebootDesktop { desktop: DESKTOPS };
        rig.ask(beyond, Some("5 desktops, numbered from 0")).await;
        rig.ask(Command::Resume, None).await;
    };
    assert_eq!(operate(session, operator).await.status, "finished");
    let (_folder, state) = rig.close().await;
    let classes: Vec<_> = state
        .failures
        .iter()
        .map(|one| (one.class, one.rerolled))
        .collect();
    let ended = |rerolled| (ErrorClass::Cancelled, rerolled);
    assert_eq!(classes, [ended(false), ended(true), ended(true)]);
    // Ended on purpose is no error, and costs no try although the profile allows none.
    assert_eq!(state.history[0].env_errors, 0);
    assert_eq!(state.history[0].episodes, 3 * 4 - 1);
    let first = state.groups_of(crate::types::Iteration(0)).next().unwrap();
    let outcomes = first.outcomes.as_ref().unwrap();
    assert_eq!(outcomes.iter().filter(|one| one.is_none()).count(), 1);
    assert_eq!(first.signals.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_learned_from_tokens_is_on_disk_before_it_is_told() {
    let (rig, session) = Rig::new();
    let mut lines = rig.sink.watch().await.unwrap().lines;
    let run = Arc::clone(&rig.run);
    let reader = tokio::spawn(async move {
        let (mut now, mut read) = (Iteration(0), Vec::new());
        while let Ok(line) = lines.recv().await {
            match &line.event.kind {
                EventKind::IterationStarted { iteration, .. } => now = *iteration,
                EventKind::EpisodeLearned { episode, .. } => {
                    let learned = run.learned(*episode).unwrap().unwrap();
                    assert_eq!(learned.iteration, now);
                    let sampled = run.episode(*episode).unwrap().tokens.num_sampled();
                    assert_eq!(learned.signals.len(), sampled);
                    read.push(learned.signals.logprobs[0]);
                }
                _ => {}
            }
        }
        read
    });
    assert_eq!(operate(session, async {}).await.status, "finished");
    let updates = rig.lessons.0.lock().unwrap().len();
    rig.close().await;
    let read = reader.await.unwrap();
    // Each trajectory once, with what its last update made of it.
    let per_iteration = updates / ITERATIONS as usize;
    let (epochs, batches) = (profile().grpo.epochs, profile().grpo.minibatches);
    assert_eq!(per_iteration, epochs * batches);
    assert!(read.len() > ITERATIONS as usize, "{read:?}");
    assert!(read.iter().all(|figure| {
        let update = (*figure as usize - 1) % per_iteration;
        update >= per_iteration - batches
    }));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evaluation_beside_training_scores_what_it_scores_alone_and_leaves_the_curve() {
    let (rig, session) = Rig::new();
    let hold = rig.send(HOLD);
    let when = EvalWhen::Now { desktops: 2 };
    let operator = async {
        rig.until(all_stand).await;
        drop(hold);
        let too_many = EvalWhen::Now { desktops: DESKTOPS };
        let refused = Command::Evaluate(rig.request(2, too_many));
        rig.ask(refused, Some("training needs one of them")).await;
        let nowhere = EvalRequest {
            tasks: "nowhere".to_owned(),
            ..rig.request(2, when)
        };
        rig.ask(Command::Evaluate(nowhere), Some("no task set"))
            .await;
        let evaluated = rig.send(Command::Evaluate(rig.request(2, when)));
        rig.ask(Command::Resume, None).await;
        let mut evaluated = evaluated;
        let (_, status) = evaluated.finished().await.unwrap();
        assert_eq!(status, CommandStatus::Done);
    };
    assert_eq!(operate(session, operator).await.status, "finished");
    let request = rig.request(2, EvalWhen::SafePoint);
    let expected = alone(request.clone()).await;
    let run = Arc::clone(&rig.run);
    let (_folder, state) = rig.close().await;

    let evaluation = state.evaluation(1).unwrap();
    assert_eq!(evaluation.status, EvaluationStatus::Finished);
    assert!(evaluation.has_all_trials());
    let report = evaluation.report.as_ref().unwrap();
    assert_eq!(shown(&evaluation.trials), shown(&expected.trials));
    assert_eq!(report.standard, expected.report.standard);
    assert_eq!(report.hard, expected.report.hard);
    assert_eq!(report.plain, expected.report.plain);
    assert_eq!(report.standard.all.n, 2 * TASKS);
    assert!(report.standard.all.score > report.hard.all.score);
    assert_eq!(report.manifest, expected.report.manifest);
    // Never on more desktops at a time than it was given, and beside training.
    let others = state.counters.other_episodes;
    assert_eq!((others, state.counters.episodes), (12, 3 * 12));
    let stored = run.evaluation(1).unwrap();
    assert_eq!(stored.trials.len(), 12);
    assert_eq!(stored.report.as_ref(), Some(report));
    for trial in &stored.trials {
        run.episode(trial.episode).unwrap();
    }
    // The curve: every figure of every iteration but times is that of a run without it.
    assert_eq!(curve(&state), curve(&undisturbed().await));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evaluation_waits_for_a_safe_point_and_has_all_desktops_there() {
    let (rig, session) = Rig::new();
    let batch = Command::Pause {
        at: SafePoint::Batch,
    };
    let paused = rig.send(batch);
    let operator = async {
        let mut paused = paused;
        assert_eq!(paused.finished().await.unwrap().1, CommandStatus::Done);
        // The run stands at one, so it begins at once, and stands again.
        let request = rig.request(3, EvalWhen::SafePoint);
        rig.ask(Command::Evaluate(request), None).await;
        let state = rig.until(|state| state.evaluation(1).is_some()).await;
        assert_eq!(state.trainer, TrainerState::Paused(SafePoint::Batch));
        assert!(state.iteration.is_none());
        let desktops = state.desktops.iter().filter(|one| one.episodes > 0);
        assert_eq!(desktops.count(), DESKTOPS as usize);
        rig.ask(Command::Resume, None).await;
    };
    assert_eq!(operate(session, operator).await.status, "finished");
    let (_folder, state) = rig.close().await;
    assert_eq!(state.evaluation(1).unwrap().done, 18);
    assert_eq!(curve(&state), curve(&undisturbed().await));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_evaluation_goes_on_without_a_trial_lost_or_repeated() {
    let (rig, session) = Rig::new();
    let hold = rig.send(HOLD);
    let when = EvalWhen::Now { desktops: 1 };
    let operator = async {
        rig.until(all_stand).await;
        drop(hold);
        let mut evaluated = rig.send(Command::Evaluate(rig.request(6, when)));
        let behind = rig.send(Command::Evaluate(rig.request(1, when)));
        rig.ask(Command::Resume, None).await;
        rig.until(|state| state.evaluation(1).is_some_and(|one| one.done > 0))
            .await;
        rig.ask(HOLD, None).await;
        let cancel = |evaluation| Command::CancelEvaluation { evaluation };
        rig.ask(cancel(7), Some("no evaluation 7")).await;
        rig.ask(cancel(2), None).await;
        let mut behind = behind;
        let (_, status) = behind.finished().await.unwrap();
        assert!(
            matches!(status, CommandStatus::Refused { .. }),
            "{status:?}"
        );
        rig.ask(cancel(1), None).await;
        let (_, status) = evaluated.finished().await.unwrap();
        let CommandStatus::Refused { reason } = status else {
            panic!("{status:?}");
        };
        assert!(reason.contains("evaluate --resume 1"), "{reason}");
        let further = EvalRequest {
            resume: Some(1),
            ..rig.request(1, when)
        };
        let missing = EvalRequest {
            resume: Some(9),
            ..further.clone()
        };
        rig.ask(Command::Evaluate(missing), Some("no evaluation 9"))
            .await;
        let resumed = rig.send(Command::Evaluate(further));
        rig.ask(Command::Resume, None).await;
        let mut resumed = resumed;
        let (_, status) = resumed.finished().await.unwrap();
        assert_eq!(status, CommandStatus::Done);
    };
    assert_eq!(operate(session, operator).await.status, "finished");
    let expected = alone(rig.request(6, EvalWhen::SafePoint)).await;
    let run = Arc::clone(&rig.run);
    let (_folder, state) = rig.close().await;
    let evaluation = state.evaluation(1).unwrap();
    assert_eq!(evaluation.status, EvaluationStatus::Finished);
    assert_eq!((evaluation.done, evaluation.total), (36, 36));
    assert_eq!(shown(&evaluation.trials), shown(&expected.trials));
    // As many trials were scored as there are: none twice.
    assert_eq!(run.evaluation(1).unwrap().trials.len(), 36);
    assert_eq!(state.counters.other_episodes, 36);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_still_waits_when_the_training_ends_is_cancelled_with_a_reason() {
    let (rig, session) = Rig::new();
    let hold = rig.send(HOLD);
    let operator = async {
        rig.until(all_stand).await;
        drop(hold);
        let now = EvalWhen::Now { desktops: 1 };
        let mut first = rig.send(Command::Evaluate(rig.request(20, now)));
        let mut second = rig.send(Command::Evaluate(rig.request(1, now)));
        rig.ask(Command::Resume, None).await;
        // The first comes to its end on all desktops, the second never began.
        let (_, status) = first.finished().await.unwrap();
        assert_eq!(status, CommandStatus::Done);
        let (_, status) = second.finished().await.unwrap();
        let CommandStatus::Refused { reason } = status else {
            panic!("{status:?}");
        };
        assert!(reason.contains("training has ended"), "{reason}");
    };
    assert_eq!(operate(session, operator).await.status, "finished");
    let (_folder, state) = rig.close().await;
    assert_eq!(state.evaluation(1).unwrap().done, 20 * TASKS as u32);
    assert!(matches!(
        state.evaluation(2).unwrap().status,
        EvaluationStatus::Cancelled { .. }
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn clip_and_replay_change_while_running_and_survive_a_resume() {
    let (rig, mut session) = Rig::new();
    session.collector.profile.run.iterations = 2;
    let hold = rig.send(HOLD);
    let operator = async {
        rig.until(all_stand).await;
        drop(hold);
        let (low, high) = (0.1, 0.4);
        rig.ask(Command::SetClip { low, high }, None).await;
        rig.ask(Command::SetReplay { enabled: false }, None).await;
        rig.ask(Command::Resume, None).await;
    };
    assert_eq!(operate(session, operator).await.status, "finished");
    let clips = |lessons: &Lessons| -> Vec<(f64, f64)> {
        let lessons = lessons.0.lock().unwrap();
        lessons
            .iter()
            .map(|(one, _)| (one.clip_low, one.clip_high))
            .collect()
    };
    let told = clips(&rig.lessons);
    assert!(!told.is_empty() && told.iter().all(|clip| *clip == (0.1, 0.4)));
    let run = Arc::clone(&rig.run);
    let (folder, state) = rig.close().await;
    // Off from the second iteration on: the first had begun.
    let stored: Vec<u32> = state.history.iter().map(|report| report.stored).collect();
    assert!(stored[0] > 0);
    assert_eq!(stored[1], stored[0]);
    assert_eq!(state.settings.replay, Some(false));
    assert_eq!(state.settings.clip_low, Some(F(0.1)));

    drop(run);
    let run = Arc::new(RunDir::open_to_write(&folder.path().join("run")).unwrap());
    let checkpoint = run.newest_checkpoint().unwrap();
    let from = crate::types::Iteration(checkpoint.manifest.iterations_done);
    let discard = run.resume_seq(&checkpoint).unwrap();
    let resumed = EventSink::resume(&run, from, discard).unwrap();
    let (rig, mut session) = Rig::over(folder, run, resumed.sink, resumed.incarnation);
    session.resume(&checkpoint).await.unwrap();
    assert_eq!(operate(session, async {}).await.status, "finished");
    let told = clips(&rig.lessons);
    assert!(!told.is_empty() && told.iter().all(|clip| *clip == (0.1, 0.4)));
    let (_folder, state) = rig.close().await;
    assert_eq!(state.history.last().unwrap().stored, stored[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pinned_success_outlives_newer_ones_and_a_dropped_one_is_gone() {
    let (rig, session) = Rig::new();
    let paused = rig.send(Command::Pause {
        at: SafePoint::PreUpdate,
    });
    let operator = async {
        let mut paused = paused;
        assert_eq!(paused.finished().await.unwrap().1, CommandStatus::Done);
        let state = rig.until(|state| state.stored_successes() == 3).await;
        let stored: Vec<_> = state
            .replay
            .iter()
            .map(|(task, of_task)| (task.clone(), of_task.successes[0].episode))
            .collect();
        let pin =
            |(task, episode): &(crate::types::TaskId, EpisodeId), pinned| Command::PinStored {
                task: task.clone(),
                episode: *episode,
                pinned,
            };
        rig.ask(pin(&stored[0], true), None).await;
        rig.ask(pin(&stored[0], true), Some("pinned already")).await;
        rig.ask(pin(&stored[1], false), Some("not pinned already"))
            .await;
        let dropped = Command::DropStored {
            task: stored[2].0.clone(),
            episode: stored[2].1,
        };
        rig.ask(dropped.clone(), None).await;
        rig.ask(dropped, Some("has no stored success")).await;
        let state = rig.until(|state| state.stored_successes() == 2).await;
        assert!(state.replay[&stored[0].0].successes[0].pinned);
        rig.ask(Command::Resume, None).await;
    };
    assert_eq!(
        Box::pin(operate(session, operator)).await.status,
        "finished"
    );
    let run = Arc::clone(&rig.run);
    let (_folder, state) = rig.close().await;
    // Two passes over the pool's first tasks: the buffer holds one a task, the pinned one stayed.
    let pinned: Vec<_> = state
        .replay
        .values()
        .flat_map(|of_task| &of_task.successes)
        .filter(|one| one.pinned)
        .collect();
    assert_eq!(pinned.len(), 1);
    assert_eq!(pinned[0].iteration, crate::types::Iteration(0));
    // The checkpoint's buffer says the same as the events.
    let checkpoint = run.newest_checkpoint().unwrap();
    let text = std::fs::read_to_string(checkpoint.file("replay.json")).unwrap();
    assert_eq!(text.matches("\"pinned\":true").count(), 1);
    assert_eq!(
        checkpoint.manifest.pinned.len(),
        state.stored_successes(),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn pausing_and_stepping_are_states_of_their_own() {
    let (rig, session) = Rig::new();
    let hold = rig.send(HOLD);
    let pause = |at| Command::Pause { at };
    let operator = async {
        rig.until(all_stand).await;
        drop(hold);
        rig.ask(pause(SafePoint::Batch), Some("already paused"))
            .await;
        // One phase: to before the updates.
        let stepped = rig.send(Command::StepPhase);
        rig.until(|state| state.trainer == TrainerState::Paused(SafePoint::PreUpdate))
            .await;
        drop(stepped);
        // A step on its way can be taken back, and a pause takes its place.
        rig.ask(Command::Resume, None).await;
        rig.ask(Command::Resume, Some("not paused")).await;
        rig.ask(HOLD, None).await;
        let mut stepping = rig.send(Command::StepIteration);
        rig.ask(Command::StepPhase, Some("already stepping")).await;
        let mut first = rig.send(pause(SafePoint::Batch));
        let (_, status) = stepping.finished().await.unwrap();
        assert!(
            matches!(status, CommandStatus::Refused { .. }),
            "{status:?}"
        );
        rig.ask(pause(SafePoint::Batch), Some("already pausing"))
            .await;
        let mut second = rig.send(pause(SafePoint::PreUpdate));
        let (_, status) = first.finished().await.unwrap();
        let CommandStatus::Refused { reason } = status else {
            panic!("{status:?}");
        };
        assert!(reason.contains("took its place"), "{reason}");
        assert_eq!(second.finished().await.unwrap().1, CommandStatus::Done);
        rig.ask(Command::Resume, None).await;
    };
    assert_eq!(operate(session, operator).await.status, "finished");
    let run = Arc::clone(&rig.run);
    let (_folder, _) = rig.close().await;
    let events = run.read_events(0).unwrap().map(Result::unwrap);
    let states: Vec<TrainerState> = events
        .filter_map(|event| match event.kind {
            EventKind::StateChanged { state } => Some(state),
            _ => None,
        })
        .collect();
    for wanted in [
        TrainerState::Stepping(Stride::Phase),
        TrainerState::Stepping(Stride::Iteration),
        TrainerState::Pausing(SafePoint::Batch),
        TrainerState::Pausing(SafePoint::PreUpdate),
    ] {
        assert!(states.contains(&wanted), "{wanted:?} in {states:?}");
    }
}
