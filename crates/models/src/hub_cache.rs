//! Reading a Hugging Face cache: `models--ORG--NAME/{refs,snapshots,blobs}`. Nothing is written or fetched.

use std::path::{Path, PathBuf};

use hf_hub::{Cache, Repo, RepoType};

use crate::folder::is_plain_name;

/// True for `organisation/name` with nothing in it that could lead out of the cache.
pub(crate) fn is_repository(name: &str) -> bool {
    match name.split_once('/') {
        Some((organisation, model)) => {
            // The cache folder's name joins both with `--`, so the same two characters inside would be ambiguous.
            is_plain_name(organisation) && is_plain_name(model) && !organisation.contains("--")
        }
        None => false,
    }
}

/// The newest snapshot of a repository, if the cache at `root` has one.
pub(crate) fn snapshot(root: &Path, repository: &str) -> Option<PathBuf> {
    if !is_repository(repository) {
        return None;
    }
    let repo = Repo::new(repository.to_owned(), RepoType::Model);
    let reference = root.join(repo.folder_name()).join("refs").join(repo.revision());
    let commit = std::fs::read_to_string(reference).ok()?;
    // The cache's reader joins the commit to a path as it stands.
    if commit.len() != 40 || !commit.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let snapshot = Cache::new(root.to_path_buf()).repo(repo).pointer_path(&commit);
    snapshot.is_dir().then_some(snapshot)
}

/// A file of a repository, if it is there whole.
pub(crate) fn file(root: &Path, repository: &str, path: &str) -> Option<PathBuf> {
    snapshot(root, repository)?;
    if !path.split('/').all(is_plain_name) {
        return None;
    }
    Cache::new(root.to_path_buf()).model(repository.to_owned()).get(path)
}

/// Every repository with a snapshot.
pub(crate) fn repositories(root: &Path) -> Vec<(String, PathBuf)> {
    let Ok(names) = crate::folder::file_names(root) else { return Vec::new() };
    let repositories = names.iter().filter_map(|name| name.strip_prefix("models--")?.split_once("--"));
    repositories
        .filter_map(|(organisation, model)| {
            let repository = format!("{organisation}/{model}");
            let snapshot = snapshot(root, &repository)?;
            Some((repository, snapshot))
        })
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    /// Lays out a cache as the Hub's own client does, with the snapshot's files linked to blobs.
    #[cfg(unix)]
    pub(crate) fn lay_out(root: &Path, repository: &str, files: &[(&str, &str)]) {
        let folder = root.join(format!("models--{}", repository.replace('/', "--")));
        let snapshot = folder.join("snapshots").join(COMMIT);
        for created in [folder.join("refs"), folder.join("blobs")] {
            std::fs::create_dir_all(created).expect("create");
        }
        std::fs::write(folder.join("refs/main"), COMMIT).expect("write");
        for (number, (name, text)) in files.iter().enumerate() {
            let blob = folder.join("blobs").join(format!("blob{number}"));
            std::fs::write(&blob, text).expect("write");
            let link = snapshot.join(name);
            std::fs::create_dir_all(link.parent().expect("has a parent")).expect("create");
            std::os::unix::fs::symlink(&blob, &link).expect("link");
        }
    }

    #[cfg(unix)]
    #[test]
    fn m04_a_hub_cache_is_read_offline() {
        let root = tempfile::tempdir().expect("temporary folder");
        lay_out(root.path(), "org/model", &[("config.json", "{}"), ("1_Pooling/config.json", "{}")]);
        let snapshot = snapshot(root.path(), "org/model").expect("there");
        assert!(snapshot.ends_with(format!("models--org--model/snapshots/{COMMIT}")));
        assert_eq!(
            file(root.path(), "org/model", "1_Pooling/config.json"),
            Some(snapshot.join("1_Pooling/config.json"))
        );
        assert_eq!(file(root.path(), "org/model", "model.safetensors"), None);
        assert_eq!(repositories(root.path()), [("org/model".to_owned(), snapshot)]);
    }

    #[cfg(unix)]
    #[test]
    fn names_that_lead_out_of_the_cache_find_nothing() {
        let root = tempfile::tempdir().expect("temporary folder");
        let outside = root.path().join("outside");
        let cache = root.path().join("cache");
        lay_out(&cache, "org/model", &[("config.json", "{}")]);
        std::fs::create_dir_all(&outside).expect("create");
        std::fs::write(outside.join("config.json"), "{}").expect("write");
        for repository in ["../outside", "org/..", "org/model/../..", "/outside", "org/a/b", "org--x/model", "model"] {
            assert_eq!(snapshot(&cache, repository), None, "{repository}");
        }
        assert_eq!(file(&cache, "org/model", "../../../../outside/config.json"), None);
        std::fs::write(cache.join("models--org--model/refs/main"), "../../../../outside").expect("write");
        assert_eq!(snapshot(&cache, "org/model"), None, "a reference that is no commit is not followed");
        assert_eq!(file(&cache, "org/model", "config.json"), None);
    }
}
