//! Standard output, and progress on standard error.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

/// Where results go. A reader that has gone away (a closed pipe) ends the program quietly, which `main` sees to.
pub(crate) struct Output {
    pub(crate) json: bool,
    pub(crate) quiet: bool,
}

impl Output {
    /// One line.
    pub(crate) fn line(&self, text: impl std::fmt::Display) -> io::Result<()> {
        writeln!(io::stdout().lock(), "{text}")
    }

    /// A piece of a line, shown at once.
    pub(crate) fn piece(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// One JSON document.
    pub(crate) fn document(&self, value: &impl Serialize) -> io::Result<()> {
        let mut out = io::stdout().lock();
        serde_json::to_writer_pretty(&mut out, value)?;
        writeln!(out)
    }

    /// One JSON document on one line.
    pub(crate) fn record(&self, value: &impl Serialize) -> io::Result<()> {
        let mut out = io::BufWriter::new(io::stdout().lock());
        serde_json::to_writer(&mut out, value)?;
        writeln!(out)?;
        out.flush()
    }

    /// A line for people on standard error.
    pub(crate) fn remark(&self, text: impl std::fmt::Display) {
        if !self.quiet {
            // Nobody is left to tell if standard error is gone.
            let _ = writeln!(io::stderr().lock(), "{text}");
        }
    }

    /// A bar on a terminal, nothing elsewhere.
    pub(crate) fn bar(&self, total: u64, template: &str) -> ProgressBar {
        let target = if self.quiet || !io::stderr().is_terminal() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        bar
    }
}
