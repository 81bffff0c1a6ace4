//! Metrics of the server, in Prometheus' text format.
//!
//! The memory of a series is constant: counters and gauges are one number, a histogram has one number per bucket.
//! Buckets, unlike quantiles, can be summed over nodes.

use ::metrics::atomics::AtomicU64;
use ::metrics::{
    Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Label, Metadata, Recorder, SetRecorderError, SharedString,
    Unit,
};
use metrics_util::registry::{Registry, Storage};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Upper bounds of the buckets in seconds; longer measurements are in none of them.
const BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// All metrics. Clones share them.
#[derive(Clone)]
pub struct Metrics(Arc<Registry<Key, Numbers>>);

struct Numbers;

impl Storage<Key> for Numbers {
    type Counter = Arc<AtomicU64>;
    type Gauge = Arc<AtomicU64>;
    type Histogram = Arc<Seconds>;

    fn counter(&self, _: &Key) -> Self::Counter {
        Arc::default()
    }

    fn gauge(&self, _: &Key) -> Self::Gauge {
        Arc::default()
    }

    fn histogram(&self, _: &Key) -> Self::Histogram {
        Arc::default()
    }
}

/// Measurements per bucket, without those of smaller buckets, and their total.
#[derive(Default)]
struct Seconds {
    within: [AtomicU64; BUCKETS.len()],
    count: AtomicU64,
    sum: AtomicU64,
}

impl HistogramFn for Seconds {
    fn record(&self, value: f64) {
        if let Some(bucket) = BUCKETS.iter().position(|end| value <= *end) {
            self.within[bucket].fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        ::metrics::GaugeFn::increment(&self.sum, value);
    }
}

impl Metrics {
    fn new() -> Self {
        Self(Arc::new(Registry::new(Numbers)))
    }

    /// Installs the recorder of the process.
    pub fn install() -> Result<Self, SetRecorderError<Self>> {
        let metrics = Self::new();
        ::metrics::set_global_recorder(metrics.clone())?;
        Ok(metrics)
    }

    /// All metrics in the text format, sorted by name and labels.
    pub fn render(&self) -> String {
        let mut families: BTreeMap<String, (&str, BTreeMap<String, String>)> = BTreeMap::new();
        let mut put = |key: &Key, kind, lines| {
            let (_, series) = families.entry(key.name().to_owned()).or_insert((kind, BTreeMap::new()));
            series.insert(labels(key.labels(), None), lines);
        };
        let line = |key: &Key, value: f64| format!("{}{} {value}\n", key.name(), labels(key.labels(), None));
        self.0.visit_counters(|key, counter| put(key, "counter", line(key, counter.load(Ordering::Relaxed) as f64)));
        self.0.visit_gauges(|key, gauge| put(key, "gauge", line(key, f64::from_bits(gauge.load(Ordering::Relaxed)))));
        self.0.visit_histograms(|key, seconds| put(key, "histogram", seconds.render(key)));
        let mut text = String::new();
        for (name, (kind, series)) in families {
            let _ = writeln!(text, "# TYPE {name} {kind}");
            text.extend(series.into_values());
        }
        text
    }
}

impl Seconds {
    fn render(&self, key: &Key) -> String {
        let name = key.name();
        let mut text = String::new();
        let mut so_far = 0;
        for (end, count) in BUCKETS.iter().zip(&self.within) {
            so_far += count.load(Ordering::Relaxed);
            let _ = writeln!(text, "{name}_bucket{} {so_far}", labels(key.labels(), Some(&end.to_string())));
        }
        // At least the sum of the buckets read before, because other threads continue to record.
        let count = self.count.load(Ordering::Relaxed).max(so_far);
        let sum = f64::from_bits(self.sum.load(Ordering::Relaxed));
        let labels_of = labels(key.labels(), None);
        let _ = writeln!(text, "{name}_bucket{} {count}", labels(key.labels(), Some("+Inf")));
        let _ = writeln!(text, "{name}_sum{labels_of} {sum}\n{name}_count{labels_of} {count}");
        text
    }
}

/// Formats labels, with `le` for a bucket.
fn labels<'a>(of: impl Iterator<Item = &'a Label>, end: Option<&str>) -> String {
    let end = end.map(|end| ("le", end));
    let pairs: Vec<String> = of
        .map(|label| (label.key(), label.value()))
        .chain(end)
        .map(|(key, value)| format!("{key}=\"{}\"", escaped(value)))
        .collect();
    if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) }
}

fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

impl Recorder for Metrics {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        self.0.get_or_create_counter(key, |counter| counter.clone().into())
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        self.0.get_or_create_gauge(key, |gauge| gauge.clone().into())
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        self.0.get_or_create_histogram(key, |histogram| histogram.clone().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::metrics::{counter, gauge, histogram, with_local_recorder};

    #[test]
    fn what_was_counted_and_measured_is_told_in_order() {
        let metrics = Metrics::new();
        with_local_recorder(&metrics, || {
            counter!("b_total", "end" => "done").increment(2);
            counter!("b_total", "end" => "done").increment(1);
            counter!("b_total", "end" => "a \"quoted\" \\ word\nand a line").increment(1);
            gauge!("a").set(2.5);
            for seconds in [0.005, 0.006, 3.0, 60.0] {
                histogram!("c_seconds", "route" => "/x").record(seconds);
            }
        });
        let expected = r##"# TYPE a gauge
a 2.5
# TYPE b_total counter
b_total{end="a \"quoted\" \\ word\nand a line"} 1
b_total{end="done"} 3
# TYPE c_seconds histogram
c_seconds_bucket{route="/x",le="0.005"} 1
c_seconds_bucket{route="/x",le="0.01"} 2
c_seconds_bucket{route="/x",le="0.025"} 2
c_seconds_bucket{route="/x",le="0.05"} 2
c_seconds_bucket{route="/x",le="0.1"} 2
c_seconds_bucket{route="/x",le="0.25"} 2
c_seconds_bucket{route="/x",le="0.5"} 2
c_seconds_bucket{route="/x",le="1"} 2
c_seconds_bucket{route="/x",le="2.5"} 2
c_seconds_bucket{route="/x",le="5"} 3
c_seconds_bucket{route="/x",le="10"} 3
c_seconds_bucket{route="/x",le="+Inf"} 4
c_seconds_sum{route="/x"} 63.011
c_seconds_count{route="/x"} 4
"##;
        assert_eq!(metrics.render(), expected);
    }
}
