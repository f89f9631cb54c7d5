//! What of the lock is enforced.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use crate::SealError;

/// A part of the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mechanism {
    /// Nothing that this process starts gains rights.
    NoNewPrivileges,
    /// Calls to the system that make sockets, namespaces and mounts, or look into other processes.
    SystemCalls,
    /// Files outside the allowed places.
    Files,
    /// TCP connections and ports, should there be a socket all the same.
    Ports,
    /// Abstract Unix sockets and signals to processes outside.
    Processes,
}

impl Mechanism {
    /// True if a process without it is not sealed.
    #[must_use]
    pub fn is_essential(self) -> bool {
        matches!(self, Self::NoNewPrivileges | Self::SystemCalls | Self::Files)
    }

    /// A name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NoNewPrivileges => "no new privileges",
            Self::SystemCalls => "system calls",
            Self::Files => "files",
            Self::Ports => "TCP ports",
            Self::Processes => "other processes",
        }
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How far a mechanism holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Wholly.
    Enforced,
    /// With gaps, which the detail names.
    Partly,
    /// Not at all.
    Absent,
}

/// What was found of one mechanism.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// How far it holds.
    pub state: State,
    /// By what, or why not.
    pub detail: String,
}

impl Finding {
    pub(crate) fn new(mechanism: Mechanism, state: State, detail: impl Into<String>) -> Self {
        Self { mechanism, state, detail: detail.into() }
    }
}

/// The lock as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Every mechanism, once.
    pub findings: Vec<Finding>,
    /// Places that may be read.
    pub read: Vec<PathBuf>,
    /// Places that may be written to as well.
    pub write: Vec<PathBuf>,
    /// Programs that may be started; they inherit the lock.
    pub run: Vec<PathBuf>,
}

impl Report {
    /// True if every essential mechanism holds.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.lacking().next().is_none()
    }

    fn lacking(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|one| one.mechanism.is_essential() && one.state == State::Absent)
    }

    /// The report of a process that is sealed.
    ///
    /// # Errors
    /// [`SealError::Lacking`] naming every essential mechanism that does not hold.
    pub fn demand(self) -> Result<Self, SealError> {
        if self.is_sealed() {
            return Ok(self);
        }
        let lacking: Vec<String> = self.lacking().map(|one| format!("{}: {}", one.mechanism, one.detail)).collect();
        Err(SealError::Lacking { lacking: lacking.join(", ") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(states: &[(Mechanism, State)]) -> Report {
        let findings = states.iter().map(|(mechanism, state)| Finding::new(*mechanism, *state, "why")).collect();
        Report { findings, read: Vec::new(), write: Vec::new(), run: Vec::new() }
    }

    #[test]
    fn m03_what_is_essential_and_absent_is_an_error_that_names_it() {
        let lacks = report(&[(Mechanism::SystemCalls, State::Enforced), (Mechanism::Files, State::Absent)]);
        let message = lacks.demand().expect_err("not sealed").to_string();
        assert!(message.contains("files: why") && message.contains("lsm=") && !message.contains("system calls"));
    }

    #[test]
    fn a_mechanism_that_is_not_essential_may_be_absent() {
        let report = report(&[(Mechanism::Files, State::Partly), (Mechanism::Ports, State::Absent)]);
        assert!(report.is_sealed() && report.demand().is_ok());
    }
}
