//! The line that is nearest to most points, whatever the others do.

/// How often the weights are worked out anew.
const ROUNDS: usize = 60;
/// Residuals below this weigh the same: a token or two is rounding.
const FLOOR: f64 = 4.0;
/// A round that moves no coefficient by more than this is the last.
const STILL: f64 = 1e-9;

/// A point: what was counted, and what was reported.
pub(super) type Point<const N: usize> = ([f64; N], f64);

/// Coefficients with the least sum of absolute residuals, by least squares whose weights are worked
/// out again. One point in ten that is far off moves them little, as a client that changes its
/// system prompt does. `ridge` says how much a coefficient is held to its `prior`.
///
/// O(n) for each of at most 60 rounds. The same points give the same coefficients.
pub(super) fn least_absolute<const N: usize>(
    points: &[Point<N>],
    prior: [f64; N],
    ridge: [f64; N],
) -> [f64; N] {
    let mut found = prior;
    for _ in 0..ROUNDS {
        let mut system: Vec<Equation<N>> = (prior.iter().zip(&ridge).enumerate())
            .map(|(at, (prior, ridge))| {
                let mut left = [0.0; N];
                left.iter_mut().skip(at).take(1).for_each(|own| *own = *ridge);
                Equation { left, right: ridge * prior }
            })
            .collect();
        for (counted, reported) in points {
            let weight = 1.0 / (reported - dot(&found, counted)).abs().max(FLOOR);
            for (equation, own) in system.iter_mut().zip(counted).filter(|(_, own)| **own != 0.0) {
                let weighted = weight * own;
                equation.right += weighted * reported;
                for (left, other) in equation.left.iter_mut().zip(counted) {
                    *left += weighted * other;
                }
            }
        }
        let next = solve(system);
        let moved = next.iter().zip(&found).map(|(is, was)| (is - was).abs());
        let moved = moved.fold(0.0, f64::max);
        found = next;
        if moved <= STILL {
            break;
        }
    }
    found
}

/// The sum of the products.
pub(super) fn dot<const N: usize>(factors: &[f64; N], counted: &[f64; N]) -> f64 {
    factors.iter().zip(counted).map(|(factor, counted)| factor * counted).sum()
}

#[derive(Clone, Copy)]
struct Equation<const N: usize> {
    left: [f64; N],
    right: f64,
}

impl<const N: usize> Equation<N> {
    fn at(&self, column: usize) -> f64 {
        self.left.get(column).copied().unwrap_or_default()
    }
}

/// Solves symmetric equations that a ridge keeps solvable, by elimination.
fn solve<const N: usize>(mut system: Vec<Equation<N>>) -> [f64; N] {
    for column in 0..N {
        let Some(pivot) = system.get(column).copied() else { continue };
        if pivot.at(column).abs() < f64::MIN_POSITIVE {
            continue;
        }
        let others = system.iter_mut().enumerate().filter(|(row, _)| *row != column);
        for (_, equation) in others {
            let factor = equation.at(column) / pivot.at(column);
            for (left, own) in equation.left.iter_mut().zip(&pivot.left) {
                *left -= factor * own;
            }
            equation.right -= factor * pivot.right;
        }
    }
    let mut found = [0.0; N];
    for (at, (found, equation)) in found.iter_mut().zip(&system).enumerate() {
        let own = equation.at(at);
        *found = if own.abs() < f64::MIN_POSITIVE { 0.0 } else { equation.right / own };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points() -> Vec<Point<2>> {
        let counted = |n: u32| [f64::from(n * 37 % 901), f64::from(n % 3 + 1)];
        (1..60).map(counted).map(|x| (x, 1.25 * x[0] + 40.0 * x[1])).collect()
    }

    #[track_caller]
    fn near(found: [f64; 2], expected: [f64; 2]) {
        let is_near = found.iter().zip(expected).all(|(is, of)| (is - of).abs() < 0.01 * of);
        assert!(is_near, "{found:?} {expected:?}");
    }

    #[test]
    fn planted_coefficients_are_found() {
        near(least_absolute(&points(), [1.0, 0.0], [1e-3, 1e-3]), [1.25, 40.0]);
    }

    #[test]
    fn one_point_in_five_that_is_far_off_moves_them_little() {
        let mut points = points();
        points.iter_mut().step_by(5).for_each(|(_, reported)| *reported += 30_000.0);
        near(least_absolute(&points, [1.0, 0.0], [1e-3, 1e-3]), [1.25, 40.0]);
    }

    #[test]
    fn without_points_the_prior_stays() {
        near(least_absolute(&[], [1.15, 20.0], [1.0, 1.0]), [1.15, 20.0]);
        let nothing = [([0.0, 0.0], 5.0)];
        near(least_absolute(&nothing, [1.15, 20.0], [1.0, 1.0]), [1.15, 20.0]);
    }
}
