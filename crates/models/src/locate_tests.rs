use super::*;

fn write(root: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().expect("has a parent")).expect("create");
        std::fs::write(path, text).expect("write");
    }
}

fn library(places: &[(Origin, &Path)]) -> ModelLibrary {
    ModelLibrary::with_roots(places.iter().map(|(origin, path)| (*origin, Some(path.to_path_buf()))))
}

const OWN_EMBEDDER: [(&str, &str); 3] =
    [("mine/config.json", "{}"), ("mine/modules.json", "[]"), ("mine/model.safetensors", "x")];

#[test]
fn m04_the_first_place_that_has_a_model_gives_it() {
    let (first, second) = (tempfile::tempdir().expect("folder"), tempfile::tempdir().expect("folder"));
    write(first.path(), &[("one.gguf", "a")]);
    write(second.path(), &[("one.gguf", "b"), ("two/weights.gguf", "c")]);
    let library = library(&[(Origin::Checkout, first.path()), (Origin::UserData, second.path())]);
    let one = library.find(ModelRole::Generator, "one").expect("found");
    assert_eq!((one.path.as_path(), one.origin), (first.path(), Origin::Checkout));
    let two = library.find(ModelRole::Generator, "two").expect("found");
    assert_eq!(
        (two.gguf_file(), two.origin),
        (Some(second.path().join("two/weights.gguf").as_path()), Origin::UserData)
    );
    let names: Vec<String> = library.list().into_iter().map(|folder| folder.name).collect();
    assert_eq!(names, ["one", "two"]);
}

#[test]
fn f18_a_missing_model_is_named_with_every_place_and_the_remedy() {
    let (first, second) = (tempfile::tempdir().expect("folder"), tempfile::tempdir().expect("folder"));
    write(second.path(), &[("other.gguf", "")]);
    let library = library(&[(Origin::Checkout, first.path()), (Origin::UserData, second.path())]);
    let message = library.find(ModelRole::Generator, Profile::Base).expect_err("missing").to_string();
    for part in ["generator `Qwen2.5-Coder-1.5B-Instruct`", "there: other", "cargo xtask setup", "--models DIR"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    for root in library.roots() {
        assert!(message.contains(&root.path.display().to_string()), "{message}");
    }
}

#[test]
fn f18_a_folder_without_models_is_refused_and_nothing_else_is_used_instead() {
    let (empty, full) = (tempfile::tempdir().expect("folder"), tempfile::tempdir().expect("folder"));
    write(full.path(), &OWN_EMBEDDER);
    write(empty.path(), &[("notes.txt", "")]);
    let library_of = |explicit: &Path| library(&[(Origin::Explicit, explicit), (Origin::UserData, full.path())]);
    let refused = |library: ModelLibrary| library.find(ModelRole::Embedder, "mine").expect_err("refused").to_string();
    assert!(refused(library_of(empty.path())).contains("holds no model"));
    assert!(refused(library_of(&empty.path().join("nowhere"))).contains("does not exist"));
    assert!(refused(library_of(&empty.path().join("notes.txt"))).contains("is not a folder"));
}

#[test]
fn m04_own_models_in_a_given_folder_need_no_names() {
    let (own, data) = (tempfile::tempdir().expect("folder"), tempfile::tempdir().expect("folder"));
    write(own.path(), &OWN_EMBEDDER);
    write(data.path(), &[("tiny.gguf", "")]);
    let library = library(&[(Origin::Explicit, own.path()), (Origin::UserData, data.path())]);
    assert_eq!(library.find(ModelRole::Embedder, Profile::Base).expect("found").name, "mine");
    assert!(matches!(library.find(ModelRole::Generator, Profile::Base), Err(ModelError::Missing { .. })));
    assert_eq!(library.find(ModelRole::Generator, "tiny").expect("later places are still searched").name, "tiny");
    write(own.path(), &[("second/config.json", "{}"), ("second/modules.json", "[]"), ("second/model.safetensors", "")]);
    assert!(matches!(library.find(ModelRole::Embedder, Profile::Base), Err(ModelError::Missing { .. })));
}

#[test]
fn f18_a_known_model_that_is_partial_is_an_error_and_not_passed_over() {
    let root = tempfile::tempdir().expect("folder");
    write(root.path(), &[("all-MiniLM-L6-v2/model.safetensors", "short")]);
    let library = library(&[(Origin::UserData, root.path())]);
    let error = library.find(ModelRole::Embedder, Profile::Base).expect_err("partial");
    assert!(matches!(&error, ModelError::Invalid { path, .. } if path.ends_with("model.safetensors")), "{error}");
    assert!(library.list().is_empty());
}

#[test]
fn a_path_is_taken_directly_and_must_have_the_role() {
    let root = tempfile::tempdir().expect("folder");
    write(root.path(), &OWN_EMBEDDER);
    let path = root.path().join("mine");
    let name = path.to_str().expect("UTF-8");
    let library = ModelLibrary::with_roots([]);
    let folder = library.find(ModelRole::Embedder, name).expect("found");
    assert_eq!((folder.name.as_str(), folder.origin), ("mine", Origin::Path));
    let error = library.find(ModelRole::Reranker, name).expect_err("is an embedder").to_string();
    assert!(error.contains("`embedder`") && error.contains("`reranker`"), "{error}");
}

#[cfg(unix)]
#[test]
fn m04_a_hub_cache_is_searched_last() {
    let root = tempfile::tempdir().expect("folder");
    let files = [("config.json", "{}"), ("modules.json", "[]"), ("model.safetensors", "x")];
    crate::hub_cache::tests::lay_out(root.path(), "sentence-transformers/all-MiniLM-L6-v2", &files);
    let gguf = [("qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", "x"), ("qwen2.5-coder-1.5b-instruct-q8_0.gguf", "x")];
    crate::hub_cache::tests::lay_out(root.path(), "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", &gguf);
    crate::hub_cache::tests::lay_out(root.path(), "someone/else", &[("README.md", "")]);
    let library = library(&[(Origin::HubCache, root.path())]);
    let embedder = library.find(ModelRole::Embedder, Profile::Base).expect("found");
    assert_eq!((embedder.name.as_str(), embedder.origin), ("all-MiniLM-L6-v2", Origin::HubCache));
    assert!(library.find(ModelRole::Embedder, "sentence-transformers/all-MiniLM-L6-v2").is_ok());
    let generator = library.find(ModelRole::Generator, Profile::Base).expect("found");
    assert!(generator.gguf_file().is_some_and(|file| file.ends_with("qwen2.5-coder-1.5b-instruct-q4_k_m.gguf")));
    assert!(matches!(library.find(ModelRole::Embedder, "someone/else"), Err(ModelError::Missing { .. })));
    assert!(matches!(library.find(ModelRole::Embedder, "../../etc"), Err(ModelError::Missing { .. })));
}
