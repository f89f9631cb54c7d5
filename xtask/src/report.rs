//! Progress on standard error: bars on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Says something to the person in front of the terminal, or the log.
pub(crate) fn line(text: &str) {
    eprintln!("{text}");
}

/// A bar over bytes, or a single line where there is no terminal.
pub(crate) fn bytes(label: &str, total: u64) -> ProgressBar {
    bar(label, total, "{msg} {wide_bar} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec}")
}

/// A bar over things, or a single line where there is no terminal.
pub(crate) fn pieces(label: &str, total: u64) -> ProgressBar {
    bar(label, total, "{msg} {wide_bar} {pos}/{len} {elapsed}")
}

fn bar(label: &str, total: u64, template: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        line(&format!("{label} …"));
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(total).with_message(label.to_owned());
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
