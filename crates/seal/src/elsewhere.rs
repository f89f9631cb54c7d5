//! Systems whose locks are not used: nothing is enforced, and the report says so.

use crate::{Finding, Mechanism, Places, Report, SealError, State};

pub(crate) fn lock(_: &Places) -> Result<Report, SealError> {
    let mechanisms =
        [Mechanism::NoNewPrivileges, Mechanism::SystemCalls, Mechanism::Files, Mechanism::Ports, Mechanism::Processes];
    let detail = format!("not enforced on {}", std::env::consts::OS);
    let findings = mechanisms.into_iter().map(|one| Finding::new(one, State::Absent, detail.clone())).collect();
    Ok(Report { findings, read: Vec::new(), write: Vec::new(), run: Vec::new() })
}
