//! Why something could not be measured.

use std::path::PathBuf;

use thiserror::Error;

/// A test collection that can't be used, or a file of results that can't be read or written.
#[derive(Debug, Error)]
pub enum EvalError {
    /// A file can't be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line is not what the format asks for.
    #[error("{}, line {line}: {problem}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// A folder holds nothing to measure with.
    #[error("{}: neither it nor a folder in it has {wanted}; give the folder of one set, or a folder of such folders", path.display())]
    NoCollection {
        /// The folder.
        path: PathBuf,
        /// The files that a set of this kind has.
        wanted: &'static str,
    },
    /// A set that was asked for by name is not there.
    #[error("there is no set `{name}`; there are: {known}")]
    UnknownCollection {
        /// The name.
        name: String,
        /// Those that are there.
        known: String,
    },
    /// An identifier can't stand in a file whose fields white space separates.
    #[error("the identifier {identifier:?} has white space, which a TREC run file can't hold; rename it in the corpus")]
    Identifier {
        /// The identifier.
        identifier: String,
    },
    /// Results in a file come from another run.
    #[error("{} holds results of other settings, models or another build; name another file, or delete it", path.display())]
    OtherRun {
        /// The file.
        path: PathBuf,
    },
}

impl EvalError {
    /// Names the file that an error of the system is about.
    pub(crate) fn io(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}
