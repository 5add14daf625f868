//! AdamW and Muon over one list of named tensors, with norm clipping and a learning-rate plan.
//!
//! Holds no weights: `step` changes the tensors it is given, in place, in the order the
//! optimizer was built with. Everything is float32.
//!
//! Sources: `torch.optim.AdamW`; `torch.optim.Muon` (torch 2.11) with
//! `adjust_lr_fn="match_rms_adamw"`.

use tch::{Device, Kind, Tensor, no_grad};

use crate::trainer::lanes;

/// Newton-Schulz coefficients of the quintic iteration: steepest at zero.
const NEWTON_SCHULZ: (f64, f64, f64) = (3.4445, -4.7750, 2.0315);
/// Iterations of it; five bring every singular value to about 0.7-1.2.
const NEWTON_SCHULZ_STEPS: usize = 5;
/// Keeps a zero gradient from dividing by zero.
const NEWTON_SCHULZ_EPS: f64 = 1e-7;

/// Constants of both rules.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OptimizerConfig {
    /// AdamW's decay of the first moment.
    pub beta1: f64,
    /// AdamW's decay of the second moment.
    pub beta2: f64,
    /// AdamW's term beside the root.
    pub eps: f64,
    /// Decoupled weight decay of AdamW's tensors.
    pub weight_decay: f64,
    /// Muon's momentum, Nesterov style.
    pub muon_momentum: f64,
    /// Decoupled weight decay of Muon's tensors.
    pub muon_weight_decay: f64,
    /// Largest gradient norm over all tensors; longer gradients are scaled down to it.
    pub max_grad_norm: f64,
}

/// How one tensor is updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Moments per element.
    AdamW,
    /// Orthogonalized momentum; matrices only.
    Muon,
}

/// State of one tensor.
struct Slot {
    name: String,
    rule: Rule,
    /// First moment or momentum, shape of the tensor.
    first: Tensor,
    /// Second moment, shape of the tensor; empty for Muon.
    second: Tensor,
}

/// What one step did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// Norm of all gradients together, before clipping.
    pub grad_norm: f64,
    /// True if that norm was not finite; nothing was changed then.
    pub skipped: bool,
}

/// Optimizer state for a fixed list of tensors.
pub struct Optimizer {
    config: OptimizerConfig,
    slots: Vec<Slot>,
    /// Steps taken, skipped ones not counted; AdamW's bias correction reads it.
    steps: i64,
}

impl Optimizer {
    /// Fresh state for `params`, given as name, rule and tensor (of any shape).
    pub fn new<'a>(
        config: OptimizerConfig,
        params: impl IntoIterator<Item = (&'a str, Rule, &'a Tensor)>,
    ) -> Self {
        let slots = params
            .into_iter()
            .map(|(name, rule, tensor)| Slot {
                name: name.to_owned(),
                rule,
                first: tensor.detach().zeros_like(),
                second: match rule {
                    Rule::AdamW => tensor.detach().zeros_like(),
                    Rule::Muon => Tensor::zeros([0], (Kind::Float, tensor.device())),
                },
            })
            .collect();
        Self {
            config,
            slots,
            steps: 0,
        }
    }

    /// One update of `params` by `grads`, both in the order and shapes given to `new`.
    ///
    /// The gradients are scaled in place by the clip. A norm that is not finite leaves weights
    /// and state as they were. The work is spread over `num_lanes` threads.
    pub fn step(
        &mut self,
        params: &[Tensor],
        grads: &mut [Tensor],
        lr: f64,
        num_lanes: usize,
    ) -> StepReport {
        no_grad(|| {
            let grad_norm = global_norm(grads);
            if !grad_norm.is_finite() {
                return StepReport {
                    grad_norm,
                    skipped: true,
                };
            }
            // Source: `torch.nn.utils.clip_grad_norm_`, its 1e-6 included.
            let scale = self.config.max_grad_norm / (grad_norm + 1e-6);
            if scale < 1.0 {
                for grad in grads.iter_mut() {
                    let _ = grad.g_mul_scalar_(scale);
                }
            }
            self.steps += 1;
            let (steps, config) = (self.steps, self.config);
            let jobs = self
                .slots
                .iter_mut()
                .zip(params)
                .zip(grads.iter())
                .map(|((slot, param), grad)| (slot, param.detach(), grad.shallow_clone()))
                .collect();
            // Every tensor is updated alone, so the split changes no bit of the result.
            lanes::run(lanes::split_by_cost(jobs, num_lanes, cost), |_, jobs| {
                no_grad(|| {
                    for (slot, mut param, grad) in jobs {
                        match slot.rule {
                            Rule::AdamW => adamw(slot, &mut param, &grad, lr, steps, &config),
                            Rule::Muon => muon(slot, &mut param, &grad, lr, &config),
                        }
                    }
                });
            });
            StepReport {
                grad_norm,
                skipped: false,
            }
        })
    }

    /// Steps taken so far.
    pub fn steps(&self) -> i64 {
        self.steps
    }

    /// State tensors with their names, for a checkpoint: `NAME.first` and `NAME.second`.
    pub fn state(&self) -> Vec<(String, Tensor)> {
        let mut state = Vec::with_capacity(self.slots.len() * 2);
        for slot in &self.slots {
            state.push((format!("{}.first", slot.name), slot.first.shallow_clone()));
            if slot.rule == Rule::AdamW {
                state.push((format!("{}.second", slot.name), slot.second.shallow_clone()));
            }
        }
        state
    }

    /// Takes up the state of a checkpoint: `find` gives the tensor of a name that `state` used.
    /// Says which name is missing or of another shape.
    pub fn restore(
        &mut self,
        steps: i64,
        mut find: impl FnMut(&str) -> Option<Tensor>,
    ) -> Result<(), String> {
        for slot in &mut self.slots {
            fill(&mut slot.first, &format!("{}.first", slot.name), &mut find)?;
            if slot.rule == Rule::AdamW {
                fill(
                    &mut slot.second,
                    &format!("{}.second", slot.name),
                    &mut find,
                )?;
            }
        }
        self.steps = steps;
        Ok(())
    }
}

/// Copies the tensor found under `name` into `target`.
fn fill(
    target: &mut Tensor,
    name: &str,
    find: &mut impl FnMut(&str) -> Option<Tensor>,
) -> Result<(), String> {
    match find(name) {
        Some(found) if found.size() == target.size() => {
            target.copy_(&found);
            Ok(())
        }
        Some(found) => Err(format!(
            "{name} has shape {:?}, the model wants {:?}",
            found.size(),
            target.size()
        )),
        None => Err(format!("{name} is missing")),
    }
}

/// Euclidean norm over all elements of all tensors.
pub fn global_norm(tensors: &[Tensor]) -> f64 {
    let device = tensors.first().map_or(Device::Cpu, Tensor::device);
    let mut squares = Tensor::zeros([], (Kind::Float, device));
    for tensor in tensors {
        squares += tensor.detach().square().sum(Kind::Float);
    }
    squares.double_value(&[]).sqrt()
}

/// Relative cost of one update: elements, times the five iterations' products for Muon.
fn cost((slot, param, _): &(&mut Slot, Tensor, Tensor)) -> usize {
    let elements = param.numel();
    match slot.rule {
        Rule::AdamW => elements,
        Rule::Muon => elements * *param.size().iter().min().unwrap_or(&1) as usize / 4,
    }
}

/// `torch.optim.AdamW`, one tensor.
fn adamw(
    slot: &mut Slot,
    param: &mut Tensor,
    grad: &Tensor,
    lr: f64,
    step: i64,
    config: &OptimizerConfig,
) {
    let (beta1, beta2) = (config.beta1, config.beta2);
    if 0.0 < config.weight_decay {
        let _ = param.g_mul_scalar_(1.0 - lr * config.weight_decay);
    }
    let _ = slot.first.lerp_(grad, 1.0 - beta1);
    let _ = slot.second.g_mul_scalar_(beta2);
    let _ = slot.second.addcmul_(grad, &(grad * (1.0 - beta2)));
    let step = step as i32;
    let correction1 = 1.0 - beta1.powi(step);
    let correction2 = (1.0 - beta2.powi(step)).sqrt();
    let denom = slot.second.sqrt() / correction2 + config.eps;
    let _ = param.addcdiv_(&(&slot.first * (-lr / correction1)), &denom);
}

/// `torch.optim.Muon` with `match_rms_adamw`, one matrix `[rows, cols]`.
fn muon(slot: &mut Slot, param: &mut Tensor, grad: &Tensor, lr: f64, config: &OptimizerConfig) {
    let momentum = config.muon_momentum;
    let _ = slot.first.lerp_(grad, 1.0 - momentum);
    let update = orthogonalize(&grad.lerp(&slot.first, momentum));
    let (rows, cols) = (param.size()[0], param.size()[1]);
    // Brings the root mean square of the update to about AdamW's.
    let scale = 0.2 * (rows.max(cols) as f64).sqrt();
    let _ = param.g_mul_scalar_(1.0 - lr * config.muon_weight_decay);
    let _ = param.g_add_(&(update * (-lr * scale)));
}

/// Brings all singular values of a matrix `[rows, cols]` near one: five quintic
/// Newton-Schulz iterations.
///
/// Departs: torch iterates in bfloat16; float32 is as fast at these sizes and repeatable
/// across processors.
pub fn orthogonalize(matrix: &Tensor) -> Tensor {
    let (a, b, c) = NEWTON_SCHULZ;
    let size = matrix.size();
    let tall = size[1] < size[0];
    let mut x = if tall {
        matrix.tr().contiguous()
    } else {
        matrix.shallow_clone()
    };
    x = &x / x.norm().clamp_min(NEWTON_SCHULZ_EPS);
    for _ in 0..NEWTON_SCHULZ_STEPS {
        let gram = x.matmul(&x.tr()); // [small, small]
        let update = &gram * b + gram.matmul(&gram) * c;
        x = &x * a + update.matmul(&x);
    }
    if tall { x.tr() } else { x }
}

/// Learning rate of step `step` (from 0) of `total`: linear warm-up by `(step + 1) / warmup`,
/// then constant, then linear decay to zero over the last `decay_share` of the steps.
pub fn learning_rate(peak: f64, step: u64, warmup: u64, total: u64, decay_share: f64) -> f64 {
    let warm = if step < warmup {
        (step + 1) as f64 / warmup as f64
    } else {
        1.0
    };
    let decay_steps = total as f64 * decay_share;
    let left = total.saturating_sub(step) as f64;
    let cool = if decay_steps <= 0.0 {
        1.0
    } else {
        (left / decay_steps).min(1.0)
    };
    peak * warm.min(cool)
}
