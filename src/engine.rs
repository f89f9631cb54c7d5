//! The engine: models and settings behind four verbs (ingest, search, ask, and what the models do alone).

use std::path::PathBuf;

use anchorite_core::Limits;
use anchorite_formats::child::Program;
use anchorite_infer::{DeviceChoice, Precision};
use anchorite_models::Profile;
use anchorite_rag::Settings;

use crate::models::{ModelOptions, Models};

/// How an engine is set up.
#[derive(Clone, Debug, Default)]
pub struct EngineOptions {
    /// Folder with models; `None` looks in the usual places.
    pub models: Option<PathBuf>,
    /// Which known models to use where none is named.
    pub profile: Profile,
    /// Name or folder of another bi-encoder.
    pub embedder: Option<String>,
    /// Name or folder of another cross-encoder.
    pub reranker: Option<String>,
    /// Name, folder or file of another generator.
    pub generator: Option<String>,
    /// Where models compute.
    pub device: DeviceChoice,
    /// What the encoders multiply with on the processor.
    pub precision: Precision,
    /// Limits on inputs.
    pub limits: Limits,
    /// Settings of the loop.
    pub settings: Settings,
    /// A program that takes files of formats that may harm apart, in a process of its own; `None` does it in this one.
    pub extractor: Option<Program>,
}

/// Models and settings. It may be shared between threads; the generator answers one prompt at a time.
pub struct Engine {
    pub(crate) models: Models,
    pub(crate) limits: Limits,
    pub(crate) settings: Settings,
    pub(crate) extractor: Option<Program>,
}

impl Engine {
    /// An engine. Nothing is opened yet.
    #[must_use]
    pub fn new(options: EngineOptions) -> Self {
        let EngineOptions {
            models,
            profile,
            embedder,
            reranker,
            generator,
            device,
            precision,
            limits,
            settings,
            extractor,
        } = options;
        let models =
            Models::new(ModelOptions { folder: models, profile, embedder, reranker, generator, device, precision });
        Self { models, limits, settings, extractor }
    }

    /// The models.
    #[must_use]
    pub fn models(&self) -> &Models {
        &self.models
    }

    /// Limits on inputs.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }
}
