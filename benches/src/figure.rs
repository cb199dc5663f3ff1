//! One figure: what was measured beside its limit, and whether that is good enough.

use anyhow::Result;
use serde_json::json;

use crate::setting::Setting;

/// How the measured value is judged beside its limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Judge {
    /// A rate: ours over the limit must be at least this.
    AtLeast(f64),
    /// A time or a size: ours over the limit must be at most this.
    AtMost(f64),
    /// A time: ours may be so much longer than the limit; the ratio is the share of that which is used, at most 1.
    Within(f64),
}

/// One run: the same work by us and at the limit, one right after the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    pub(crate) ours: f64,
    pub(crate) limit: f64,
}

/// What was measured, in several runs.
#[derive(Debug)]
pub(crate) struct Figure {
    name: String,
    unit: &'static str,
    judge: Judge,
    samples: Vec<Sample>,
}

/// Measures as often as is wished, ours and the limit by turns, each by what is awaited.
pub(crate) fn by_turns(
    setting: &Setting,
    ours: impl AsyncFn() -> Result<f64>,
    limit: impl AsyncFn() -> Result<f64>,
) -> Result<Vec<Sample>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let sample = |_| Ok(Sample { ours: runtime.block_on(ours())?, limit: runtime.block_on(limit())? });
    (0..setting.runs()).map(sample).collect()
}

impl Figure {
    /// `samples` must hold at least one run.
    pub(crate) fn new(name: impl Into<String>, unit: &'static str, judge: Judge, samples: Vec<Sample>) -> Self {
        Self { name: name.into(), unit, judge, samples }
    }

    /// Whether the median of the ratios is good enough.
    pub(crate) fn holds(&self) -> bool {
        let ratio = self.ratio().median;
        match self.judge {
            Judge::AtLeast(bound) => ratio >= bound,
            Judge::AtMost(bound) => ratio <= bound,
            Judge::Within(_) => ratio <= 1.0,
        }
    }

    /// One JSON object, for programs.
    pub(crate) fn to_json(&self) -> String {
        let (ratio, ours, limit) = (self.ratio(), self.ours(), self.limit());
        let line = json!({
            "name": self.name,
            "ratio": rounded(ratio.median),
            "bound": self.bound(),
            "better": if matches!(self.judge, Judge::AtLeast(_)) { "higher" } else { "lower" },
            "holds": self.holds(),
            "ours": rounded(ours.median),
            "limit": rounded(limit.median),
            "unit": self.unit,
            "spread": { "ratio": ratio.range(), "ours": ours.range(), "limit": limit.range() },
            "runs": self.samples.len(),
        });
        line.to_string()
    }

    /// One line, for people.
    pub(crate) fn to_line(&self) -> String {
        let (ratio, ours, limit) = (self.ratio(), self.ours(), self.limit());
        let sign = if matches!(self.judge, Judge::AtLeast(_)) { ">=" } else { "<=" };
        let verdict = if self.holds() { "holds" } else { "MISSES" };
        format!(
            "{:<24} {verdict:<6} {:>8} {sign} {:<6} ({} to {})   ours {} {}, limit {}",
            self.name,
            rounded(ratio.median),
            self.bound(),
            rounded(ratio.min),
            rounded(ratio.max),
            rounded(ours.median),
            self.unit,
            rounded(limit.median),
        )
    }

    fn bound(&self) -> f64 {
        match self.judge {
            Judge::AtLeast(bound) | Judge::AtMost(bound) => bound,
            Judge::Within(_) => 1.0,
        }
    }

    fn ratio(&self) -> Spread {
        Spread::of(self.samples.iter().map(|sample| match self.judge {
            Judge::AtLeast(_) | Judge::AtMost(_) => sample.ours / sample.limit,
            Judge::Within(room) => (sample.ours - sample.limit) / room,
        }))
    }

    fn ours(&self) -> Spread {
        Spread::of(self.samples.iter().map(|sample| sample.ours))
    }

    fn limit(&self) -> Spread {
        Spread::of(self.samples.iter().map(|sample| sample.limit))
    }
}

/// The middle and the ends of several values.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_unstable_by(f64::total_cmp);
        let at = |place: usize| values.get(place).copied().unwrap_or(f64::NAN);
        Self { median: at(values.len() / 2), min: at(0), max: at(values.len().saturating_sub(1)) }
    }

    fn range(self) -> [f64; 2] {
        [rounded(self.min), rounded(self.max)]
    }
}

/// Four figures that count, which is more than a measurement is worth.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = 3 - value.abs().log10().floor() as i32;
    let factor = 10f64.powi(digits.clamp(0, 9));
    (value * factor).round() / factor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(judge: Judge, runs: &[(f64, f64)], holds: bool, ratio: f64) {
        let samples = runs.iter().map(|&(ours, limit)| Sample { ours, limit }).collect();
        let figure = Figure::new("some", "rows/s", judge, samples);
        assert_eq!(figure.holds(), holds);
        let line: serde_json::Value = serde_json::from_str(&figure.to_json()).expect("is JSON");
        assert_eq!((&line["ratio"], &line["holds"]), (&json!(ratio), &json!(holds)));
    }

    #[test]
    fn a_rate_reaches_its_bound_at_the_median() {
        check(Judge::AtLeast(0.8), &[(10.0, 100.0), (80.0, 100.0), (95.0, 100.0)], true, 0.8);
    }

    #[test]
    fn a_rate_below_its_bound_misses() {
        check(Judge::AtLeast(0.8), &[(79.0, 100.0)], false, 0.79);
    }

    #[test]
    fn a_time_stays_under_its_bound() {
        check(Judge::AtMost(3.0), &[(6.0, 2.0)], true, 3.0);
    }

    #[test]
    fn a_time_above_its_bound_misses() {
        check(Judge::AtMost(3.0), &[(6.5, 2.0)], false, 3.25);
    }

    #[test]
    fn a_time_within_its_room() {
        check(Judge::Within(1.0), &[(1.75, 1.25)], true, 0.5);
    }

    #[test]
    fn four_figures_count() {
        assert_eq!([123_456.7, 1.234_567, 0.001_234_56].map(rounded), [123_457.0, 1.235, 0.001_235]);
    }
}
