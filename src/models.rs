//! The three models, found in the library and opened when first needed.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anchorite_core::{Generator, ModelFingerprint, Reranker};
use anchorite_infer::{BiEncoder, CrossEncoder, DeviceChoice, LoadError, LocalGenerator, Precision};
use anchorite_models::{Manifest, ModelError, ModelFolder, ModelLibrary, ModelRole, Profile, Wanted, fingerprint};
use anchorite_rag::{OpinionScale, Probe, RelevanceScale, Settings};
use serde::Serialize;

use crate::Error;

/// Which models are wanted, and where they compute.
#[derive(Clone, Debug, Default)]
pub(crate) struct ModelOptions {
    pub(crate) folder: Option<PathBuf>,
    pub(crate) profile: Profile,
    pub(crate) embedder: Option<String>,
    pub(crate) reranker: Option<String>,
    pub(crate) generator: Option<String>,
    pub(crate) device: DeviceChoice,
    pub(crate) precision: Precision,
}

/// A model in use, for reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModelInUse {
    /// What it is for.
    pub role: ModelRole,
    /// Its name.
    pub name: String,
    /// Hash over its files.
    pub sha256: String,
    /// Where it computes.
    pub device: String,
}

/// `settings` with what is known of the models in place of what they leave open.
pub(crate) fn with_known(
    settings: &Settings,
    reranker: Option<&CrossEncoder>,
    generator: Option<&LocalGenerator>,
) -> Settings {
    let mut settings = settings.clone();
    let known = |fingerprint: &ModelFingerprint| Manifest::built_in().model(&fingerprint.name);
    let scale = reranker.and_then(|model| known(Reranker::fingerprint(model))?.relevance);
    settings.relevance_scale = settings.relevance_scale.or(scale.map(|known| RelevanceScale {
        logit: known.logit,
        fused: known.fused,
        linked: known.linked,
        constant: known.constant,
    }));
    let opinion = generator.and_then(|model| known(Generator::fingerprint(model))?.opinion);
    settings.opinion =
        settings.opinion.or(opinion.map(|known| OpinionScale { slope: known.slope, offset: known.offset }));
    settings
}

/// What is known of a generator's states where passages hold an answer: from the file `given`, or of this build.
pub(crate) fn probe_of(generator: &LocalGenerator, given: Option<&Path>) -> Result<Option<Probe>, Error> {
    let Some(path) = given else {
        let name = &Generator::fingerprint(generator).name;
        let known = anchorite_models::probe(name).map(|text| Probe::read(text, name)).transpose();
        let origin = format!("the probe of this build for {name}");
        let known = known.map_err(|problem| Error::Probe { origin, problem })?;
        // Another model may have the same name.
        return Ok(known.filter(|probe| fits(probe, generator).is_ok()));
    };
    read_probe(generator, path).map(Some)
}

/// The probe in a file, which must be one of this generator.
pub(crate) fn read_probe(generator: &LocalGenerator, path: &Path) -> Result<Probe, Error> {
    let read = || {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let probe = Probe::read(&text, &Generator::fingerprint(generator).name)?;
        fits(&probe, generator)?;
        Ok(probe)
    };
    read().map_err(|problem| Error::Probe { origin: path.display().to_string(), problem })
}

/// Whether the generator has the layer that the probe reads, and states of its width.
fn fits(probe: &Probe, generator: &LocalGenerator) -> Result<(), String> {
    let spec = generator.spec();
    if probe.layer >= spec.layers {
        let last = spec.layers.saturating_sub(1);
        return Err(format!("it reads layer {}, and the generator's last is {last}", probe.layer));
    }
    if probe.weights.len() != spec.hidden {
        return Err(format!(
            "it has {} weights, and the generator's states are {} wide",
            probe.weights.len(),
            spec.hidden
        ));
    }
    Ok(())
}

struct Slot<M>(Mutex<Option<Arc<M>>>);

impl<M> Slot<M> {
    fn new() -> Self {
        Self(Mutex::new(None))
    }

    fn get_or_open(&self, open: impl FnOnce() -> Result<M, Error>) -> Result<Arc<M>, Error> {
        // A panic while opening leaves the slot empty, which is a state like any other.
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = slot.as_ref() {
            return Ok(Arc::clone(model));
        }
        let model = Arc::new(open()?);
        *slot = Some(Arc::clone(&model));
        Ok(model)
    }

    /// The model, if it is open.
    fn opened(&self) -> Option<Arc<M>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The models of an engine.
pub struct Models {
    options: ModelOptions,
    library: ModelLibrary,
    embedder: Slot<BiEncoder>,
    reranker: Slot<CrossEncoder>,
    generator: Slot<LocalGenerator>,
    in_use: Mutex<Vec<ModelInUse>>,
    loading: Mutex<Duration>,
    /// What a model that does not fit into memory said of itself.
    too_large: Mutex<Option<String>>,
}

impl Models {
    pub(crate) fn new(options: ModelOptions) -> Self {
        let library = ModelLibrary::discover(options.folder.as_deref());
        Self {
            options,
            library,
            embedder: Slot::new(),
            reranker: Slot::new(),
            generator: Slot::new(),
            in_use: Mutex::new(Vec::new()),
            loading: Mutex::new(Duration::ZERO),
            too_large: Mutex::new(None),
        }
    }

    /// Where models are looked for.
    #[must_use]
    pub fn library(&self) -> &ModelLibrary {
        &self.library
    }

    /// The folder of the model wanted for `role`.
    ///
    /// # Errors
    /// If it is nowhere, naming every place looked at.
    pub fn folder(&self, role: ModelRole) -> Result<ModelFolder, ModelError> {
        let named = match role {
            ModelRole::Embedder => &self.options.embedder,
            ModelRole::Reranker => &self.options.reranker,
            ModelRole::Generator => &self.options.generator,
        };
        match named {
            Some(name) => self.library.find(role, name.as_str()),
            None => self.library.find(role, Wanted::Profile(self.options.profile)),
        }
    }

    /// The bi-encoder.
    ///
    /// # Errors
    /// If it can't be found or loaded.
    pub fn embedder(&self) -> Result<Arc<BiEncoder>, Error> {
        self.embedder.get_or_open(|| {
            self.open(ModelRole::Embedder, |folder| {
                BiEncoder::open(folder, self.options.device, self.options.precision)
            })
        })
    }

    /// The cross-encoder; `None` if there is none, which makes the service smaller (M43).
    ///
    /// # Errors
    /// If there is one and it can't be loaded.
    pub fn reranker(&self) -> Result<Option<Arc<CrossEncoder>>, Error> {
        optional(
            self.options.reranker.is_some(),
            self.reranker.get_or_open(|| {
                self.open(ModelRole::Reranker, |folder| {
                    CrossEncoder::open(folder, self.options.device, self.options.precision)
                })
            }),
        )
    }

    /// The generator; `None` if there is none or it does not fit into memory, which makes the service smaller (M43).
    ///
    /// # Errors
    /// If there is one and it can't be loaded.
    pub fn generator(&self) -> Result<Option<Arc<LocalGenerator>>, Error> {
        let opened = self.generator.get_or_open(|| {
            self.open(ModelRole::Generator, |folder| {
                let identity = fingerprint(folder, &mut |_| ())?;
                let file = folder.weight_files()?.into_iter().next().ok_or_else(|| LoadError::Metadata {
                    key: folder.name.clone(),
                    problem: "the folder has no GGUF file".to_owned(),
                })?;
                LocalGenerator::open(&file, identity, self.options.device)
            })
        });
        match opened {
            Err(Error::Load(LoadError::Model(error @ ModelError::TooLarge { .. })))
                if self.options.generator.is_none() =>
            {
                *self.too_large.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
                Ok(None)
            }
            opened => optional(self.options.generator.is_some(), opened),
        }
    }

    /// Where and with what precision the encoders compute.
    pub(crate) fn compute(&self) -> (DeviceChoice, Precision) {
        (self.options.device, self.options.precision)
    }

    /// The models that were opened.
    #[must_use]
    pub fn in_use(&self) -> Vec<ModelInUse> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Time spent on opening models so far.
    #[must_use]
    pub fn loading_time(&self) -> Duration {
        *self.loading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the engine goes without of `roles`, in lines for people; empty if all are there.
    #[must_use]
    pub fn missing(&self, roles: &[ModelRole]) -> Vec<String> {
        let lacks = |role| matches!(self.folder(role), Err(ModelError::Missing { .. } | ModelError::NoModels { .. }));
        let instead = |role| match role {
            ModelRole::Embedder => "nothing can be embedded",
            ModelRole::Reranker => "results are ordered by fusion alone and graded by similarity",
            ModelRole::Generator => "answers are sentences taken from the documents",
        };
        let line = |role| format!("no {role}: {} (run `cargo xtask setup` to add one)", instead(role));
        let mut lines: Vec<String> = roles.iter().copied().filter(|&role| lacks(role)).map(line).collect();
        if roles.contains(&ModelRole::Generator) {
            let reason = self.too_large.lock().unwrap_or_else(PoisonError::into_inner).clone();
            lines.extend(reason.map(|reason| format!("no generator: {reason}; {}", instead(ModelRole::Generator))));
            let problem = self.generator.opened().and_then(|generator| generator.template_problem().map(str::to_owned));
            lines.extend(
                problem
                    .map(|problem| format!("the generator's chat template can't be run ({problem}); ChatML is used")),
            );
        }
        lines
    }

    fn open<M>(&self, role: ModelRole, load: impl FnOnce(&ModelFolder) -> Result<M, LoadError>) -> Result<M, Error> {
        let started = Instant::now();
        let folder = self.folder(role)?;
        let model = load(&folder)?;
        let ModelFingerprint { name, sha256 } = fingerprint(&folder, &mut |_| ())?;
        tracing::info!(%role, name, seconds = started.elapsed().as_secs_f64(), "model opened");
        let device = self.options.device.to_string();
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner).push(ModelInUse { role, name, sha256, device });
        *self.loading.lock().unwrap_or_else(PoisonError::into_inner) += started.elapsed();
        Ok(model)
    }
}

/// A model that was `named` must be there; one that was not may be missing.
fn optional<M>(named: bool, opened: Result<Arc<M>, Error>) -> Result<Option<Arc<M>>, Error> {
    match opened {
        Ok(model) => Ok(Some(model)),
        Err(error) if named => Err(error),
        Err(Error::Model(ModelError::Missing { .. } | ModelError::NoModels { .. })) => Ok(None),
        Err(error) => Err(error),
    }
}
