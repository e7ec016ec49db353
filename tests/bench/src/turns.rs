//! A pump and what it is compared with, in turns.

use std::fmt;

use crate::measure::{CPU, RATE, Sample, Series};
use crate::report::{Line, Target};

/// Messages per second beside those of the baseline.
const LEAST_RATE: f64 = 0.95;

/// Rounds before those that count. An even number, so that the order begins anew.
const WARMING: usize = 2;

/// One side's part of a round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn(usize);

impl Turn {
    /// A B, B A: neither is always the one that comes first.
    pub(crate) fn is_pump(self) -> bool {
        matches!(self.0 % 4, 1 | 2)
    }

    /// Whether it is measured: servers in Java get faster for the first few.
    pub(crate) fn counts(self) -> bool {
        self.0 >= WARMING * 2
    }
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// So many rounds of two turns, after a few that are not counted.
pub(crate) fn turns(rounds: usize) -> impl Iterator<Item = Turn> {
    (0..(WARMING + rounds) * 2).map(Turn)
}

/// What came of one side's turns.
#[derive(Debug, Default)]
pub(crate) struct Side {
    series: Series,
    requests: usize,
    messages: usize,
}

impl Side {
    pub(crate) fn add(&mut self, turn: Turn, sample: Sample, requests: usize, messages: usize) {
        if !turn.counts() {
            return;
        }
        self.series.add(sample);
        self.requests += requests;
        self.messages += messages;
    }

    /// The pump's lines beside another's; `than` names that.
    pub(crate) fn lines(&self, who: &str, than: &str, baseline: &Self) -> Vec<Line> {
        let pair = (&self.series, &baseline.series);
        vec![
            Line::beside(format!("{who}: messages, beside {than}"), "/s", pair, RATE)
                .target(Target::RatioAtLeast(LEAST_RATE)),
            Line::beside(format!("{who}: CPU per message, beside {than}"), "µs", pair, CPU),
            self.asked(who),
        ]
    }

    /// How many requests a message took.
    pub(crate) fn asked(&self, who: &str) -> Line {
        Line::counted(format!("{who}: requests per message"), self.requests, self.messages)
    }
}
