//! Who is held before an action, and what waits for whom: shared by the operator's side, which
//! asks, and the episodes, which obey.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use crate::event::{BreakOn, Breakpoint, Decision, HoldReason, HoldTarget};
use crate::rollout::fleet::Answer;
use crate::types::{Action, EpisodeId};

/// A decision on its way to the episode that waits for it.
pub(super) struct Ask {
    pub(super) decision: Decision,
    pub(super) answer: Answer,
}

/// The debugger of one engine; clones share it. Idle until somebody holds or sets a breakpoint.
#[derive(Clone)]
pub struct Debugger(Arc<watch::Sender<State>>);

#[derive(Default)]
struct State {
    all: bool,
    targets: BTreeSet<EpisodeId>,
    /// Let go although all are held.
    exempt: BTreeSet<EpisodeId>,
    breakpoints: Vec<Breakpoint>,
    breakpoints_made: u32,
    running: BTreeMap<EpisodeId, Running>,
}

struct Running {
    desktop: u32,
    held: Option<Held>,
}

struct Held {
    step: u32,
    asks: mpsc::UnboundedSender<Ask>,
}

/// What a breakpoint looks at.
pub(super) struct Facts<'a> {
    pub(super) step: u32,
    /// Empty where the reply did not parse.
    pub(super) actions: &'a [Action],
    pub(super) malformed: bool,
    pub(super) mean_logprob: f64,
    /// Whether the screen is the one of the step before.
    pub(super) unchanged: bool,
}

/// An episode known to the debugger for as long as this lives.
pub(super) struct Seat {
    debugger: Debugger,
    episode: EpisodeId,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let episode = self.episode;
        self.debugger.0.send_modify(|state| {
            state.running.remove(&episode);
            state.targets.remove(&episode);
            state.exempt.remove(&episode);
        });
    }
}

impl Default for Debugger {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(State::default())))
    }
}

impl fmt::Debug for Debugger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Debugger").finish_non_exhaustive()
    }
}

impl State {
    fn holds(&self, episode: EpisodeId) -> bool {
        self.targets.contains(&episode) || self.all && !self.exempt.contains(&episode)
    }

    fn breakpoints_of(&self, episode: EpisodeId) -> impl Iterator<Item = &Breakpoint> {
        let is_of = move |b: &&Breakpoint| b.episode.is_none_or(|only| only == episode);
        self.breakpoints.iter().filter(is_of)
    }

    /// The running episode that is meant.
    fn resolve(&self, target: HoldTarget) -> Result<EpisodeId, String> {
        match target {
            HoldTarget::Episode { episode } if self.running.contains_key(&episode) => Ok(episode),
            HoldTarget::Episode { episode } => Err(format!("episode {episode} is not running")),
            HoldTarget::Desktop { desktop } => self
                .running
                .iter()
                .find(|(_, running)| running.desktop == desktop)
                .map(|(episode, _)| *episode)
                .ok_or_else(|| format!("no episode runs on desktop {desktop}")),
            HoldTarget::All => Err("all is not one episode".to_owned()),
        }
    }
}

/// The operator's side.
impl Debugger {
    /// Holds from the next action on.
    pub fn hold(&self, target: HoldTarget) -> Result<(), String> {
        self.change(|state| {
            if target == HoldTarget::All {
                state.all = true;
                state.exempt.clear();
                return Ok(());
            }
            let episode = state.resolve(target)?;
            state.exempt.remove(&episode);
            state.targets.insert(episode);
            Ok(())
        })
    }

    /// Holds no more; replies that wait are carried out.
    pub fn release(&self, target: HoldTarget) -> Result<(), String> {
        self.change(|state| {
            let one = match target {
                HoldTarget::All => None,
                one => Some(state.resolve(one)?),
            };
            if let Some(episode) = one {
                state.let_go(episode);
            } else {
                state.all = false;
                state.targets.clear();
                state.exempt.clear();
            }
            for (episode, running) in &state.running {
                let is_meant = one.is_none_or(|one| one == *episode);
                if let (true, Some(held)) = (is_meant, &running.held) {
                    let decision = Decision::Continue;
                    let answer = Box::new(|_| ());
                    // An episode that ends this moment needs no release.
                    let _ = held.asks.send(Ask { decision, answer });
                }
            }
            Ok(())
        })
    }

    /// Hands a decision to the held episode, which answers.
    pub fn decide(&self, episode: EpisodeId, step: u32, decision: Decision, answer: Answer) {
        let asks = {
            let state = self.0.borrow();
            match state.running.get(&episode).map(|running| &running.held) {
                None => Err(format!("episode {episode} is not running")),
                Some(None) => Err(format!("episode {episode} is not held")),
                Some(Some(held)) if held.step != step => Err(format!(
                    "episode {episode} is held at step {}, not at {}",
                    held.step + 1,
                    u64::from(step) + 1
                )),
                Some(Some(held)) => Ok(held.asks.clone()),
            }
        };
        match asks {
            Ok(asks) => {
                if let Err(unsent) = asks.send(Ask { decision, answer }) {
                    (unsent.0.answer)(Err(gone_on()));
                }
            }
            Err(reason) => answer(Err(reason)),
        }
    }

    /// Adds a breakpoint; all in force then.
    pub fn set_breakpoint(&self, on: BreakOn, episode: Option<EpisodeId>) -> Vec<Breakpoint> {
        self.change(|state| {
            state.breakpoints_made += 1;
            let id = state.breakpoints_made;
            state.breakpoints.push(Breakpoint { id, on, episode });
            state.breakpoints.clone()
        })
    }

    /// Takes one breakpoint away, or all; those left.
    pub fn clear_breakpoint(&self, id: Option<u32>) -> Result<Vec<Breakpoint>, String> {
        self.change(|state| {
            let before = state.breakpoints.len();
            let kept = |b: &Breakpoint| id.is_some_and(|id| b.id != id);
            state.breakpoints.retain(kept);
            match id {
                Some(id) if state.breakpoints.len() == before => {
                    Err(format!("there is no breakpoint {id}"))
                }
                _ => Ok(state.breakpoints.clone()),
            }
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut changed = None;
        self.0.send_modify(|state| changed = Some(change(state)));
        changed.expect("a change is made at once")
    }
}

impl State {
    fn let_go(&mut self, episode: EpisodeId) {
        self.targets.remove(&episode);
        self.exempt.insert(episode);
    }
}

/// The episodes' side.
impl Debugger {
    /// Makes a running episode known.
    pub(super) fn seat(&self, episode: EpisodeId, desktop: u32) -> Seat {
        let running = Running {
            desktop,
            held: None,
        };
        self.change(|state| state.running.insert(episode, running));
        Seat {
            debugger: self.clone(),
            episode,
        }
    }

    /// Whether the episode may be held before its next action.
    pub(super) fn watches(&self, episode: EpisodeId) -> bool {
        let state = self.0.borrow();
        state.holds(episode) || state.breakpoints_of(episode).next().is_some()
    }

    /// Why an episode is to be held, if it is.
    pub(super) fn reason(&self, episode: EpisodeId, facts: &Facts<'_>) -> Option<HoldReason> {
        let state = self.0.borrow();
        let met = state.breakpoints_of(episode).find(|b| facts.meet(&b.on));
        let met = met.cloned().map(HoldReason::Breakpoint);
        met.or_else(|| state.holds(episode).then_some(HoldReason::Asked))
    }

    /// Resolves once an operator holds this episode.
    pub(super) async fn wait_until_asked(&self, episode: EpisodeId) {
        let mut changes = self.0.subscribe();
        // Fails only without a debugger, and this is one.
        let _ = changes.wait_for(|state| state.holds(episode)).await;
    }

    /// Says that an episode waits at a step; decisions about it come out of the receiver.
    pub(super) fn begin_hold(&self, episode: EpisodeId, step: u32) -> mpsc::UnboundedReceiver<Ask> {
        let (asks, receiver) = mpsc::unbounded_channel();
        self.change(|state| {
            if let Some(running) = state.running.get_mut(&episode) {
                running.held = Some(Held { step, asks });
            }
        });
        receiver
    }

    /// Says that it waits no more; decisions that came too late are refused.
    pub(super) fn end_hold(&self, episode: EpisodeId, mut asks: mpsc::UnboundedReceiver<Ask>) {
        self.change(|state| {
            if let Some(running) = state.running.get_mut(&episode) {
                running.held = None;
            }
        });
        while let Ok(late) = asks.try_recv() {
            (late.answer)(Err(gone_on()));
        }
    }

    /// Holds this episode no more.
    pub(super) fn let_go(&self, episode: EpisodeId) {
        self.change(|state| state.let_go(episode));
    }
}

fn gone_on() -> String {
    "it has gone on meanwhile".to_owned()
}

impl Facts<'_> {
    fn meet(&self, on: &BreakOn) -> bool {
        match on {
            BreakOn::Step { step } => self.step == *step,
            BreakOn::Kind { action } => self.actions.iter().any(|one| one.name() == action),
            BreakOn::ParseError => self.malformed,
            BreakOn::LowLogprob { below } => self.mean_logprob < *below,
            BreakOn::UnchangedScreen => self.unchanged,
        }
    }
}
