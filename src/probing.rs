//! What measuring needs of the models: examples to fit a probe of the generator to, and questions made from passages.

use std::path::Path;
use std::sync::Arc;

use anchorite_core::{Budget, Embedder, Generator, Passage, Reranker, RetrieveError, Retriever};
use anchorite_rag::{MadeQuestion, Met, Parts, Probe, RelevanceScale, meet, question_from};

use crate::ask::{Nothing, RERANKED};
use crate::models::{read_probe, with_known};
use crate::{Engine, Error, KnowledgeRetriever, SearchOptions};

/// A retriever that does not see some sources.
struct Without<'a> {
    all: &'a KnowledgeRetriever,
    hidden: &'a (dyn Fn(&str) -> bool + Sync),
}

impl Retriever for Without<'_> {
    fn retrieve(&self, query: &str, k: usize) -> Result<Vec<Passage>, RetrieveError> {
        let mut found = self.all.retrieve(query, RERANKED.max(k))?;
        found.retain(|passage| !(self.hidden)(&passage.source));
        found.truncate(k);
        Ok(found)
    }
}

impl Engine {
    /// The generator's states after each of `layers` once it has read what the first round of the loop finds for `question`
    /// in the knowledge base `kb`; see [`meet`]. `None` where the loop would ask no probe. Sources that `hidden` says so of are
    /// as if they were not there.
    ///
    /// # Errors
    /// If the question can't be asked, the knowledge base can't be opened, or a model fails.
    pub fn states(
        &self,
        kb: &Path,
        question: &str,
        layers: &[usize],
        hidden: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<Option<Met>, Error> {
        self.check_question("question", question)?;
        let retriever = self.retriever(kb, &SearchOptions::default(), RERANKED)?;
        let embedder = self.models.embedder()?;
        let reranker = self.models.reranker()?;
        let generator = self.models.generator()?;
        let settings = with_known(&self.settings, reranker.as_deref(), generator.as_deref());
        let parts = Parts {
            retriever: &Without { all: &retriever, hidden },
            embedder: Some(&*embedder as &dyn Embedder),
            reranker: reranker.as_ref().map(Arc::as_ref).map(|model| model as &dyn Reranker),
            generator: generator.as_ref().map(Arc::as_ref).map(|model| model as &dyn Generator),
            probe: None,
            asker: None,
            settings: &settings,
        };
        Ok(meet(&parts, question, layers, &Budget::unlimited())?)
    }

    /// The probe in the file `path`, which must be one of the generator in use; `None` without a generator.
    ///
    /// # Errors
    /// If the file is none, or of another model; or the generator can't be opened.
    pub fn probe(&self, path: &Path) -> Result<Option<Probe>, Error> {
        self.models.generator()?.map(|generator| read_probe(&generator, path)).transpose()
    }

    /// What the logits of the reranker in use are worth: as the settings say, or what is known of the model.
    ///
    /// # Errors
    /// If the reranker can't be opened.
    pub fn relevance_scale(&self) -> Result<RelevanceScale, Error> {
        let reranker = self.models.reranker()?;
        Ok(with_known(&self.settings, reranker.as_deref(), None).relevance_scale.unwrap_or_default())
    }

    /// A question that `passage` answers; `None` if the generator made none that is of use as a test. See
    /// [`question_from`].
    ///
    /// # Errors
    /// If there is no generator, or a model fails.
    pub fn question_from(&self, passage: &Passage) -> Result<Option<MadeQuestion>, Error> {
        let reranker = self.models.reranker()?;
        let generator = self.models.generator()?;
        let parts = Parts {
            retriever: &Nothing,
            embedder: None,
            reranker: reranker.as_ref().map(Arc::as_ref).map(|model| model as &dyn Reranker),
            generator: generator.as_ref().map(Arc::as_ref).map(|model| model as &dyn Generator),
            probe: None,
            asker: None,
            settings: &self.settings,
        };
        Ok(question_from(&parts, passage, &Budget::unlimited())?)
    }
}
