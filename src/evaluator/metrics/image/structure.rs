//! How alike two pictures are.

use super::super::MetricError;
use super::super::python::raised;
use super::picture::Picture;

/// Pixels in a row of the window that two pictures are compared through.
const WINDOW: usize = 7;

/// `skimage.metrics.structural_similarity` of two pictures of the same size and mode: the mean over
/// channels, through a window of `side` pixels that weighs all alike, with sample covariances and
/// the constants 0.01 and 0.03 (Wang et al. 2004).
pub(super) fn ssim(left: &Picture, right: &Picture, side: usize) -> Result<f64, MetricError> {
    let channels = left.channels();
    if left.width.min(left.height) < side || side == 0 {
        return Err(raised(
            "a picture smaller than the window it is seen through",
        ));
    }
    let mut total = 0.0;
    for channel in 0..channels {
        let plane = |picture: &Picture| -> Vec<u64> {
            let bytes = picture.data.iter().skip(channel).step_by(channels);
            bytes.map(|byte| u64::from(*byte)).collect()
        };
        total += plane_ssim(&plane(left), &plane(right), left.width, left.height, side);
    }
    Ok(total / channels as f64)
}

fn plane_ssim(left: &[u64], right: &[u64], width: usize, height: usize, side: usize) -> f64 {
    let (c1, c2) = ((0.01_f64 * 255.0).powi(2), (0.03_f64 * 255.0).powi(2));
    let count = (side * side) as f64;
    let sample = count / (count - 1.0);
    let sums = |value: &dyn Fn(usize) -> u64| window_sums(value, width, height, side);
    let x = sums(&|at| left[at]);
    let y = sums(&|at| right[at]);
    let xx = sums(&|at| left[at] * left[at]);
    let yy = sums(&|at| right[at] * right[at]);
    let xy = sums(&|at| left[at] * right[at]);
    let mut total = 0.0;
    for at in 0..x.len() {
        let mean = |sums: &[u64]| sums[at] as f64 / count;
        let (ux, uy) = (mean(&x), mean(&y));
        let vx = sample * (mean(&xx) - ux * ux);
        let vy = sample * (mean(&yy) - uy * uy);
        let vxy = sample * (mean(&xy) - ux * uy);
        total +=
            (2.0 * ux * uy + c1) * (2.0 * vxy + c2) / ((ux * ux + uy * uy + c1) * (vx + vy + c2));
    }
    total / x.len() as f64
}

/// Sums over each window that lies within, row by row.
fn window_sums(value: &dyn Fn(usize) -> u64, width: usize, height: usize, side: usize) -> Vec<u64> {
    let mut sums = Vec::with_capacity((width + 1 - side) * (height + 1 - side));
    let mut columns: Vec<u64> = vec![0; width];
    for row in 0..height {
        for (x, column) in columns.iter_mut().enumerate() {
            *column += value(row * width + x);
            if row >= side {
                *column -= value((row - side) * width + x);
            }
        }
        if row + 1 >= side {
            sums.extend(
                columns
                    .windows(side)
                    .map(|window| window.iter().sum::<u64>()),
            );
        }
    }
    sums
}

/// Whether two pictures have the same structure, seen in color: `structure_check_by_ssim`.
pub(super) fn is_alike(left: &Picture, right: &Picture, threshold: f64) -> bool {
    let size = (left.width, left.height);
    if left.width.min(left.height) < WINDOW || size != (right.width, right.height) {
        return false;
    }
    ssim(&left.rgb(), &right.rgb(), WINDOW).is_ok_and(|likeness| likeness >= threshold)
}

/// The mean of squares of differences in color, of bytes as parts of 255.
pub(super) fn mean_square(left: &Picture, right: &Picture) -> f64 {
    let (left, right) = (left.rgb(), right.rgb());
    let squares = left.data.iter().zip(&right.data).map(|(left, right)| {
        let apart = (f64::from(*left) - f64::from(*right)) / 255.0;
        apart * apart
    });
    squares.sum::<f64>() / left.data.len() as f64
}

/// The mean of a picture's bytes.
pub(super) fn mean(picture: &Picture) -> f64 {
    let sum: u64 = picture.data.iter().map(|byte| u64::from(*byte)).sum();
    sum as f64 / picture.data.len() as f64
}

/// The standard deviation of bytes.
pub(super) fn deviation(bytes: &[u8]) -> f64 {
    let count = bytes.len() as f64;
    let mean = bytes.iter().map(|byte| f64::from(*byte)).sum::<f64>() / count;
    let squares = bytes.iter().map(|byte| (f64::from(*byte) - mean).powi(2));
    (squares.sum::<f64>() / count).sqrt()
}
