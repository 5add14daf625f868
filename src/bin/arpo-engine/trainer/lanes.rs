//! Lanes: work split over threads with one intra-op thread each.
//!
//! Small matrices lose more to libtorch's thread barrier than they gain, so every lane
//! computes alone and the split is by trajectory. Results come back in lane order, which makes
//! sums over lanes repeatable. Invariant: a tensor is never used by two lanes; what lanes
//! share is storage, which none of them writes while they run.

use std::panic::resume_unwind;

use tch::{Tensor, no_grad};

/// Runs `work(lane, input)` for every input on a thread of its own and returns the results in
/// the order of the inputs. A panic of a lane is passed on.
pub fn run<I, O, F>(inputs: Vec<I>, work: F) -> Vec<O>
where
    I: Send,
    O: Send,
    F: Fn(usize, I) -> O + Sync,
{
    tch::set_num_threads(1);
    std::thread::scope(|scope| {
        let handles: Vec<_> = inputs
            .into_iter()
            .enumerate()
            .map(|(lane, input)| {
                let work = &work;
                scope.spawn(move || {
                    tch::set_num_threads(1);
                    work(lane, input)
                })
            })
            .collect();
        handles
            .into_iter()
            .map(|handle| handle.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}

/// Gradient leaves over the same storage as `params`, one list a lane. A lane's backward pass
/// writes only its own leaves' gradients.
pub fn leaves(params: &[Tensor]) -> Vec<Tensor> {
    params
        .iter()
        .map(|param| param.detach().set_requires_grad(true))
        .collect()
}

/// Takes the gradients off leaves; zeros where a leaf took no part.
pub fn take_grads(leaves: &[Tensor]) -> Vec<Tensor> {
    leaves
        .iter()
        .map(|leaf| {
            let grad = leaf.grad();
            if grad.defined() {
                grad
            } else {
                leaf.detach().zeros_like()
            }
        })
        .collect()
}

/// Sums gradients over lanes in lane order. Every inner list is in parameter order.
///
/// # Panics
/// If there is no lane.
pub fn sum_grads(per_lane: Vec<Vec<Tensor>>) -> Vec<Tensor> {
    no_grad(|| {
        let mut lanes = per_lane.into_iter();
        let mut total = lanes.next().expect("there is at least one lane");
        for lane in lanes {
            for (sum, grad) in total.iter_mut().zip(lane) {
                let _ = sum.g_add_(&grad);
            }
        }
        total
    })
}

/// Splits items over `lanes` lists so that their costs are as even as a greedy pass makes
/// them: dearest first, each to the cheapest lane so far. Order within a lane is kept.
pub fn split_by_cost<T>(items: Vec<T>, lanes: usize, cost: impl Fn(&T) -> usize) -> Vec<Vec<T>> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    let costs: Vec<usize> = items.iter().map(cost).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(costs[i]), i));
    let mut lane_of = vec![0; items.len()];
    let mut load = vec![0_usize; lanes];
    for i in order {
        let cheapest = (0..lanes)
            .min_by_key(|&lane| (load[lane], lane))
            .unwrap_or(0);
        load[cheapest] += costs[i];
        lane_of[i] = cheapest;
    }
    let mut split: Vec<Vec<T>> = (0..lanes).map(|_| Vec::new()).collect();
    for (item, lane) in items.into_iter().zip(lane_of) {
        split[lane].push(item);
    }
    split
}
