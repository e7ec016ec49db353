//! Time and processor time per message, and what is made of many rounds.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// What one message cost, in microseconds: the mean of a round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    /// Time that passed.
    pub(crate) wall: f64,
    /// Processor time of this process, all its threads together.
    pub(crate) cpu: f64,
}

#[derive(Debug)]
pub(crate) struct Stopwatch {
    began: Instant,
    cpu: Duration,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self { cpu: processor_time(), began: Instant::now() }
    }

    pub(crate) fn stop(self, messages: usize) -> Sample {
        let (wall, cpu) = (self.began.elapsed(), processor_time().saturating_sub(self.cpu));
        Sample { wall: micros(wall, messages), cpu: micros(cpu, messages) }
    }
}

/// What `getrusage` gives, user and system together, in nanoseconds.
fn processor_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap_or_default()
}

#[expect(clippy::cast_precision_loss, reason = "a count of messages is far below 2^52")]
fn micros(time: Duration, messages: usize) -> f64 {
    time.as_secs_f64() * 1e6 / messages.max(1) as f64
}

/// One thing measured over rounds that others took turns with: the n-th samples of two of them are neighbours.
#[derive(Debug, Clone, Default)]
pub(crate) struct Series(Vec<Sample>);

/// Which of a sample's figures.
pub(crate) type Figure = fn(&Sample) -> f64;

pub(crate) const WALL: Figure = |sample| sample.wall;
pub(crate) const CPU: Figure = |sample| sample.cpu;
/// Messages per second.
pub(crate) const RATE: Figure = |sample| 1e6 / sample.wall;

impl Series {
    pub(crate) fn add(&mut self, sample: Sample) {
        self.0.push(sample);
    }

    pub(crate) fn median(&self, figure: Figure) -> f64 {
        median(self.0.iter().map(figure).collect())
    }

    /// The median of the ratios of neighbours: what slows both of them is not seen.
    pub(crate) fn ratio(&self, baseline: &Self, figure: Figure) -> f64 {
        median(self.ratios(baseline, figure))
    }

    /// Where that median lies in 95 of 100 runs, whatever the ratios' distribution: between two of them, whose ranks
    /// are those of a fair coin's throws. Of a few neighbours, the least and the greatest ratio.
    pub(crate) fn interval(&self, baseline: &Self, figure: Figure) -> (f64, f64) {
        let mut ratios = self.ratios(baseline, figure);
        ratios.sort_unstable_by(f64::total_cmp);
        let rank = below_interval(ratios.len());
        let at = |rank: usize| ratios.get(rank).copied().unwrap_or(f64::NAN);
        (at(rank), at(ratios.len().saturating_sub(rank + 1)))
    }

    fn ratios(&self, baseline: &Self, figure: Figure) -> Vec<f64> {
        let pairs = self.0.iter().zip(&baseline.0);
        pairs.map(|(ours, theirs)| figure(ours) / figure(theirs)).collect()
    }

    /// The median of what neighbours differ by.
    pub(crate) fn over(&self, baseline: &Self, figure: Figure) -> f64 {
        let pairs = self.0.iter().zip(&baseline.0);
        median(pairs.map(|(ours, theirs)| figure(ours) - figure(theirs)).collect())
    }
}

/// The middle one, or the mean of the two in the middle: the upper of them would favour who is to be high. Not a number
/// where there is none.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let at = |rank: usize| values.get(rank).copied().unwrap_or(f64::NAN);
    f64::midpoint(at(values.len().saturating_sub(1) / 2), at(values.len() / 2))
}

/// How many of so many sorted values lie below the interval: the most with which the median is below it, too, in at
/// most 2.5 of 100 cases.
fn below_interval(many: usize) -> usize {
    let (mut below, mut chance, mut passed) = (0, 0.5_f64.powf(float(many)), 0.0);
    loop {
        passed += chance;
        if passed > 0.025 || below >= many {
            return below.saturating_sub(1);
        }
        chance *= float(many - below) / float(below + 1);
        below += 1;
    }
}

#[expect(clippy::cast_precision_loss, reason = "rounds are few")]
fn float(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(walls: &[f64]) -> Series {
        Series(walls.iter().map(|wall| Sample { wall: *wall, cpu: 1.0 }).collect())
    }

    #[test]
    fn what_slows_neighbours_alike_is_not_in_their_ratio() {
        let (ours, theirs) = (series(&[2.0, 20.0, 3.0]), series(&[1.0, 10.0, 1.0]));
        assert!((ours.ratio(&theirs, WALL) - 2.0).abs() < 1e-9);
        assert!((ours.over(&theirs, WALL) - 2.0).abs() < 1e-9);
        assert!((ours.median(RATE) - 1e6 / 3.0).abs() < 1e-6);
    }

    #[test]
    fn of_an_even_number_the_middle_lies_between_two() {
        let (ours, theirs) = (series(&[1.0, 2.0, 4.0, 9.0]), series(&[1.0; 4]));
        assert!((ours.ratio(&theirs, WALL) - 3.0).abs() < 1e-9);
    }

    /// Tables of the sign test: the ranks of the 95 % interval, from 1 on, are 2 of 9, 6 of 20 and 14 of 40.
    #[test]
    fn an_interval_has_the_ranks_of_the_sign_test() {
        for (many, rank) in [(1, 1), (5, 1), (9, 2), (20, 6), (40, 14)] {
            assert_eq!(below_interval(many) + 1, rank, "{many}");
        }
        let walls: Vec<f64> = (1..=20).map(f64::from).collect();
        let interval = series(&walls).interval(&series(&[1.0; 20]), WALL);
        assert!((interval.0 - 6.0).abs() < 1e-9 && (interval.1 - 15.0).abs() < 1e-9);
    }
}
