//! Files that may be opened: a Landlock ruleset, <https://docs.kernel.org/userspace-api/landlock.html>.

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd,
    PathFdError, RestrictionStatus, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope,
};

use crate::{Finding, Mechanism, Places, SealError, State};

/// The newest rules that are asked for; an older kernel enforces those it knows.
const NEWEST: ABI = ABI::V7;

/// What each older version of the kernel's rules does not cover, of files.
const GAPS: &[(i32, &str)] = &[(3, "cutting files short"), (5, "controls of devices")];
/// The first versions that know ports, and sockets and signals.
const PORTS_SINCE: i32 = 4;
const PROCESSES_SINCE: i32 = 6;

pub(super) fn restrict(places: &Places) -> Result<Vec<Finding>, SealError> {
    let status = ruleset(places)?.restrict_self().map_err(|error| system(&error))?;
    Ok(findings(&status))
}

fn ruleset(places: &Places) -> Result<RulesetCreated, SealError> {
    let created = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(NEWEST)))
        .and_then(|rules| rules.scope(Scope::from_all(NEWEST)))
        .and_then(Ruleset::create)
        .map_err(|error| system(&error))?;
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let write = read
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::RemoveFile
        | AccessFs::RemoveDir
        | AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::Refer;
    let run = AccessFs::ReadFile | AccessFs::Execute;
    let all = places.read.iter().map(|path| (path, read));
    let all = all.chain(places.write.iter().map(|path| (path, write)));
    let mut all = all.chain(places.run.iter().map(|path| (path, run)));
    all.try_fold(created, |rules, (path, access)| allow(rules, path, access))
}

/// Lets `path` be accessed. A place that is not there is left out: there is nothing to open.
fn allow(rules: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> Result<RulesetCreated, SealError> {
    let place = match PathFd::new(path) {
        Ok(place) => place,
        Err(PathFdError::OpenCall { source, .. }) if is_absent(&source) => return Ok(rules),
        Err(error) => return Err(SealError::Place { path: path.to_path_buf(), reason: error.to_string() }),
    };
    // Rights of folders make no sense for a file, and the kernel refuses them.
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
    rules.add_rule(PathBeneath::new(place, access)).map_err(|error| system(&error))
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

fn system(error: &RulesetError) -> SealError {
    SealError::System { mechanism: "Landlock", reason: error.to_string() }
}

fn findings(status: &RestrictionStatus) -> Vec<Finding> {
    let version = match &status.landlock {
        LandlockStatus::Available { effective_abi, .. } => *effective_abi as i32,
        LandlockStatus::NotEnabled => return absent("the kernel has Landlock, and it is not turned on"),
        LandlockStatus::NotImplemented => return absent("the kernel has no Landlock"),
    };
    if status.ruleset == RulesetStatus::NotEnforced {
        return absent("the kernel did not take the ruleset");
    }
    let gaps: Vec<&str> = GAPS.iter().filter(|(since, _)| version < *since).map(|(_, what)| *what).collect();
    let files = match gaps.as_slice() {
        [] => Finding::new(Mechanism::Files, State::Enforced, format!("Landlock, version {version} of its rules")),
        gaps => {
            let detail = format!("Landlock, version {version} of its rules, which do not cover {}", gaps.join(" and "));
            Finding::new(Mechanism::Files, State::Partly, detail)
        }
    };
    let since = |mechanism, first: i32, what: &str| {
        if version >= first {
            Finding::new(mechanism, State::Enforced, format!("Landlock: {what}"))
        } else {
            let detail =
                format!("Landlock knows them from version {first} of its rules on, and this kernel has {version}");
            Finding::new(mechanism, State::Absent, detail)
        }
    };
    vec![
        files,
        since(Mechanism::Ports, PORTS_SINCE, "no TCP port may be bound or connected to"),
        since(Mechanism::Processes, PROCESSES_SINCE, "no abstract Unix socket and no signal reaches a process outside"),
    ]
}

fn absent(why: &str) -> Vec<Finding> {
    [Mechanism::Files, Mechanism::Ports, Mechanism::Processes]
        .into_iter()
        .map(|mechanism| Finding::new(mechanism, State::Absent, why))
        .collect()
}
