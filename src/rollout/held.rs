//! An episode before an action: held, changed, or let through.
//!
//! Invariants: nothing reaches the desktop before the decision; a reply that is replaced leaves
//! nothing behind, neither in the session nor among the episode's tokens; a person's reply is
//! prompt, not sample.

use tokio::sync::mpsc;

use crate::action::parse_reply;
use crate::event::{
    Candidate, CandidatesProposed, Decision, EpisodeHeld, EpisodeReleased, EventKind, F, HoldReason,
};
use crate::policy::{Extension, Generation, SessionId, SessionSpec};
use crate::rollout::debug::{Ask, Facts};
use crate::rollout::episode::{Draft, Reply, RolloutError, Running, Tokens, Written, shorten};
use crate::types::derive_seed;

const SEED_CANDIDATE: u64 = 3;
/// Longest reply that an event tells, characters.
const REPLY_SHOWN: usize = 4000;

/// A hold under way.
struct Hold {
    draft: Draft,
    /// Without this step's reply; forked for each other one.
    base: Option<SessionId>,
    candidates: Vec<(SessionId, Written)>,
}

/// What a decision comes to.
enum Verdict {
    /// Go on waiting.
    Wait,
    /// Carry out what the draft says now.
    Act { touched: bool },
    /// Forget the reply and look again.
    Again,
    /// End the episode.
    Abort,
}

impl Running<'_, '_> {
    /// Waits at the gate, or passes a held one where an operator steps through this episode;
    /// false if the gate is shut.
    pub(super) async fn pass_gate(&self) -> bool {
        let mut gate = self.context.gate.clone();
        tokio::select! {
            biased;
            open = gate.pass() => open,
            () = self.context.debugger.wait_until_asked(self.id) => true,
        }
    }

    /// A copy of the session before a reply that may be replaced.
    pub(super) async fn fork_if_watched(&mut self) -> Result<(), RolloutError> {
        if self.is_branch_end() || self.context.debugger.watches(self.id) {
            let spec = self.spec_of_fork();
            let fork = self.context.policy.fork(self.session, spec).await;
            self.base = Some(fork.map_err(RolloutError::Policy)?);
        }
        Ok(())
    }

    fn spec_of_fork(&mut self) -> SessionSpec {
        self.forks += 1;
        SessionSpec {
            episode: self.id,
            sample: self.job.sample,
            seed: derive_seed(self.job.seed, &[SEED_CANDIDATE, self.forks]),
            task: std::sync::Arc::clone(&self.job.task),
            weights: self.job.trial_of.and_then(|trial| trial.weights),
        }
    }

    /// Holds the episode if it is to be held; `None` if the operator skipped the reply.
    pub(super) async fn consult(&mut self, draft: Draft) -> Result<Option<Reply>, RolloutError> {
        let Some(reason) = self.hold_reason(&draft) else {
            self.close_base().await;
            return Ok(Some(self.commit(draft)));
        };
        let step = self.steps.len() as u32;
        let debugger = self.context.debugger.clone();
        if reason == HoldReason::Branched {
            // From here on it is stepped through.
            let episode = self.id;
            let _ = debugger.hold(crate::event::HoldTarget::Episode { episode });
        }
        let asks = debugger.begin_hold(self.id, step);
        let held = EpisodeHeld {
            episode: self.id,
            step,
            reason,
            instruction: shorten(&self.job.task.instruction, 400),
            candidate: draft.written.candidate(),
        };
        self.emit(EventKind::EpisodeHeld(Box::new(held)));
        let since = self.context.clock.now();
        // The others need not wait for a person, not even in lock step.
        if let Some(barrier) = self.barrier {
            barrier.leave();
        }
        let mut hold = Hold {
            draft,
            base: self.base.take(),
            candidates: Vec::new(),
        };
        let (verdict, asks) = self.hear(&mut hold, asks).await;
        debugger.end_hold(self.id, asks);
        if let Some(barrier) = self.barrier {
            barrier.join();
        }
        self.held_for += self.context.clock.now().saturating_sub(since);
        let spare = hold.candidates.iter().map(|(session, _)| *session);
        for session in spare.chain(hold.base) {
            self.context.policy.close(session).await;
        }
        match verdict {
            Ok(Verdict::Act { .. } | Verdict::Wait) => Ok(Some(self.commit(hold.draft))),
            Ok(Verdict::Again) => Ok(None),
            Ok(Verdict::Abort) => Err(RolloutError::Cancelled),
            Err(error) => Err(error),
        }
    }

    fn hold_reason(&self, draft: &Draft) -> Option<HoldReason> {
        if !self.context.policy.writes() {
            return Some(HoldReason::Human);
        }
        if self.is_branch_end() {
            return Some(HoldReason::Branched);
        }
        let parsed = draft.written.parsed.as_ref();
        let before = self.steps.last().map(|step| &step.screenshot);
        let facts = Facts {
            step: self.steps.len() as u32,
            actions: parsed.map_or(&[], |parsed| &parsed.actions),
            malformed: parsed.is_err(),
            mean_logprob: draft.written.mean_logprob(),
            unchanged: before == Some(draft.screenshot.hash()),
        };
        self.context.debugger.reason(self.id, &facts)
    }

    /// Takes decisions until one of them ends the hold.
    async fn hear(
        &mut self,
        hold: &mut Hold,
        mut asks: mpsc::UnboundedReceiver<Ask>,
    ) -> (Result<Verdict, RolloutError>, mpsc::UnboundedReceiver<Ask>) {
        let mut gate = self.context.gate.clone();
        loop {
            let asked = tokio::select! {
                biased;
                () = gate.shut() => None,
                asked = asks.recv() => asked,
            };
            let Some(Ask { decision, answer }) = asked else {
                return (Err(RolloutError::Cancelled), asks);
            };
            match self.weigh(hold, &decision).await {
                Ok(Ok(Verdict::Wait)) => answer(Ok(())),
                Ok(Ok(verdict)) => {
                    self.tell_released(&decision, &verdict);
                    answer(Ok(()));
                    return (Ok(verdict), asks);
                }
                Ok(Err(reason)) => answer(Err(reason)),
                Err(error) => {
                    answer(Err(error.to_string()));
                    return (Err(error), asks);
                }
            }
        }
    }

    fn tell_released(&mut self, decision: &Decision, verdict: &Verdict) {
        self.human_touched |= matches!(
            verdict,
            Verdict::Act { touched: true } | Verdict::Again | Verdict::Abort
        );
        self.emit(EventKind::EpisodeReleased(EpisodeReleased {
            episode: self.id,
            step: self.steps.len() as u32,
            decision: decision.clone(),
            human_touched: self.human_touched,
        }));
    }

    /// What a decision comes to, or why it cannot be done; an error of its own ends the episode.
    async fn weigh(
        &mut self,
        hold: &mut Hold,
        decision: &Decision,
    ) -> Result<Result<Verdict, String>, RolloutError> {
        let untouched = Verdict::Act { touched: false };
        Ok(match decision {
            Decision::Accept | Decision::Continue if !self.context.policy.writes() => {
                Err("there is no reply to accept: write one".to_owned())
            }
            Decision::Accept => Ok(untouched),
            Decision::Continue => {
                self.context.debugger.let_go(self.id);
                Ok(untouched)
            }
            Decision::Edit { reply } | Decision::Write { reply } => {
                match self.persons_reply(&hold.draft, reply) {
                    Ok(written) => {
                        self.go_back(hold).await?;
                        hold.draft.written = written;
                        Ok(Verdict::Act { touched: true })
                    }
                    Err(reason) => Err(reason),
                }
            }
            Decision::Regenerate { .. } if !self.context.policy.writes() => {
                Err("a person writes the replies: there is nothing to regenerate".to_owned())
            }
            Decision::Regenerate { count } => self.regenerate(hold, *count).await?,
            Decision::Choose { candidate } => self.choose(hold, *candidate).await,
            Decision::Skip => {
                self.go_back(hold).await?;
                self.pending = hold.draft.before.clone();
                Ok(Verdict::Again)
            }
            Decision::Abort => Ok(Verdict::Abort),
        })
    }

    /// A person's reply as tokens, or why it cannot be used. Nothing changes yet.
    fn persons_reply(&self, draft: &Draft, text: &str) -> Result<Written, String> {
        let prompt = self.context.prompt;
        let space = prompt.space(self.context.speech, draft.screenshot.size());
        let space = space.map_err(|error| error.to_string())?;
        let text = text.trim();
        let parsed = parse_reply(text, &space).map_err(|error| error.to_string())?;
        let mut ids = prompt.encode(text).map_err(|error| error.to_string())?;
        let special = prompt.special();
        if ids.contains(&special.turn_end) || ids.contains(&special.image_pad) {
            return Err("it spells out a token that only the prompt may hold".to_owned());
        }
        ids.push(special.turn_end);
        let used = self.tokens.len() + draft.piece.len() + ids.len();
        let limit = self.context.speech.context_tokens;
        if used > limit {
            return Err(format!(
                "with its {} tokens the context would hold {used} of {limit}",
                ids.len()
            ));
        }
        Ok(Written {
            text: text.to_owned(),
            parsed: Ok(parsed),
            tokens: Tokens::Person(ids),
            version: self.context.policy.version(),
        })
    }

    /// Makes sure that there is a session without this step's reply.
    ///
    /// A hold that was asked for while the reply was under way finds no fork; then all of the
    /// episode so far becomes the prompt of a new session.
    async fn base_of(&mut self, hold: &mut Hold) -> Result<SessionId, RolloutError> {
        if let Some(base) = hold.base {
            return Ok(base);
        }
        let spec = self.spec_of_fork();
        let opened = self.context.policy.open(spec).await;
        let base = opened.map_err(RolloutError::Policy)?;
        hold.base = Some(base);
        hold.draft.before = Extension {
            ids: self.tokens.ids().to_vec(),
            images: self.screenshots.clone(),
            replies: self.steps.iter().map(|step| step.reply.clone()).collect(),
        };
        Ok(base)
    }

    /// Goes back to before the reply: the session that holds it is closed.
    async fn go_back(&mut self, hold: &mut Hold) -> Result<(), RolloutError> {
        let base = self.base_of(hold).await?;
        hold.base = None;
        let replaced = std::mem::replace(&mut self.session, base);
        self.context.policy.close(replaced).await;
        Ok(())
    }

    async fn regenerate(
        &mut self,
        hold: &mut Hold,
        count: u32,
    ) -> Result<Result<Verdict, String>, RolloutError> {
        let base = self.base_of(hold).await?;
        let mut sessions = Vec::new();
        for _ in 0..count {
            let spec = self.spec_of_fork();
            match self.context.policy.fork(base, spec).await {
                Ok(session) => sessions.push(session),
                Err(error) => {
                    self.close_all(&sessions).await;
                    return Ok(Err(format!("this policy cannot write again: {error}")));
                }
            }
        }
        let extension = hold.draft.extension();
        let replies = sessions
            .iter()
            .map(|session| self.generate(*session, extension.clone()));
        let replies = futures::future::join_all(replies).await;
        let mut candidates = Vec::new();
        let screen = hold.draft.screenshot.size();
        for (session, generation) in sessions.iter().zip(replies) {
            let written = match generation {
                Ok(generation) => self.written(generation, screen),
                Err(error) => Err(error),
            };
            match written {
                Ok(written) => candidates.push((*session, written)),
                Err(RolloutError::Policy(error)) => {
                    self.close_all(&sessions).await;
                    return Ok(Err(format!("the policy failed: {error}")));
                }
                Err(error) => {
                    self.close_all(&sessions).await;
                    return Err(error);
                }
            }
        }
        let old = std::mem::replace(&mut hold.candidates, candidates);
        let old: Vec<SessionId> = old.into_iter().map(|(session, _)| session).collect();
        self.close_all(&old).await;
        self.emit(EventKind::CandidatesProposed(CandidatesProposed {
            episode: self.id,
            step: self.steps.len() as u32,
            candidates: hold
                .candidates
                .iter()
                .map(|(_, one)| one.candidate())
                .collect(),
        }));
        Ok(Ok(Verdict::Wait))
    }

    /// A candidate takes the reply's place, with its session.
    async fn choose(&mut self, hold: &mut Hold, candidate: u32) -> Result<Verdict, String> {
        let index = (candidate as usize).checked_sub(1);
        let Some(index) = index.filter(|index| *index < hold.candidates.len()) else {
            return Err(match hold.candidates.len() {
                0 => "there are no candidates yet: regenerate some".to_owned(),
                count => format!("choose 1 to {count}, not {candidate}"),
            });
        };
        let (session, written) = hold.candidates.swap_remove(index);
        let replaced = std::mem::replace(&mut self.session, session);
        self.context.policy.close(replaced).await;
        hold.draft.written = written;
        Ok(Verdict::Act { touched: true })
    }

    async fn close_all(&self, sessions: &[SessionId]) {
        for session in sessions {
            self.context.policy.close(*session).await;
        }
    }

    pub(super) async fn close_base(&mut self) {
        if let Some(base) = self.base.take() {
            self.context.policy.close(base).await;
        }
    }

    /// A generation as a reply.
    pub(super) fn written(
        &self,
        generation: Generation,
        screen: crate::types::ScreenSize,
    ) -> Result<Written, RolloutError> {
        let text = self.decode(&generation.ids)?;
        Ok(Written {
            parsed: self.parse(&generation, &text, screen),
            text,
            version: generation.version,
            tokens: Tokens::Sampled(generation.ids, generation.logprobs),
        })
    }
}

impl Written {
    /// Mean log-probability of its tokens; not a number where none was sampled.
    pub(super) fn mean_logprob(&self) -> f64 {
        match &self.tokens {
            Tokens::Sampled(_, logprobs) if !logprobs.is_empty() => {
                logprobs.iter().map(|one| f64::from(*one)).sum::<f64>() / logprobs.len() as f64
            }
            Tokens::Sampled(..) | Tokens::Person(_) => f64::NAN,
        }
    }

    fn candidate(&self) -> Candidate {
        let parsed = self.parsed.as_ref();
        Candidate {
            reply: shorten(&self.text, REPLY_SHOWN),
            thought: parsed.map_or(String::new(), |parsed| parsed.thought.clone()),
            actions: parsed.map_or(Vec::new(), |parsed| parsed.actions.clone()),
            malformed: parsed.err().cloned(),
            tokens: match &self.tokens {
                Tokens::Sampled(ids, _) | Tokens::Person(ids) => ids.len() as u32,
            },
            mean_logprob: F(self.mean_logprob()),
        }
    }
}
