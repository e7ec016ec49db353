//! What is printed: a line for each figure, its baseline and its target.

use std::fmt;

use serde_json::{Value, json};

use crate::machine::{self, Machine};
use crate::measure::{Figure, Series, WALL};

/// How far a figure may be from a target that says "about".
const ABOUT: f64 = 1.1;

/// What a figure is held to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Target {
    /// The ratio to the baseline.
    RatioAtMost(f64),
    RatioAtLeast(f64),
    /// The figure itself.
    AtLeast(f64),
    AtMost(f64),
    /// What it is above the baseline, give or take a tenth.
    AboutOver(f64),
    /// What it is above the baseline.
    OverAtMost(f64),
}

/// One figure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    name: String,
    unit: &'static str,
    measured: f64,
    baseline: Option<f64>,
    ratio: Option<f64>,
    interval: Option<(f64, f64)>,
    over: Option<f64>,
    target: Option<Target>,
}

impl Line {
    /// A figure by itself.
    pub(crate) fn alone(
        name: impl Into<String>,
        unit: &'static str,
        series: &Series,
        figure: Figure,
    ) -> Self {
        Self {
            name: name.into(),
            unit,
            measured: series.median(figure),
            baseline: None,
            ratio: None,
            interval: None,
            over: None,
            target: None,
        }
    }

    /// How many of something there are for each message.
    #[expect(clippy::cast_precision_loss, reason = "a count is far below 2^52")]
    pub(crate) fn counted(name: impl Into<String>, things: usize, messages: usize) -> Self {
        let measured = things as f64 / messages as f64;
        Self { measured, ..Self::alone(name, "", &Series::default(), WALL) }
    }

    /// A figure that was measured once.
    pub(crate) fn figure(name: impl Into<String>, unit: &'static str, measured: f64) -> Self {
        Self { measured, ..Self::alone(name, unit, &Series::default(), WALL) }
    }

    /// The same beside another that was measured once.
    pub(crate) fn against(self, baseline: f64) -> Self {
        Self {
            baseline: Some(baseline),
            ratio: Some(self.measured / baseline),
            over: Some(self.measured - baseline),
            ..self
        }
    }

    /// A figure beside what it is compared with.
    pub(crate) fn beside(
        name: impl Into<String>,
        unit: &'static str,
        (series, baseline): (&Series, &Series),
        figure: Figure,
    ) -> Self {
        Self {
            baseline: Some(baseline.median(figure)),
            ratio: Some(series.ratio(baseline, figure)),
            interval: Some(series.interval(baseline, figure)),
            over: Some(series.over(baseline, figure)),
            ..Self::alone(name, unit, series, figure)
        }
    }

    pub(crate) fn target(self, target: Target) -> Self {
        Self { target: Some(target), ..self }
    }

    /// Whether the target is met; none where there is no target.
    fn met(&self) -> Option<bool> {
        Some(match self.target? {
            Target::RatioAtMost(most) => self.ratio.is_some_and(|ratio| ratio <= most),
            Target::RatioAtLeast(least) => self.ratio.is_some_and(|ratio| ratio >= least),
            Target::AtLeast(least) => self.measured >= least,
            Target::AtMost(most) => self.measured <= most,
            Target::AboutOver(most) => self.over.is_some_and(|over| over <= most * ABOUT),
            Target::OverAtMost(most) => self.over.is_some_and(|over| over <= most),
        })
    }

    fn target_text(&self) -> String {
        match self.target {
            None => String::new(),
            Some(Target::RatioAtMost(most)) => format!("≤ {most} ×"),
            Some(Target::RatioAtLeast(least)) => format!("≥ {least} ×"),
            Some(Target::AtLeast(least)) => format!("≥ {least} {}", self.unit),
            Some(Target::AtMost(most)) => format!("≤ {most} {}", self.unit),
            Some(Target::OverAtMost(most)) => {
                let over = self.over.unwrap_or(f64::NAN);
                format!("≤ {most} {} over, is {over:.0}", self.unit)
            }
            Some(Target::AboutOver(most)) => {
                let over = self.over.unwrap_or(f64::NAN);
                format!("about {most} {} over, is {over:.1}", self.unit)
            }
        }
    }

    fn ratio_text(&self) -> String {
        let ratio = self.ratio.map(|ratio| format!("{ratio:.2}"));
        let interval = self.interval.map(|(low, high)| format!(" ({low:.2}–{high:.2})"));
        ratio.into_iter().chain(interval).collect()
    }

    pub(crate) fn heading() -> String {
        row("name", "measured", "baseline", "ratio (95 %)", "target", "met?")
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "unit": self.unit,
            "measured": self.measured,
            "baseline": self.baseline,
            "ratio": self.ratio,
            "interval": self.interval,
            "over": self.over,
            "target": self.target.map(|_| self.target_text()),
            "met": self.met(),
        })
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figure = |figure: f64| format!("{} {}", short(figure), self.unit);
        let met = self.met().map_or("", |met| if met { "yes" } else { "NO" });
        f.write_str(&row(
            &self.name,
            &figure(self.measured),
            &self.baseline.map(figure).unwrap_or_default(),
            &self.ratio_text(),
            &self.target_text(),
            met,
        ))
    }
}

fn short(figure: f64) -> String {
    if figure >= 1_000.0 { format!("{figure:.0}") } else { format!("{figure:.2}") }
}

fn row(name: &str, measured: &str, baseline: &str, ratio: &str, target: &str, met: &str) -> String {
    format!("{name:<56} | {measured:>12} | {baseline:>12} | {ratio:<16} | {target:<28} | {met}")
}

/// A whole run.
#[derive(Debug)]
pub(crate) struct Report {
    machine: Machine,
    lines: Vec<Line>,
    load_after: String,
}

impl Report {
    pub(crate) fn new(machine: Machine) -> Self {
        Self { machine, lines: Vec::new(), load_after: String::new() }
    }

    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }

    pub(crate) fn add(&mut self, line: Line) {
        self.lines.push(line);
    }

    pub(crate) fn end(&mut self) {
        self.load_after = machine::load();
    }

    /// Whether a target is missed.
    pub(crate) fn missed(&self) -> bool {
        self.lines.iter().any(|line| line.met() == Some(false))
    }

    pub(crate) fn summary(&self) -> String {
        let met = |met| self.lines.iter().filter(|line| line.met() == Some(met)).count();
        let (met, missed) = (met(true), met(false));
        format!("{met} targets met, {missed} missed; load after {}", self.load_after)
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "machine": self.machine.json(),
            "load_after": self.load_after,
            "lines": self.lines.iter().map(Line::json).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Sample;

    fn line(ours: f64, theirs: f64, target: Target) -> Line {
        let series = |wall| {
            let mut series = Series::default();
            series.add(Sample { wall, cpu: wall });
            series
        };
        Line::beside("x", "µs", (&series(ours), &series(theirs)), WALL).target(target)
    }

    #[test]
    fn a_target_is_met_on_its_side() {
        assert_eq!(line(5.0, 4.0, Target::RatioAtMost(1.25)).met(), Some(true));
        assert_eq!(line(5.1, 4.0, Target::RatioAtMost(1.25)).met(), Some(false));
        assert_eq!(line(5.0, 4.0, Target::RatioAtLeast(1.3)).met(), Some(false));
        assert_eq!(line(5.0, 4.0, Target::AtLeast(5.0)).met(), Some(true));
        assert_eq!(line(5.0, 4.0, Target::AtMost(4.0)).met(), Some(false));
        assert_eq!(line(15.0, 1.0, Target::AboutOver(13.0)).met(), Some(true));
        assert_eq!(line(16.0, 1.0, Target::AboutOver(13.0)).met(), Some(false));
        let figure = Line::figure("x", "µs", 5.0).against(4.0);
        assert_eq!(figure.clone().target(Target::OverAtMost(1.0)).met(), Some(true));
        assert_eq!(figure.target(Target::RatioAtMost(1.2)).met(), Some(false));
    }

    #[test]
    fn one_missed_target_is_a_missed_run() {
        let mut report = Report::new(Machine::now());
        report.add(line(1.0, 1.0, Target::RatioAtMost(1.0)));
        assert!(!report.missed());
        report.add(line(2.0, 1.0, Target::RatioAtMost(1.0)));
        assert!(report.missed());
        assert_eq!(report.json()["lines"][1]["met"], false);
    }
}
