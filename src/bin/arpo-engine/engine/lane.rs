//! A lane: sessions, KV memory and batches of one computing thread. Synchronous and
//! deterministic; threads and waiting are in `threads`.

use std::collections::BTreeMap;
use std::rc::Rc;

use arpo::policy::{
    Extension, Generation, PolicyError, PolicyStats, SamplingParams, SessionId, WeightsId,
};
use arpo::screen::{ProcessorConfig, ScreenError, model_size};
use arpo::types::{EpisodeId, PolicyVersion, Screenshot};
use tch::Tensor;

use super::batch::{BatchShape, Row, chunk_plans};
use super::features::FeatureCache;
use super::kv::KvCache;
use super::sampler::{Distribution, Distributions};
use super::session::{Job, Reply, ReplyLimits, Session, Work};
use crate::model::Weights;
use crate::model::qwen2_5_vl::fused::{FusedText, WideRotary};
use crate::model::qwen2_5_vl::rope::{Position, position_tensor};
use crate::model::qwen2_5_vl::{embed_text, lm_head, suppress_placeholder};

/// Most packed tokens of a prefill batch, so that its intermediate results stay within a few
/// MB a layer for the tiny agent. A single longer prompt is run alone.
const MAX_PREFILL_TOKENS: usize = 8192;

/// What a lane is told once.
#[derive(Clone, Debug)]
pub(crate) struct LaneSpec {
    /// Most tokens of a session.
    pub context_tokens: usize,
    /// Most sessions in a batch.
    pub max_batch: usize,
    /// KV memory of this lane.
    pub kv_budget_bytes: usize,
    /// Tokens that end a turn.
    pub stop_ids: Vec<u32>,
    /// How screenshots become patches.
    pub processor: ProcessorConfig,
}

/// What one tick of one lane did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LaneWork {
    /// Screenshots run through the vision tower.
    pub images: usize,
    /// Tokens run in a prefill batch.
    pub prefilled_tokens: usize,
    /// Sessions decoded by one token.
    pub decoded_rows: usize,
}

/// What a session waited for.
#[derive(Debug)]
pub(crate) enum Completion {
    /// A reply.
    Generated(Generation),
    /// Log-probabilities.
    Scored(Vec<f32>),
    /// Neither.
    Failed(PolicyError),
}

/// What came of one tick.
#[derive(Debug, Default)]
pub(crate) struct TickReport {
    pub(crate) work: LaneWork,
    pub(crate) completions: Vec<(SessionId, Completion)>,
}

/// One version of the weights, ready to compute.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) weights: Weights,
    text: FusedText,
    /// Counts publications; tells whose KV a session holds.
    epoch: u64,
}

/// One lane.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(super) spec: LaneSpec,
    prepared: Rc<Prepared>,
    /// Weights that publishing does not replace.
    pinned: BTreeMap<WeightsId, Rc<Prepared>>,
    next_epoch: u64,
    /// That of the last batch.
    last_epoch: u64,
    pub(super) sessions: BTreeMap<SessionId, Session>,
    kv: KvCache,
    pub(super) features: FeatureCache,
    pub(super) stats: PolicyStats,
    ticks: u64,
}

impl Lane {
    pub(crate) fn new(weights: Weights, spec: LaneSpec) -> Self {
        let kv = KvCache::new(
            &weights,
            spec.context_tokens,
            spec.max_batch,
            spec.kv_budget_bytes,
        );
        Self {
            prepared: Rc::new(Prepared::new(weights, &spec, 0)),
            pinned: BTreeMap::new(),
            next_epoch: 1,
            last_epoch: 0,
            spec,
            sessions: BTreeMap::new(),
            kv,
            features: FeatureCache::default(),
            stats: PolicyStats::default(),
            ticks: 0,
        }
    }

    /// Starts an empty session.
    pub(crate) fn open(&mut self, id: SessionId, episode: EpisodeId, seed: u64) {
        self.sessions.insert(id, Session::new(episode, seed));
    }

    /// Has a session's replies written by pinned weights.
    pub(crate) fn bind(&mut self, id: SessionId, weights: WeightsId) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.weights = Some(weights);
        }
    }

    /// Keeps weights, or those in use now, for the sessions that are bound to them.
    pub(crate) fn pin(&mut self, id: WeightsId, weights: Option<Weights>) {
        let prepared = match weights {
            Some(mut weights) => {
                // No published version has this number, so features are never mixed up.
                weights.vision_version = PolicyVersion(u64::MAX - id.0);
                let epoch = self.new_epoch();
                Rc::new(Prepared::new(weights, &self.spec, epoch))
            }
            None => Rc::clone(&self.prepared),
        };
        self.pinned.insert(id, prepared);
    }

    /// Lets pinned weights go.
    pub(crate) fn unpin(&mut self, id: WeightsId) {
        self.pinned.remove(&id);
    }

    fn new_epoch(&mut self) -> u64 {
        self.next_epoch += 1;
        self.next_epoch - 1
    }

    /// The weights that a session's next reply is written by.
    fn prepared_for(&self, id: SessionId) -> Result<Rc<Prepared>, PolicyError> {
        let session = self.sessions.get(&id).ok_or(PolicyError::NoSession(id))?;
        let prepared = match &session.weights {
            None => Some(&self.prepared),
            Some(weights) => self.pinned.get(weights),
        };
        let gone = || PolicyError::Weights("they were let go before the session ended".to_owned());
        prepared.map(Rc::clone).ok_or_else(gone)
    }

    /// Starts a session with the content of `parent`, and with its KV where there is room.
    pub(crate) fn fork(
        &mut self,
        parent: SessionId,
        id: SessionId,
        episode: EpisodeId,
        seed: u64,
    ) -> Result<(), PolicyError> {
        let parent = self
            .sessions
            .get(&parent)
            .ok_or(PolicyError::NoSession(parent))?;
        let mut child = parent.fork(episode, seed);
        if let Some(from) = parent.slot
            && let Some(to) = self.kv.acquire()
        {
            self.kv.copy(from, to, parent.kv_len);
            child.slot = Some(to);
            child.kv_len = parent.kv_len;
            child.kv_epoch = parent.kv_epoch;
            child.computed_len = parent.kv_len;
        }
        self.sessions.insert(id, child);
        Ok(())
    }

    /// Appends a prompt and queues a reply with the newest weights.
    pub(crate) fn generate(
        &mut self,
        id: SessionId,
        extension: Extension,
        params: SamplingParams,
    ) -> Result<(), PolicyError> {
        let grids = extension
            .images
            .iter()
            .map(|screenshot| grid_of(screenshot, &self.spec.processor))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|e| PolicyError::Failed(e.to_string()))?;
        let prepared = self.prepared_for(id)?;
        check_vocab(&extension.ids, &prepared.weights)?;
        let session = idle_session(&mut self.sessions, id)?;
        check_room(session, extension.ids.len(), &self.spec)?;
        let (num_ids, num_images) = (extension.ids.len() as u64, extension.images.len() as u64);
        session
            .append_prompt(
                &prepared.weights.config,
                &extension.ids,
                extension.images,
                &grids,
            )
            .map_err(|e| PolicyError::Failed(e.to_string()))?;
        let first_token = session.ids.len();
        let reply = Reply {
            params,
            first_token,
            logprobs: Vec::new(),
            prepared,
        };
        session.work = Work::Prefill(Job::Generate(reply));
        self.stats.tokens_new += num_ids;
        self.stats.images_seen += num_images;
        Ok(())
    }

    /// Queues scoring of `ids` after the session's content.
    pub(crate) fn score(&mut self, id: SessionId, ids: Vec<u32>) -> Result<(), PolicyError> {
        let prepared = self.prepared_for(id)?;
        let placeholder = prepared.weights.config.image_token_id;
        if ids.is_empty() || ids.iter().any(|id| i64::from(*id) == placeholder) {
            let message = "scored tokens must be text, and at least one";
            return Err(PolicyError::Failed(message.to_owned()));
        }
        check_vocab(&ids, &prepared.weights)?;
        let session = idle_session(&mut self.sessions, id)?;
        check_room(session, ids.len() - 1, &self.spec)?;
        session.work = Work::Prefill(Job::Score { ids, prepared });
        Ok(())
    }

    /// Gives up what a session waits for; says whether it waited.
    pub(crate) fn cancel(&mut self, id: SessionId) -> bool {
        let Some(session) = self.sessions.get_mut(&id) else {
            return false;
        };
        !matches!(std::mem::replace(&mut session.work, Work::Idle), Work::Idle)
    }

    /// Forgets a session; says whether it waited for something.
    pub(crate) fn close(&mut self, id: SessionId) -> bool {
        let waited = self.cancel(id);
        if let Some(slot) = self.sessions.remove(&id).and_then(|session| session.slot) {
            self.kv.release(slot);
        }
        waited
    }

    /// Weights of all replies asked for from now on.
    pub(crate) fn publish(&mut self, weights: Weights) {
        let epoch = self.new_epoch();
        self.prepared = Rc::new(Prepared::new(weights, &self.spec, epoch));
    }

    /// Work done so far.
    pub(crate) fn stats(&self) -> PolicyStats {
        PolicyStats {
            kv_bytes: self.kv.bytes_in_use() as u64,
            ..self.stats
        }
    }

    /// Runs one batch: the prompts that wait, else the next token of each reply under way.
    /// `None` if nothing waits.
    pub(crate) fn tick(&mut self) -> Option<TickReport> {
        self.ticks += 1;
        if let Some(batch) = self.choose_prefill() {
            self.note_epoch(&batch);
            return Some(self.prefill(&batch));
        }
        let batch = self.choose_decode();
        self.note_epoch(&batch);
        (!batch.is_empty()).then(|| self.decode(&batch))
    }

    /// Notes whose turn it was.
    fn note_epoch(&mut self, batch: &[SessionId]) {
        let first = batch.first().and_then(|id| self.sessions.get(id));
        if let Some(prepared) = first.and_then(|session| session.work.prepared()) {
            self.last_epoch = prepared.epoch;
        }
    }

    /// Whose turn it is among the weights that work waits for: the oldest first, so that they
    /// can be let go; pinned ones stay anyway and take turns with the next.
    fn next_epoch_of(&self, waiting: &[(u64, EpisodeId, SessionId)]) -> Option<u64> {
        let oldest = waiting.first()?.0;
        let is_pinned = self.pinned.values().any(|one| one.epoch == oldest);
        let newer = waiting.iter().map(|one| one.0).find(|one| *one > oldest);
        match newer {
            Some(newer) if is_pinned && self.last_epoch == oldest => Some(newer),
            _ => Some(oldest),
        }
    }

    /// Sessions of the next prefill batch, each with a slot; `None` if none waits or no slot can
    /// be had before a reply ends.
    fn choose_prefill(&mut self) -> Option<Vec<SessionId>> {
        let waiting = self.waiting(|work| matches!(work, Work::Prefill(_)));
        let mut batch = Vec::new();
        let mut tokens = 0;
        for id in waiting {
            tokens += self.sessions[&id].ids.len() - self.valid_kv_len(id);
            let full = !batch.is_empty() && MAX_PREFILL_TOKENS < tokens;
            if full || !self.take_slot(id, &batch) {
                break;
            }
            batch.push(id);
        }
        batch.sort_by_key(|id| self.sessions[id].slot);
        (!batch.is_empty()).then_some(batch)
    }

    /// Sessions of the next decode batch, in the order of their slots.
    fn choose_decode(&self) -> Vec<SessionId> {
        let mut batch = self.waiting(|work| matches!(work, Work::Decode(_)));
        batch.sort_by_key(|id| self.sessions[id].slot);
        batch
    }

    /// At most a batch of sessions with such work and the same weights, in the order of their
    /// episodes.
    fn waiting(&self, wanted: impl Fn(&Work) -> bool) -> Vec<SessionId> {
        let mut waiting: Vec<(u64, EpisodeId, SessionId)> = self
            .sessions
            .iter()
            .filter(|(_, session)| wanted(&session.work))
            .filter_map(|(id, session)| {
                Some((session.work.prepared()?.epoch, session.episode, *id))
            })
            .collect();
        waiting.sort_unstable();
        let chosen = self.next_epoch_of(&waiting);
        waiting
            .into_iter()
            .filter(|(epoch, ..)| Some(*epoch) == chosen)
            .take(self.spec.max_batch)
            .map(|(_, _, id)| id)
            .collect()
    }

    /// Cached tokens of a session that its waiting work may use.
    fn valid_kv_len(&self, id: SessionId) -> usize {
        let session = &self.sessions[&id];
        let same = session
            .work
            .prepared()
            .is_some_and(|wanted| wanted.epoch == session.kv_epoch);
        if same && session.slot.is_some() {
            session.kv_len
        } else {
            0
        }
    }

    /// Makes sure a session has a slot, if need be that of the idle session longest unused.
    fn take_slot(&mut self, id: SessionId, batch: &[SessionId]) -> bool {
        if self.sessions[&id].slot.is_some() {
            return true;
        }
        let slot = self.kv.acquire().or_else(|| {
            let (_, _, victim) = self
                .sessions
                .iter()
                .filter(|(other, session)| {
                    let needed = matches!(session.work, Work::Decode(_)) || batch.contains(other);
                    session.slot.is_some() && !needed
                })
                .map(|(other, session)| (session.last_used_tick, session.episode, *other))
                .min()?;
            let session = self.sessions.get_mut(&victim)?;
            session.kv_len = 0;
            session.slot.take()
        });
        if let Some(session) = self.sessions.get_mut(&id) {
            session.slot = slot;
            session.kv_len = 0;
        }
        slot.is_some()
    }

    /// Runs the waiting tokens of `batch` and starts its replies.
    fn prefill(&mut self, batch: &[SessionId]) -> TickReport {
        let mut report = TickReport::default();
        let Some(prepared) = self.sessions[&batch[0]].work.prepared().map(Rc::clone) else {
            return report;
        };
        report.work.images = self.encode_images(batch, &prepared, &mut report.completions);
        // Those whose picture could not be read are out.
        let batch: Vec<SessionId> = batch
            .iter()
            .copied()
            .filter(|id| matches!(self.sessions[id].work, Work::Prefill(_)))
            .collect();
        if batch.is_empty() {
            return report;
        }
        let rows: Vec<PrefillRow> = batch
            .iter()
            .map(|id| self.prefill_row(*id, prepared.epoch))
            .collect();
        report.work.prefilled_tokens = rows.iter().map(|row| row.ids.len()).sum();
        let next = self.run_prefill(&prepared, &batch, &rows);
        let mut next = next.rows();
        for (id, row) in batch.iter().zip(&rows) {
            let next: Vec<Distribution<'_>> = next.by_ref().take(row.num_logits).collect();
            let completion = self.after_prefill(*id, &prepared, &next);
            report
                .completions
                .extend(completion.map(|completion| (*id, completion)));
        }
        report
    }

    /// What a session contributes to a prefill batch, and its bookkeeping.
    fn prefill_row(&mut self, id: SessionId, epoch: u64) -> PrefillRow {
        let valid = self.valid_kv_len(id);
        let ticks = self.ticks;
        let session = self
            .sessions
            .get_mut(&id)
            .expect("chosen from the sessions");
        let slot = session.slot.expect("chosen with a slot");
        let scored: &[u32] = match &session.work {
            Work::Prefill(Job::Score { ids, .. }) => ids,
            Work::Idle | Work::Decode(_) | Work::Prefill(Job::Generate(_)) => &[],
        };
        // The last token's logits are always wanted, so it is run even where its KV exists. The
        // last of the scored ones tells nothing.
        let past = valid.min(session.ids.len().saturating_sub(1));
        let appended = scored.len().saturating_sub(1);
        let ids = [&session.ids[past..], &scored[..appended]].concat();
        let positions: Vec<Position> = session.positions[past..]
            .iter()
            .copied()
            .chain(session.next_positions(appended))
            .collect();
        let row = Row {
            slot,
            past,
            new: ids.len(),
        };
        self.stats.tokens_prefilled += session.count_prefilled(past);
        self.stats.sessions_refilled +=
            u64::from(past < session.computed_len.min(session.ids.len() - 1));
        session.kv_len = session.ids.len();
        session.kv_epoch = epoch;
        session.computed_len = session.computed_len.max(session.kv_len);
        session.last_used_tick = ticks;
        PrefillRow {
            row,
            ids,
            positions,
            num_logits: appended + 1,
        }
    }

    /// Distributions of a prefill batch, the sum of `num_logits` many.
    fn run_prefill(
        &self,
        prepared: &Prepared,
        batch: &[SessionId],
        rows: &[PrefillRow],
    ) -> Distributions {
        let (mut image_rows, mut features) = (Vec::new(), Vec::new());
        let (mut wanted, mut temperatures, mut first) = (Vec::new(), Vec::new(), 0);
        for (id, row) in batch.iter().zip(rows) {
            for image in &self.sessions[id].images {
                let (Some(at), Some(found)) =
                    (image.first_token.checked_sub(row.row.past), &image.features)
                else {
                    continue;
                };
                let start = first + at as i64;
                image_rows.extend(start..start + found.size()[0]);
                features.push(found);
            }
            first += row.ids.len() as i64;
            wanted.extend(first - row.num_logits as i64..first);
            let temperature = self.sessions[id].temperature();
            temperatures.extend(std::iter::repeat_n(temperature, row.num_logits));
        }
        let ids: Vec<i64> = rows
            .iter()
            .flat_map(|row| &row.ids)
            .map(|id| i64::from(*id))
            .collect();
        let positions: Vec<Position> = rows.iter().flat_map(|row| row.positions.clone()).collect();
        let mut embeds = embed_text(&prepared.weights, &prepared.place(&ids));
        if !features.is_empty() {
            let features = Tensor::cat(&features, 0);
            let _ = embeds.index_copy_(0, &prepared.place(&image_rows), &features);
        }
        let positions = position_tensor(&[&positions]).to_device(prepared.weights.device());
        let rotary = prepared.text.rotary(&positions);
        let rows: Vec<Row> = rows.iter().map(|row| row.row).collect();
        let wanted = prepared.place(&wanted);
        let hidden = self.forward(prepared, &embeds, Some(&wanted), &rotary, &rows);
        prepared.next_tokens(&hidden, &temperatures)
    }

    /// What a session gets from its prefill.
    fn after_prefill(
        &mut self,
        id: SessionId,
        prepared: &Prepared,
        next: &[Distribution<'_>],
    ) -> Option<Completion> {
        let session = self.sessions.get_mut(&id)?;
        match std::mem::replace(&mut session.work, Work::Idle) {
            Work::Prefill(Job::Score { ids, .. }) => {
                let scores = ids.iter().zip(next);
                let scores = scores.map(|(id, next)| next.logprobs[*id as usize] as f32);
                Some(Completion::Scored(scores.collect()))
            }
            Work::Prefill(Job::Generate(reply)) => {
                session.work = Work::Decode(reply);
                self.sample(id, prepared, *next.last()?)
            }
            work @ (Work::Idle | Work::Decode(_)) => {
                session.work = work;
                None
            }
        }
    }

    /// Appends one token to the reply of each session of `batch`.
    fn decode(&mut self, batch: &[SessionId]) -> TickReport {
        let mut report = TickReport::default();
        let Some(prepared) = self.sessions[&batch[0]].work.prepared().map(Rc::clone) else {
            return report;
        };
        let (mut ids, mut positions, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        let mut temperatures = Vec::new();
        for id in batch {
            let session = self.sessions.get_mut(id).expect("chosen from the sessions");
            temperatures.push(session.temperature());
            let slot = session.slot.expect("a reply under way keeps its slot");
            let past = session.ids.len() - 1;
            ids.push(i64::from(session.ids[past]));
            positions.push(session.positions[past][0]);
            rows.push(Row { slot, past, new: 1 });
            session.kv_len = past + 1;
            session.computed_len = session.computed_len.max(session.kv_len);
            session.last_used_tick = self.ticks;
        }
        let embeds = embed_text(&prepared.weights, &prepared.place(&ids));
        let rotary = prepared.text.text_rotary(&prepared.place(&positions));
        let hidden = self.forward(&prepared, &embeds, None, &rotary, &rows);
        let next = prepared.next_tokens(&hidden, &temperatures);
        report.work.decoded_rows = batch.len();
        for (id, next) in batch.iter().zip(next.rows()) {
            let completion = self.sample(*id, &prepared, next);
            report
                .completions
                .extend(completion.map(|completion| (*id, completion)));
        }
        report
    }

    /// States of packed tokens, of those `wanted` or of all: `[n, hidden]`.
    fn forward(
        &self,
        prepared: &Prepared,
        embeds: &Tensor,
        wanted: Option<&Tensor>,
        rotary: &WideRotary,
        rows: &[Row],
    ) -> Tensor {
        let text = &prepared.weights.config.text;
        let shape = BatchShape {
            groups: text.num_attention_heads / text.num_key_value_heads,
            kv_heads: text.num_key_value_heads,
            device: prepared.weights.device(),
            kind: prepared.weights.kind(),
        };
        prepared
            .text
            .forward(embeds, wanted, rotary, &chunk_plans(&self.kv, rows, shape))
    }

    /// Draws the next token of a reply; the reply, if that finished it.
    fn sample(
        &mut self,
        id: SessionId,
        prepared: &Prepared,
        next: Distribution<'_>,
    ) -> Option<Completion> {
        let limits = ReplyLimits {
            stop_ids: &self.spec.stop_ids,
            context_tokens: self.spec.context_tokens,
        };
        let session = self.sessions.get_mut(&id)?;
        self.stats.tokens_sampled += 1;
        let finish = session.append_sampled(&prepared.weights.config, next, &limits)?;
        session.finish(finish).map(Completion::Generated)
    }
}

/// What one session contributes to a prefill batch.
#[derive(Debug)]
struct PrefillRow {
    row: Row,
    ids: Vec<u32>,
    positions: Vec<Position>,
    /// How many of its last tokens' logits are wanted.
    num_logits: usize,
}

impl Session {
    /// Prompt tokens that running from `past` computes, repeats included. A sampled token that is
    /// run for the first time is decoding's last step, not prefill.
    fn count_prefilled(&self, past: usize) -> u64 {
        let sampled_is_new = self.computed_len < self.sampled_end && past < self.sampled_end;
        (self.ids.len() - past) as u64 - u64::from(sampled_is_new)
    }
}

impl Prepared {
    fn new(weights: Weights, spec: &LaneSpec, epoch: u64) -> Self {
        // No text position can exceed the number of tokens.
        let text = FusedText::new(&weights, spec.context_tokens as i64);
        Self {
            weights,
            text,
            epoch,
        }
    }

    /// Integers on the weights' device.
    fn place(&self, values: &[i64]) -> Tensor {
        Tensor::from_slice(values).to_device(self.weights.device())
    }

    /// What follows states `[n, hidden]`, each at its temperature.
    fn next_tokens(&self, hidden: &Tensor, temperatures: &[f32]) -> Distributions {
        let logits = suppress_placeholder(&self.weights.config, &lm_head(&self.weights, hidden));
        Distributions::new(&logits, temperatures)
    }
}

/// The session of this id if it waits for nothing.
fn idle_session(
    sessions: &mut BTreeMap<SessionId, Session>,
    id: SessionId,
) -> Result<&mut Session, PolicyError> {
    let session = sessions.get_mut(&id).ok_or(PolicyError::NoSession(id))?;
    match session.work {
        Work::Idle => Ok(session),
        Work::Prefill(_) | Work::Decode(_) => Err(PolicyError::Failed(format!(
            "session {} has a reply under way",
            id.0
        ))),
    }
}

/// Whether the network knows every id.
fn check_vocab(ids: &[u32], weights: &Weights) -> Result<(), PolicyError> {
    let vocab = weights.config.text.vocab_size;
    match ids.iter().find(|id| vocab <= i64::from(**id)) {
        None => Ok(()),
        Some(id) => Err(PolicyError::Failed(format!(
            "token {id} is outside the checkpoint's vocabulary of {vocab}; use its own tokenizer"
        ))),
    }
}

/// Whether `new` further tokens leave room for an answer.
fn check_room(session: &Session, new: usize, spec: &LaneSpec) -> Result<(), PolicyError> {
    let (tokens, limit) = (session.ids.len() + new, spec.context_tokens);
    match tokens {
        0 => Err(PolicyError::Failed(
            "the session is empty; give it a prompt first".to_owned(),
        )),
        _ if limit <= tokens => Err(PolicyError::ContextFull { tokens, limit }),
        _ => Ok(()),
    }
}

/// Patches of a screenshot once resized: time, height, width.
pub(super) fn grid_of(
    screenshot: &Screenshot,
    processor: &ProcessorConfig,
) -> Result<[i64; 3], ScreenError> {
    let size = model_size(screenshot.size(), processor)?;
    let patches = |pixels: u32| i64::from(pixels / processor.patch_size);
    Ok([1, patches(size.height), patches(size.width)])
}
